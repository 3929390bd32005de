/** Values at the door: what is kept exactly, what is mended, and what is refused before anything is written. */
import assert from "node:assert/strict";
import { assistantMessage, text, toolCall, toolResultMessage, userMessage } from "../messages/construct.ts";
import type { JsonObject, JsonValue } from "../messages/json.ts";
import { type Bench, conformanceCase } from "./case.ts";
import {
  assertAbsent,
  assertRoundTrip,
  loaded,
  nested,
  raw,
  rejectsWith,
  request,
  say,
  texts,
  throughStore,
  wrong,
} from "./tools.ts";

const call = { id: "call_0", name: "look" };

/** Stores one JSON object in every place that takes JSON, and gives back what each holds for a later program. */
async function everywhere(bench: Bench, value: JsonObject): Promise<unknown[]> {
  const { store } = bench;
  await store.append("thread", [
    assistantMessage([toolCall("call_0", "look", value)], { metadata: value }),
    toolResultMessage(call, "ok", { details: value }),
  ]);
  await store.saveExtra("thread", value);
  await store.savePendingRequest("thread", request("q", { payload: { kind: "confirm", prompt: "?", details: value } }));
  await store.saveHitlAnswer("thread", "q", value);
  const later = await bench.again();
  const { messages, extra } = await loaded(later, "thread");
  const [turn, result] = messages;
  assert.ok(turn?.role === "assistant" && turn.content[0]?.type === "tool_call" && result?.role === "tool_result");
  const payload = (await later.loadPending("thread"))?.request.payload;
  assert.ok(payload?.kind === "confirm");
  const answer = await later.loadHitlAnswer("thread", "q");
  return [turn.content[0].arguments, turn.metadata, result.details, extra, payload.details, answer];
}

async function assertKeptEverywhere(bench: Bench, value: JsonObject): Promise<void> {
  for (const stored of await everywhere(bench, value)) assert.deepEqual(stored, value);
}

/** Asserts that a value is refused in every place that takes JSON, and that nothing of it is stored. */
async function assertRefusedEverywhere({ store }: Bench, value: unknown): Promise<void> {
  const bad = wrong({ deep: [value] });
  const attempts = [
    store.append("thread", [say("first"), userMessage("second", { metadata: bad })]),
    store.append("thread", [assistantMessage([toolCall("call_0", "look", bad)])]),
    store.append("thread", [toolResultMessage(call, "ok", { details: bad })]),
    store.saveExtra("thread", bad),
    store.savePendingRequest("thread", request("q", { payload: { kind: "confirm", prompt: "?", details: bad } })),
    store.saveHitlAnswer("thread", "q", bad),
  ];
  await Promise.all(attempts.map((attempt) => rejectsWith(attempt, "invalid_message")));
  await assertAbsent(store, "thread");
  assert.equal(await store.loadHitlAnswer("thread", "q"), undefined);
}

class Point {
  x = 1;
}
const cycle: { self?: unknown } = {};
cycle.self = cycle;

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** An object of which a part can't be read, by anybody. */
const unreadable = Object.defineProperty({}, "locked", {
  enumerable: true,
  get() {
    throw new TypeError("no entry");
  },
});

const NOT_JSON: [string, unknown][] = [
  ["E11 a getter that throws", unreadable],
  ["E11 a proxy that was revoked", revokedProxy()],
  ["E6 a BigInt", 9007199254740993n],
  ["E7 bytes", Uint8Array.of(0xff, 0xfe)],
  ["E7 a Buffer", Buffer.from("bytes")],
  ["E11 L17 NaN", Number.NaN],
  ["E11 L17 Infinity", Number.NEGATIVE_INFINITY],
  ["E11 L17 a Date", new Date(0)],
  ["E11 L17 a Map", new Map([["a", 1]])],
  ["E11 L17 an Error", new Error("oops")],
  ["E11 a class instance", new Point()],
  ["E11 a function", () => 1],
  ["E11 a symbol", Symbol("s")],
  ["E11 undefined in an array", undefined],
  ["E11 an array with a hole", new Array(2)],
  ["L16 a value that contains itself", cycle],
  ["L16 a nesting of 5,000 levels", nested(5000)],
];

