/** The windows of last messages, and the life of a history. */
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MemoryHistory, NewWindowMessage } from "../history/history.ts";
import { type HistoryBench, historyCase } from "./history-case.ts";
import { rejectsWith, wrong } from "./tools.ts";

const say = (content: string, more: Partial<NewWindowMessage> = {}): NewWindowMessage => ({
  role: "user",
  content,
  ...more,
});
const numbered = (from: number, to: number, more: Partial<NewWindowMessage> = {}) =>
  Array.from({ length: to - from }, (_, i) => say(`${from + i}`, more));

async function contents(history: MemoryHistory, scope: string, limit?: number): Promise<(string | null)[]> {
  return (await history.recentMessages(scope, { limit })).map((message) => message.content);
}

/** Asserts that a scope's window is the numbers from `from` to before `to`. */
async function assertWindow(history: MemoryHistory, from: number, to: number, scope = "s"): Promise<void> {
  const expected = Array.from({ length: to - from }, (_, i) => `${from + i}`);
  assert.deepEqual(await contents(history, scope, 10_000), expected);
}

const BAD_LIMITS = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 10_001, null, "10"];
const ALIKE = [
  "a&b=c",
  "a&b",
  "a",
  "b=c",
  "A",
  "a ",
  "a\u0001",
  "a%",
  "a_",
  "é",
  "e\u0301",
  "x') OR 1=1 --",
  "😀",
  "null",
];

const METHODS: [name: string, call: (history: MemoryHistory) => Promise<unknown>][] = [
  ["add", (history) => history.add({ memory_id: "m", event: "ADD" })],
  ["addBatch", (history) => history.addBatch([{ memory_id: "m", event: "ADD" }])],
  ["addBatch of nothing", (history) => history.addBatch([])],
  ["get", (history) => history.get("m")],
  ["list", (history) => history.list()],
  ["restoreAt", (history) => history.restoreAt("m", 0)],
  ["saveMessages", (history) => history.saveMessages("s", [say("x")])],
  ["saveMessages of nothing", (history) => history.saveMessages("s", [])],
  ["recentMessages", (history) => history.recentMessages("s")],
  ["listScopes", (history) => history.listScopes()],
  ["reset", (history) => history.reset()],
];

async function fill({ history }: HistoryBench): Promise<void> {
  await history.addBatch([{ memory_id: "m", event: "ADD", new_memory: "x", id: "one" }]);
  await history.saveMessages("s", numbered(0, 3));
}

