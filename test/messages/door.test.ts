/** The door: what may be stored, and how an error names what may not. */
import vm from "node:vm";
import { describe, expect, test } from "vitest";
import { admitMessage, admitMessages, checkStored } from "../../src/messages/admit.ts";
import { assistantMessage, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { copyJson, sameJson } from "../../src/messages/json.ts";

const inArguments = (value: unknown) => assistantMessage([toolCall("c", "t", { value } as never)]);

describe("only JSON goes in, and the path of what is not is named", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = { inner: [cycle] };
  let deep: unknown = 1;
  for (let i = 0; i < 5000; i++) deep = [deep];
  const hole = [1, 2, 3];
  delete hole[1];
  class Point {
    x = 1;
  }

  test.each<[string, unknown, string]>([
    ["BigInt", { id: 9007199254740993n }, ".id"],
    ["NaN", Number.NaN, ""],
    ["Infinity", [1, Number.POSITIVE_INFINITY], "[1]"],
    ["a function", { f() {} }, ".f"],
    ["a symbol", { s: Symbol("s") }, ".s"],
    ["a symbol as key", { [Symbol("s")]: 1 }, ""],
    ["a Date", { at: new Date() }, ".at"],
    ["a Map", new Map(), ""],
    ["a Set", [new Set()], "[0]"],
    ["a Uint8Array", { bytes: new Uint8Array([255, 254]) }, ".bytes"],
    ["a Buffer", { bytes: Buffer.from("x") }, ".bytes"],
    ["a class instance", { "odd key": new Point() }, '["odd key"]'],
    ["an Error", new Error("x"), ""],
    ["a RegExp", /x/, ""],
    ["a boxed string", Object("x"), ""],
    ["a URL", new URL("http://x"), ""],
    ["a promise", Promise.resolve(), ""],
    ["an object with toJSON", { toJSON: () => 1 }, ".toJSON"],
    ["an array with a hole", hole, "[1]"],
    ["undefined in an array", [undefined], "[0]"],
  ])("%s", (_, value, path) => {
    expect(() => admitMessage(inArguments(value))).toThrow(
      expect.objectContaining({ code: "invalid_message", path: `message.content[0].arguments.value${path}` }),
    );
    expect(() => admitMessage(userMessage("hi", { metadata: { value } as never }))).toThrow(
      expect.objectContaining({ path: `message.metadata.value${path}` }),
    );
  });

  test("L16 a cycle", () => {
    expect(() => admitMessage(inArguments(cycle))).toThrow(/value\.self\.inner\[0\]: the value contains itself/);
  });

  test("L16 5,000 levels, and 500 at most", () => {
    expect(() => admitMessage(inArguments(deep))).toThrow(/nested deeper than 500/);
    const levels = (n: number) => JSON.parse("[".repeat(n) + "]".repeat(n));
    expect(() => copyJson(levels(500), "v")).not.toThrow();
    expect(() => copyJson(levels(501 + 1), "v")).toThrow(/nested deeper than 500/);
  });

  test("the same object in two places is no cycle", () => {
    const shared = { a: 1 };
    expect(copyJson([shared, shared], "v")).toEqual([{ a: 1 }, { a: 1 }]);
  });

  test("a batch names the message by its index", () => {
    expect(() => admitMessages([userMessage("a"), inArguments(1n)])).toThrow(/^messages\[1\]\.content\[0\]/);
    expect(() => admitMessages("hi" as never)).toThrow(/must be an array/);
  });
});

describe("what goes in is what is kept", () => {
  test("undefined properties are absent; null, missing and [] stay distinct", () => {
    const copy = copyJson({ a: undefined, b: null, c: [], d: {} }, "v");
    expect(JSON.stringify(copy)).toBe('{"b":null,"c":[],"d":{}}');
  });

  test("E11 -0 becomes 0, as any JSON text would have it", () => {
    expect(Object.is(copyJson(-0, "v"), 0)).toBe(true);
  });

  test("__proto__ is a key like any other, and pollutes nothing", () => {
    const copy = copyJson(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'), "v") as Record<
      string,
      unknown
    >;
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"polluted":true},"constructor":1}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(copy.polluted).toBeUndefined();
  });

  test("key order is kept", () => {
    const args = { zeta: 1, a: 2, "10": 3, "2": 4 };
    expect(JSON.stringify(copyJson(args, "v"))).toBe(JSON.stringify(args));
  });

  test("plain objects of another realm and without a prototype are plain", () => {
    const foreign: unknown = vm.runInNewContext("({ a: [1, { b: 2 }] })");
    expect(copyJson(foreign, "v")).toEqual({ a: [1, { b: 2 }] });
    expect(copyJson(Object.assign(Object.create(null), { a: 1 }), "v")).toEqual({ a: 1 });
    const foreignDate: unknown = vm.runInNewContext("new Date()");
    expect(() => copyJson(foreignDate, "v")).toThrow(/Date/);
  });

  test("E2 lone surrogates become U+FFFD in text and in keys; pairs are untouched", () => {
    expect(copyJson(["cut \ud83d", "\udd11 cut", "\udd11\ud83d", "🔑"], "v")).toEqual([
      "cut \ufffd",
      "\ufffd cut",
      "\ufffd\ufffd",
      "🔑",
    ]);
    expect(copyJson({ "k\ud83d": 1 }, "v")).toEqual({ "k\ufffd": 1 });
    expect(() => copyJson({ "k\ud83d": 1, "k\ufffd": 2 }, "v")).toThrow(/two keys would become one/);
    expect(() => copyJson({ "k\ud83d": 1, "k\udd11": 2 }, "v")).toThrow(/two keys would become one/);
  });

  test("the copy and the original don't share anything", () => {
    const original = userMessage("hi", { metadata: { list: [1] } });
    const copy = admitMessage(original);
    (original.metadata as { list: number[] }).list.push(2);
    expect(copy.metadata).toEqual({ list: [1] });
  });
});