const KEPT: [string, JsonObject][] = [
  ["E1 U+0000 in values and keys", { "k\0ey": "a\0b", list: ["\0", "\0\0x"] }],
  ["E11 numbers at the ends of their range", { n: [1e308, 5e-324, 2 ** 53, -(2 ** 53), 0.1 + 0.2, -1.5, 1e21, 400] }],
  [
    "L18 data that looks like a serializer's tag",
    {
      lc: 1,
      type: "constructor",
      id: ["x", "Y"],
      kwargs: {},
      buffer: { type: "Buffer", data: [1, 2] },
      date: { $date: "2020-01-01T00:00:00Z" },
      __type__: "set",
      constructor: "c",
      toJSON: "text",
      hasOwnProperty: 1,
    },
  ],
  ["L19 false, 0, empty text, null, [] and {}", { a: false, b: 0, c: "", d: null, e: [], f: {}, "": "empty key" }],
  ["L30 text that looks like SQL", { "x') OR 1=1 --": "'; DROP TABLE messages; --", $where: "1", "%": "_" }],
  [
    "Text of any script, unnormalised,",
    { nfd: "e\u0301", nfc: "\u00e9", astral: "👩‍👩‍👧 𠮷", "\uffff": "\ue000", crlf: "\r\n\u2028" },
  ],
];