export const historyWindowCases = [
  historyCase("Messages come back as they were given, with the defaults filled in", async (bench) => {
    await bench.history.saveMessages("s", [
      { role: "user", content: "hi" },
      { role: "assistant", content: null, name: "bot", created_at: "2026-05-07 10:00" },
      { role: "tool", content: "", created_at: null },
    ]);
    const [first, ...rest] = await (await bench.again()).recentMessages("s");
    assert.deepEqual({ ...first, created_at: null }, { role: "user", content: "hi", name: null, created_at: null });
    assert.match(first?.created_at ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00$/);
    assert.deepEqual(rest, [
      { role: "assistant", content: null, name: "bot", created_at: "2026-05-07T10:00:00+00:00" },
      { role: "tool", content: "", name: null, created_at: null },
    ]);
  }),

  historyCase("W1 a batch that is larger than the window leaves its newest, oldest first", async (bench) => {
    await bench.history.saveMessages("s", numbered(0, 12));
    await assertWindow(bench.history, 2, 12);
    await bench.history.saveMessages("s", numbered(12, 18));
    await bench.history.saveMessages("s", numbered(18, 24));
    await assertWindow(await bench.again(), 14, 24);
  }),

  historyCase("W1 a window of one holds the last message, and one of none holds nothing", async ({ history }) => {
    await history.saveMessages("s", numbered(0, 3), { keep: 1 });
    await assertWindow(history, 2, 3);
    await history.saveMessages("s", numbered(3, 4), { keep: 1 });
    await assertWindow(history, 3, 4);
    await history.saveMessages("s", numbered(4, 6), { keep: 0 });
    assert.deepEqual(await contents(history, "s"), []);
    assert.deepEqual(await history.listScopes(), { items: [], next: null });
  }),

  historyCase("A window grows and shrinks with what it is to keep", async ({ history }) => {
    await history.saveMessages("s", numbered(0, 100), { keep: 50 });
    await assertWindow(history, 50, 100);
    await history.saveMessages("s", numbered(100, 101), { keep: 10_000 });
    await assertWindow(history, 50, 101);
    await history.saveMessages("s", numbered(101, 102));
    await assertWindow(history, 92, 102);
    await history.saveMessages("s", [], { keep: 1 });
    await assertWindow(history, 92, 102);
  }),

  historyCase("W2 the window is the same at every reading", async (bench) => {
    for (let i = 0; i < 30; i++) await bench.history.saveMessages("s", numbered(i, i + 1));
    for (let i = 0; i < 5; i++) await assertWindow(bench.history, 20, 30);
    await bench.history.saveMessages("other", numbered(0, 30));
    await assertWindow(await bench.again(), 20, 30);
  }),

  historyCase("W6 the order is that of writing, whatever the times say", async (bench) => {
    await bench.history.saveMessages("s", numbered(0, 4, { created_at: "9999-12-31" }));
    await bench.history.saveMessages("s", numbered(4, 8, { created_at: "1970-01-01" }));
    await bench.history.saveMessages("s", numbered(8, 12));
    await bench.history.saveMessages("s", numbered(12, 13, { created_at: Date.now() - 3_600_000 }));
    await assertWindow(await bench.again(), 3, 13);
  }),

  historyCase("W5 scopes that look alike are each their own", async (bench) => {
    for (const scope of ALIKE) await bench.history.saveMessages(scope, [say(`of ${scope}`)]);
    await bench.history.saveMessages("a", numbered(0, 12));
    const later = await bench.again();
    for (const scope of ALIKE.filter((item) => item !== "a")) {
      assert.deepEqual(await contents(later, scope), [`of ${scope}`], scope);
    }
    await assertWindow(later, 2, 12, "a");
    assert.deepEqual(await contents(later, "missing"), []);
  }),

  historyCase("Scopes are listed in code point order, a page at a time", async ({ history }) => {
    const scopes = ["A", "a", "a ", "b", "é", "\ue000", "\uffff", "😀"];
    for (const scope of scopes.toReversed()) await history.saveMessages(scope, numbered(0, 2));
    const listed: string[] = [];
    for (let after: string | undefined; listed.length < scopes.length; ) {
      const page = await history.listScopes({ after, limit: 3 });
      for (const item of page.items) assert.equal(item.messageCount, 2);
      listed.push(...page.items.map((item) => item.scope));
      after = page.next ?? undefined;
      if (after === undefined) break;
    }
    assert.deepEqual(listed, scopes);
    assert.deepEqual((await history.listScopes({ limit: 0 })).items, []);
    assert.equal((await history.listScopes({ limit: 8 })).next, null);
  }),

  historyCase("W11 a limit of 0 gives nothing, none gives 10, and what is no limit is refused", async ({ history }) => {
    await history.saveMessages("s", numbered(0, 20), { keep: 20 });
    assert.deepEqual(await contents(history, "s", 0), []);
    assert.deepEqual(await contents(history, "s", -0), []);
    assert.deepEqual(await contents(history, "s", 2), ["18", "19"]);
    assert.equal((await history.recentMessages("s")).length, 10);
    assert.equal((await history.recentMessages("s", { limit: undefined })).length, 10);
    for (const value of BAD_LIMITS) {
      await rejectsWith(history.recentMessages("s", { limit: wrong(value) }), "invalid_argument");
      await rejectsWith(history.saveMessages("s", [say("x")], { keep: wrong(value) }), "invalid_argument");
      await rejectsWith(history.listScopes({ limit: wrong(value) }), "invalid_argument");
    }
    await assertWindow(history, 0, 20);
  }),

  historyCase("E1 E2 messages keep U+0000, and a lone surrogate becomes U+FFFD", async (bench) => {
    await bench.history.saveMessages("s", [
      { role: "us\0er", content: "nul\0after", name: "\0" },
      { role: "user", content: "cut \ud83d", name: "🔑\udd11" },
    ]);
    const stored = (await (await bench.again()).recentMessages("s")).map(({ role, content, name }) => [
      role,
      content,
      name,
    ]);
    assert.deepEqual(stored, [
      ["us\0er", "nul\0after", "\0"],
      ["user", "cut \ufffd", "🔑\ufffd"],
    ]);
  }),

  historyCase("A message of the wrong shape is refused, with its path, and nothing is written", async ({ history }) => {
    const refused: [unknown, string][] = [
      [null, "messages[1]"],
      [{ content: "x" }, "messages[1].role"],
      [{ role: "", content: "x" }, "messages[1].role"],
      [{ role: "user" }, "messages[1].content"],
      [{ role: "user", content: [{ type: "text", text: "x" }] }, "messages[1].content"],
      [{ role: "user", content: "x", name: 1 }, "messages[1].name"],
      [{ role: "user", content: "x", created_at: "soon" }, "messages[1].created_at"],
      [{ role: "user", content: "x", tool_calls: [] }, "messages[1].tool_calls"],
    ];
    for (const [message, path] of refused) {
      await rejectsWith(history.saveMessages("s", [say("fine"), wrong(message)]), "invalid_record", { path });
    }
    await rejectsWith(history.saveMessages("s", wrong("text")), "invalid_record", { path: "messages" });
    for (const scope of [undefined, null, "", 7, "a\0b", "\ud83d", "x".repeat(1025)]) {
      await rejectsWith(history.saveMessages(wrong(scope), [say("x")]), "invalid_id");
      await rejectsWith(history.recentMessages(wrong(scope)), "invalid_id");
    }
    await history.saveMessages("x".repeat(1024), [say("x")]);
    assert.equal((await history.listScopes()).items.length, 1);
  }),

  historyCase("reset erases everything, and the history can be used at once", async (bench) => {
    await fill(bench);
    await bench.history.reset();
    assert.deepEqual(await bench.history.list(), { items: [], next: null });
    assert.deepEqual(await contents(bench.history, "s"), []);
    await fill(bench);
    const later = await bench.again();
    assert.equal((await later.get("m")).length, 1);
    await assertWindow(later, 0, 3);
  }),

  historyCase("D14 every method is refused after close, and closing again is harmless", async (bench) => {
    await fill(bench);
    await bench.history.close();
    for (const [, call] of METHODS) await rejectsWith(call(bench.history), "store_closed");
    await bench.history.close();
    await Promise.all([bench.history.close(), bench.history[Symbol.asyncDispose]()]);
  }),

  historyCase("D14 close waits for work in flight, which settles first", async (bench) => {
    let settled = 0;
    const works = [
      bench.history.add({ memory_id: "m", event: "ADD", new_memory: "in flight" }),
      bench.history.saveMessages("s", [say("in flight")]),
      bench.history.list(),
    ].map((work: Promise<unknown>) => work.then(() => settled++));
    const closed = bench.history.close();
    await rejectsWith(bench.history.add({ memory_id: "m", event: "ADD" }), "store_closed");
    await closed;
    // What settled in the same turn of the event loop as close settled with it.
    await nextTurn();
    assert.equal(settled, works.length);
    if (bench.history.capabilities.durable !== true) return;
    const later = await bench.again();
    assert.deepEqual([(await later.get("m")).length, (await later.recentMessages("s")).length], [1, 1]);
  }),

  historyCase("Every capability is true, or says why not", async ({ history: { capabilities } }) => {
    const { backend, ...rest } = capabilities;
    assert.ok(typeof backend === "string" && backend !== "");
    assert.deepEqual(Object.keys(rest).sort(), ["durable", "multiProcess"]);
    for (const capability of Object.values(rest)) assert.ok(capability === true || capability.reason.length > 10);
  }),

  historyCase(
    "C4 two programs write at once, and each finds what the other wrote",
    async ({ history, other }) => {
      const second = await other();
      await Promise.all(
        [history, second].flatMap((store, writer) =>
          Array.from({ length: 50 }, (_, i) =>
            store.add({ memory_id: "m", event: "ADD", new_memory: `${writer} ${i}` }),
          ),
        ),
      );
      const written = (await second.get("m")).map((record) => record.new_memory);
      assert.equal(new Set(written).size, 100);
      for (const writer of [0, 1]) {
        assert.deepEqual(
          written.filter((value) => value?.startsWith(`${writer} `)),
          Array.from({ length: 50 }, (_, i) => `${writer} ${i}`),
        );
      }
      assert.deepEqual(await history.get("m"), await second.get("m"));
    },
    ["multiProcess"],
  ),
];