describe("a message's shape", () => {
  test.each<[unknown, RegExp]>([
    [null, /^message: must be an object/],
    ["hi", /^message: must be an object/],
    [[], /^message: must be an object/],
    [{}, /^message\.role/],
    [{ role: "developer", content: [] }, /^message\.role: must be "user", "assistant" or "tool_result"/],
    [{ role: "" }, /^message\.role/],
    [{ role: "user" }, /^message\.content/],
    [{ role: "user", content: 7 }, /^message\.content/],
    [{ role: "user", content: ["hi"] }, /^message\.content\[0\]/],
    [{ role: "user", content: [{ text: "hi" }] }, /^message\.content\[0\]\.type/],
    [{ role: "user", content: [{ type: "text", text: 1 }] }, /^message\.content\[0\]\.text/],
    [{ role: "user", content: [{ type: "tool_call", id: "c", name: "t", arguments: {} }] }, /^message\.content\[0\]/],
    [{ role: "assistant", content: [{ type: "tool_call", id: "c", name: "t", arguments: "{}" }] }, /arguments/],
    [{ role: "assistant", content: [{ type: "tool_call", id: "c", name: "t", arguments: [] }] }, /arguments/],
    [{ role: "assistant", content: [], usage: { input_tokens: "1" } }, /usage/],
    [{ role: "tool_result", content: [], tool_name: "t" }, /tool_call_id/],
    [{ role: "user", content: [], metadata: [] }, /metadata/],
    [{ role: "user", content: [], timestamp: "now" }, /timestamp/],
  ])("%j is refused", (value, problem) => {
    expect(() => admitMessage(value)).toThrow(problem);
    if (value !== null && typeof value === "object") expect(() => checkStored(structuredClone(value))).toThrow(problem);
  });

  test("M9 content that is text, empty or null is stored as blocks, which is what CubeLoop reads", () => {
    expect(admitMessage({ role: "user", content: "hi" }).content).toEqual([{ type: "text", text: "hi" }]);
    expect(admitMessage({ role: "assistant", content: "" }).content).toEqual([]);
    expect(admitMessage({ role: "assistant", content: null }).content).toEqual([]);
  });

  test("M15 fields and blocks that are not known are kept as they are", () => {
    const message = {
      role: "assistant",
      content: [
        { type: "video_v9", foo: 1, nested: { a: null } },
        { type: "text", text: "hi", citations: [] },
      ],
      from_the_future: { x: [1, 2] },
      id: "m1",
    };
    expect(JSON.stringify(admitMessage(message))).toBe(JSON.stringify(message));
  });

  test("constructors make whole records", () => {
    for (const message of [
      userMessage("hi"),
      assistantMessage([toolCall("c", "t")]),
      toolResultMessage({ id: "c", name: "t" }, "ok"),
    ]) {
      expect(admitMessage(message)).toEqual(message);
      expect(message).toMatchObject({ metadata: {}, run_id: null, timestamp: expect.closeTo(Date.now() / 1000, 0) });
    }
  });

  test("a run id that is none is refused", () => {
    for (const run_id of ["", "a\0b", "x".repeat(256), "cut \ud83d"]) {
      expect(() => admitMessage(userMessage("hi", { run_id }))).toThrow(
        expect.objectContaining({ code: "invalid_id" }),
      );
    }
  });
});

test("two JSON values are the same whatever the order of their keys", () => {
  expect(sameJson({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 })).toBe(true);
  for (const [a, b] of [
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: undefined as never }, {}],
    [[1], { 0: 1 }],
    [
      [1, 2],
      [2, 1],
    ],
    [null, {}],
    [0, false],
    ["", null],
  ] as const) {
    expect(sameJson(a as never, b as never)).toBe(false);
  }
});