export const valueCases = [
  ...KEPT.map(([what, value]) =>
    conformanceCase(`${what} is kept exactly in every place that takes JSON`, (bench) =>
      assertKeptEverywhere(bench, value),
    ),
  ),
  ...NOT_JSON.map(([what, value]) =>
    conformanceCase(`${what} is refused in every place, and nothing is written`, (bench) =>
      assertRefusedEverywhere(bench, value),
    ),
  ),

  conformanceCase("E1 U+0000 is kept in text, tool names and call ids", (bench) =>
    assertRoundTrip(bench, [
      say("a\0b"),
      assistantMessage([toolCall("c\0", "lo\0ok", {})], { error_message: "x\0" }),
      toolResultMessage({ id: "c\0", name: "lo\0ok" }, "\0result\0"),
    ]),
  ),

  conformanceCase("E2 a lone surrogate becomes U+FFFD, in keys too, and pairs are untouched", async (bench) => {
    const stored = await everywhere(bench, { cut: "hi \ud83d", "\udd11key": ["\udd11\ud83d"], ok: "🔑" });
    for (const value of stored) {
      assert.deepEqual(value, { cut: "hi \ufffd", "\ufffdkey": ["\ufffd\ufffd"], ok: "🔑" });
    }
  }),

  conformanceCase("E2 a lone surrogate in text becomes U+FFFD", async (bench) => {
    const [first, second] = await throughStore(bench, [say("cut \ud83d"), say("\udd11 begun 🔑")]);
    assert.deepEqual(first?.content, [text("cut \ufffd")]);
    assert.deepEqual(second?.content, [text("\ufffd begun 🔑")]);
  }),

  conformanceCase("E2 two keys that would become one are refused", async ({ store }) => {
    await rejectsWith(store.saveExtra("thread", { "a\ud83d": 1, "a\ufffd": 2 }), "invalid_message");
    await assertAbsent(store, "thread");
  }),

  conformanceCase("E4 text after U+0000 is read back whole", async (bench) => {
    await assertRoundTrip(bench, [say("nul\0after secretword")]);
  }),

  conformanceCase("E6 a refusal names the path, and the next append works", async ({ store }) => {
    const bad = assistantMessage([text("ok"), toolCall("call_0", "look", wrong({ id: 1n }))]);
    const path = "messages[1].content[1].arguments.id";
    await rejectsWith(store.append("thread", [say("first"), bad]), "invalid_message", { path });
    await store.append("thread", [say("second")]);
    assert.deepEqual(await texts(store, "thread"), ["second"]);
  }),

  conformanceCase("E8 messages keep the order of their keys", async (bench) => {
    const order = { zeta: 1, a: 2, "10": 3, "2": 4, nested: { b: 1, a: 2 } };
    await assertRoundTrip(bench, [
      assistantMessage([toolCall("call_0", "look", order)], { metadata: order }),
      toolResultMessage(call, "ok", { details: [order] }),
      raw({ content: [{ text: "late type", type: "text" }], run_id: null, role: "user" }),
    ]);
  }),

  conformanceCase("E11 an undefined property is absent, and -0 is 0", async (bench) => {
    for (const stored of await everywhere(bench, wrong({ zero: -0, gone: undefined }))) {
      assert.deepEqual(stored, { zero: 0 });
    }
  }),

  conformanceCase("E12 a tool result of 20 MB is kept", async (bench) => {
    const big = `${"0123456789abcdé\n".repeat(1_310_720)}end`;
    const [result] = await throughStore(bench, [toolResultMessage(call, big)]);
    assert.ok(result?.content[0]?.type === "text" && result.content[0].text === big);
  }),

  conformanceCase("L16 a nesting of 500 levels is kept and one of 501 refused", async (bench) => {
    const { store } = bench;
    await rejectsWith(
      store.append("thread", [toolResultMessage(call, "ok", { details: nested(501) })]),
      "invalid_message",
    );
    await rejectsWith(store.saveExtra("thread", { deep: nested(501) }), "invalid_message");
    await store.saveExtra("thread", { deep: nested(500) });
    const [result] = await throughStore(bench, [toolResultMessage(call, "ok", { details: nested(500) })]);
    assert.ok(result?.role === "tool_result");
    assert.equal(JSON.stringify(result.details), JSON.stringify(nested(500)));
  }),

  conformanceCase("L16 a refused value leaves what was there before", async ({ store }) => {
    await store.append("thread", [say("before")]);
    await store.saveExtra("thread", { kept: 1 });
    await store.savePendingRequest("thread", request("q"));
    await rejectsWith(store.append("thread", [userMessage("x", { metadata: wrong(cycle) })]), "invalid_message");
    await rejectsWith(store.saveExtra("thread", wrong({ kept: 2, bad: cycle })), "invalid_message");
    await rejectsWith(store.savePendingRequest("thread", wrong({ ...request("q2"), bad: cycle })), "invalid_message");
    const { messages, extra } = await loaded(store, "thread");
    assert.equal(messages.length, 1);
    assert.deepEqual(extra, { kept: 1 });
    assert.deepEqual((await store.loadPending("thread"))?.request, request("q"));
  }),

  conformanceCase("__proto__ is a key like any other", async (bench) => {
    // In the order in which a database that sorts keys gives them back: shorter ones first.
    const value = JSON.parse('{"a":{"__proto__":1},"__proto__":{"polluted":true}}') as JsonObject;
    for (const stored of await everywhere(bench, value)) {
      assert.equal(JSON.stringify(stored), JSON.stringify(value));
    }
    assert.equal((Object.prototype as { polluted?: unknown }).polluted, undefined);
  }),

  conformanceCase("E11 an extra or an answer that is no JSON at the top is refused", async ({ store }) => {
    for (const value of [undefined, 1n, Number.NaN, new Date(0)]) {
      await rejectsWith(store.saveHitlAnswer("thread", "q", wrong(value)), "invalid_message");
    }
    for (const value of [null, [], "text", 1, undefined] as (JsonValue | undefined)[]) {
      await rejectsWith(store.saveExtra("thread", wrong(value)), "invalid_message");
    }
    await assertAbsent(store, "thread");
  }),
];
