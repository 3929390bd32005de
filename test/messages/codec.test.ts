/** Messages as JSON text and as msgpack: what comes back is what went in, and bytes that are no message are said to be none. */
import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { admitMessage } from "../../src/messages/admit.ts";
import { messageFromJson, messageFromMsgpack, messageToJson, messageToMsgpack } from "../../src/messages/codec.ts";
import { assistantMessage, toolCall, userMessage } from "../../src/messages/construct.ts";

const codecs = [
  { name: "JSON", round: (message: ReturnType<typeof admitMessage>) => messageFromJson(messageToJson(message)) },
  {
    name: "msgpack",
    round: (message: ReturnType<typeof admitMessage>) => messageFromMsgpack(messageToMsgpack(message)),
  },
];

for (const { name, round } of codecs) {
  describe(name, () => {
    test("any JSON in metadata and arguments comes back the same, key order and all", () => {
      fc.assert(
        fc.property(fc.jsonValue({ maxDepth: 6 }), fc.string({ unit: "binary" }), (value, key) => {
          const args = { [key]: value, zeta: 1, a: 2 } as never;
          const message = admitMessage(
            assistantMessage([toolCall("c", "t", args)], { metadata: { value } as never, timestamp: 1.5 }),
          );
          expect(messageToJson(round(message))).toBe(messageToJson(message));
        }),
        { numRuns: 300 },
      );
    });

    test.each([
      ["U+0000", "a\u0000b"],
      ["emoji and astral text", "😀👩‍👩‍👧‍👦🇩🇪𠮷"],
      ["NFD and NFC", "e\u0301 é"],
      ["line separators", "a\u2028b\u2029c\r\n"],
      ["a large text", "x".repeat(100_000)],
    ])("%s", (_, text) => {
      const message = admitMessage(userMessage(text, { metadata: { [text.slice(0, 9)]: text } }));
      expect(round(message)).toEqual(message);
    });

    test("numbers of every size", () => {
      const numbers = [
        0,
        1,
        -1,
        127,
        128,
        255,
        256,
        65536,
        2 ** 31,
        2 ** 32,
        2 ** 53 - 1,
        -(2 ** 53 - 1),
        0.1,
        1e300,
        5e-324,
        1.5,
      ];
      expect(round(admitMessage(userMessage("n", { metadata: { numbers } }))).metadata).toEqual({ numbers });
    });

    test("__proto__ as a key, nested, beside keys of its length", () => {
      const metadata = JSON.parse(
        '{"__proto__":{"__proto__":[{"__proto__":1}]},"123456789":"__proto__","ninechars":2}',
      );
      const back = round(admitMessage(userMessage("p", { metadata })));
      expect(JSON.stringify(back.metadata)).toBe(JSON.stringify(metadata));
    });

    test("500 levels", () => {
      const metadata = { deep: JSON.parse("[".repeat(498) + "]".repeat(498)) };
      expect(round(admitMessage(userMessage("d", { metadata }))).metadata).toEqual(metadata);
    });
  });
}

test.each([
  ["nothing", new Uint8Array()],
  ["a byte that msgpack has no use for", new Uint8Array([0xc1])],
  ["a number", encode(7)],
  ["an array", encode([])],
  ["a map without a role", encode({ content: [] })],
  ["bytes inside", encode({ role: "user", content: [], metadata: { b: new Uint8Array([1]) } })],
  ["a date inside", encode({ role: "user", content: [], metadata: { d: new Date(0) } })],
  ["NaN inside", encode({ role: "user", content: [], metadata: { n: Number.NaN } })],
  ["a message cut short", messageToMsgpack(userMessage("hello")).subarray(0, 20)],
  ["a message with more behind it", new Uint8Array([...messageToMsgpack(userMessage("hello")), 1])],
])("msgpack of %s is an error", (_, bytes) => {
  expect(() => messageFromMsgpack(bytes)).toThrow(expect.objectContaining({ code: "invalid_message" }));
});

test("random bytes are a message or an error, never anything else", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        expect(messageFromMsgpack(bytes)).toHaveProperty("role");
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_message" });
      }
    }),
    { numRuns: 2000 },
  );
});
