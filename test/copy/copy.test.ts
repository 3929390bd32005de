/** copyThreads between stores of every kind: exact, harmless when repeated, and careful with what the target has. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { copyThreads } from "../../src/copy/copy.ts";
import { assistantMessage, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { JsonObject } from "../../src/messages/json.ts";
import type { Message } from "../../src/messages/schema.ts";
import { everything, fill, makeStore, PAIRS, request, whole } from "./stores.ts";

const NOTHING = { copied: 0, continued: 0, unchanged: 0, messages: 0, conflicts: [], damaged: [], differences: [] };
const ODD_IDS = [
  "t",
  "../evil",
  "a/b",
  "CON",
  "a",
  "A",
  "a\u0001b",
  "x') OR 1=1 --",
  "…",
  "__proto__",
  "\u{1f600}",
  "\ufffd",
];

/** A store whose writes are counted. */
function counting(store: Checkpointer) {
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (!/^(load|list)/.test(String(name))) calls.push(String(name));
        return value.apply(target, args);
      };
    },
  });
  return { store: counted, calls };
}

describe.each(PAIRS)("from %s to %s", (from, to) => {
  test("G10 a copy is exact, with times, runs, parents, questions and answers; again changes nothing", async () => {
    const source = await makeStore(from);
    const target = await makeStore(to);
    for (const id of ODD_IDS) await fill(source, id);
    await source.fork("t", "fork", { afterRunId: "z-first", metadata: { why: "try" } });
    await source.saveExtra("only extra", { a: 1 });
    await source.claimRun("only a run", "r");
    await source.savePendingRequest("only a question", request("q"));
    await source.saveHitlAnswer("only an answer", "q", false);
    const before = await whole(source);
    const watched = counting(source);
    const written = ODD_IDS.length * 7 + 3;
    expect(await copyThreads(watched.store, target)).toEqual({
      ...NOTHING,
      copied: ODD_IDS.length + 5,
      messages: written,
    });
    expect(watched.calls).toEqual([]);
    expect(await whole(target)).toEqual(before);
    expect(await whole(source)).toEqual(before);
    const again = counting(target);
    expect(await copyThreads(source, again.store)).toEqual({ ...NOTHING, unchanged: ODD_IDS.length + 5 });
    expect(again.calls).toEqual([]);
    await target.fork("t", "another", { afterRunId: "a-second" });
    expect((await target.load("another"))?.messages).toHaveLength(5);
  });

  test("a thread that has gone on in the source goes on in the target", async () => {
    const source = await makeStore(from);
    const target = await makeStore(to);
    await fill(source, "t");
    await copyThreads(source, target);
    // An answer only; then what follows it; then another run and another question.
    const steps: (() => Promise<unknown>)[] = [
      () => source.answerPending("t", { questionId: "q", runId: "open", answer: { decision: "approve" } }),
      () =>
        source.append("t", [
          toolResultMessage({ id: "q", name: "look" }, "seen", { run_id: "open" }),
          assistantMessage("done", { run_id: "open" }),
        ]),
      () => source.saveExtra("t", { notes: "changed", more: 1 }),
      () => source.clearHitlAnswers("t", { runId: "open" }),
      () => source.markRunComplete("t", "open"),
      () => source.claimRun("t", "next"),
      () => source.append("t", [userMessage("more", { run_id: "next" })]),
      () => source.savePendingRequest("t", request("later"), { runId: "next" }),
    ];
    for (const groups of [[0], [1, 2, 3], [4], [5, 6, 7]]) {
      for (const step of groups) await steps[step]?.();
      expect(await copyThreads(source, target)).toMatchObject({ continued: 1, conflicts: [], differences: [] });
      expect(await everything(target, "t")).toEqual(await everything(source, "t"));
    }
  });
});

describe("conflicts", () => {
  const cases: [what: string, reason: string, change: (target: Checkpointer) => Promise<unknown>][] = [
    ["another message", "the store has another message 1", (store) => store.append("t", [userMessage("mine")])],
    ["extra", "its extra is another", (store) => store.saveExtra("t", { notes: "mine" })],
    ["a run", 'the store has another run, "mine"', (store) => store.claimRun("t", "mine")],
    ["a question", "it waits on another question", (store) => store.savePendingRequest("t", request("mine"))],
    ["an answer", "other answers are recorded of it", (store) => store.saveHitlAnswer("t", "mine", 1)],
    [
      "another parent",
      "it was forked from another thread",
      (store) => store.importThread("t", { parentThreadId: "elsewhere" }),
    ],
    [
      "another order of runs",
      "its runs completed in another order",
      async (store) => {
        await store.claimRun("t", "a-second");
        await store.markRunComplete("t", "a-second");
      },
    ],
  ];
  const afterCopy: typeof cases = [
    ["more messages", "the store has more messages", (store) => store.append("t", [userMessage("mine")])],
    ["a key of its own", "its extra is another", (store) => store.saveExtra("t", { mine: 1 })],
    ["changed extra", "its extra is another", (store) => store.saveExtra("t", { notes: "mine" })],
    ["a completed run", "its runs completed in another order", (store) => store.markRunComplete("t", "open")],
    [
      "its own answer",
      "other answers are recorded of it",
      (store) => store.answerPending("t", { questionId: "q", runId: "open", answer: 1 }),
    ],
    ["another question", "it waits on another question", (store) => store.savePendingRequest("t", request("mine"))],
  ];

  test.each([...cases.map((one) => [...one, false] as const), ...afterCopy.map((one) => [...one, true] as const)])(
    "%s in the target is reported, left as it is, and hinders no other thread",
    async (_what, reason, change, copied) => {
      const source = await makeStore("sqlite");
      const target = await makeStore("sqlite");
      for (const id of ["t", "u"]) await fill(source, id);
      if (copied) await copyThreads(source, target, { threadIds: ["t"] });
      await change(target);
      const before = await everything(target, "t");
      expect(await copyThreads(source, target)).toEqual({
        ...NOTHING,
        copied: 1,
        messages: 7,
        conflicts: [{ threadId: "t", reason }],
      });
      expect(await everything(target, "t")).toEqual(before);
      expect(await everything(target, "u")).toEqual(await everything(source, "u"));
    },
  );

  test("what another program adds to the target between two batches is kept, and reported", async () => {
    const source = new MemoryCheckpointer();
    const target = new MemoryCheckpointer();
    const messages = Array.from({ length: 1100 }, (_, i) => userMessage(`${i}`));
    await source.append("t", messages);
    let added = false;
    const report = await copyThreads(source, target, {
      onProgress: () => {
        if (!added) void target.append("t", [userMessage("mine")]);
        added = true;
      },
    });
    expect(report.conflicts).toEqual([{ threadId: "t", reason: "another program wrote to it meanwhile" }]);
    expect((await target.load("t"))?.messages.length).toBe(501);
    expect((await copyThreads(source, target)).conflicts).toEqual([
      { threadId: "t", reason: "the store has another message 501" },
    ]);
  });
});

describe("the verification", () => {
  /** A target that spoils what it is given, as a faulty backend would. */
  function spoiling(spoil: (part: Record<string, unknown>) => void): Checkpointer {
    const target = new MemoryCheckpointer();
    return new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== "importThread") return typeof value === "function" ? value.bind(target) : value;
        return (threadId: string, part: object, options: object) => {
          const spoilt: Record<string, unknown> = { ...part };
          spoil(spoilt);
          return target.importThread(threadId, spoilt, options);
        };
      },
    });
  }

  const changed = (list: unknown, i: number, change: object) =>
    (list as object[]).map((item, at) => (at === i ? { ...item, ...change } : item));
  const cases: [string, (part: Record<string, unknown>) => void][] = [
    ["a message", (p) => Object.assign(p, { messages: changed(p.messages, 3, { message: userMessage("x") }) })],
    ["one message less", (p) => Object.assign(p, { messages: (p.messages as []).slice(0, -1) })],
    [
      "one message more",
      (p) => Object.assign(p, { messages: [...(p.messages as object[]), (p.messages as object[])[0]] }),
    ],
    ["messages in another order", (p) => Object.assign(p, { messages: (p.messages as []).toReversed() })],
    ["a run", (p) => Object.assign(p, { runs: (p.runs as []).slice(1) })],
    ["the order of runs", (p) => Object.assign(p, { runs: changed(p.runs, 0, { completionSeq: 9 }) })],
    ["extra", (p) => Object.assign(p, { extra: { notes: 1 } })],
    ["the question", (p) => Object.assign(p, { pending: null })],
    ["the answers", (p) => Object.assign(p, { answers: (p.answers as []).slice(1) })],
    ["the parent", (p) => Object.assign(p, { parentThreadId: undefined })],
  ];

  test.each(cases)("finds %s that did not arrive, and verify: false does not look", async (_what, spoil) => {
    const source = new MemoryCheckpointer();
    await fill(source, "t");
    await source.importThread("t", { parentThreadId: "parent" });
    expect((await copyThreads(source, spoiling(spoil))).differences).toMatchObject([{ threadId: "t" }]);
    expect((await copyThreads(source, spoiling(spoil), { verify: false })).differences).toEqual([]);
  });

  test("a thread that its own program goes on with meanwhile is copied to where it stands then", async () => {
    const source = new MemoryCheckpointer();
    const target = await makeStore("sqlite");
    await fill(source, "t");
    let turns = 3;
    const { calls, store } = counting(target);
    const report = await copyThreads(source, store, {
      onProgress: () => {
        if (turns-- > 0) void source.append("t", [userMessage(`${turns}`, { run_id: "open" })]);
      },
    });
    expect(report).toEqual({ ...NOTHING, copied: 1, messages: 10 });
    expect(calls).toEqual(Array(4).fill("importThread"));
    expect(await everything(target, "t")).toEqual(await everything(source, "t"));
    turns = Number.POSITIVE_INFINITY;
    const onProgress = () => void source.append("t", [userMessage("and on")]);
    await source.append("t", [userMessage("and on")]);
    expect((await copyThreads(source, target, { onProgress })).differences).toMatchObject([
      { threadId: "t", reason: expect.stringContaining("went on with it all the while") },
    ]);
  });
});

test("chosen threads only, each once; one that is not there is an error before anything is copied", async () => {
  const source = await makeStore("sqlite");
  const target = await makeStore("memory");
  for (const id of ["a", "b", "bb"]) await source.append(id, [userMessage(id)]);
  await expect(copyThreads(source, target, { threadIds: ["a", "B"] })).rejects.toMatchObject({
    code: "thread_not_found",
  });
  await expect(copyThreads(source, target, { threadIds: ["a", ""] })).rejects.toMatchObject({ code: "invalid_id" });
  await expect(copyThreads(source, source)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(await whole(target)).toEqual([]);
  expect(await copyThreads(source, target, { threadIds: ["b", "a", "b"] })).toMatchObject({ copied: 2, messages: 2 });
  expect((await whole(target)).map(([id]) => id)).toEqual(["a", "b"]);
  expect(await copyThreads(source, target, { threadIds: [] })).toEqual(NOTHING);
});

test("progress counts threads and messages, batch by batch", async () => {
  const source = new MemoryCheckpointer();
  const messages = Array.from({ length: 1234 }, (_, i) => userMessage(`${i}`));
  await source.append("long", messages);
  const seen: object[] = [];
  await copyThreads(source, new MemoryCheckpointer(), { onProgress: (progress) => seen.push(progress) });
  expect(seen).toEqual([
    { threads: 0, messages: 500 },
    { threads: 0, messages: 1000 },
    { threads: 0, messages: 1234 },
    { threads: 1, messages: 1234 },
  ]);
});

test("a target that fails ends the copy with its error, once all that was under way has ended", async () => {
  const source = await makeStore("sqlite");
  for (let i = 0; i < 50; i++) await source.append(`t${i}`, [userMessage("hi")]);
  const target = new MemoryCheckpointer();
  let calls = 0;
  const failing = new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "importThread" && ++calls === 20) return () => Promise.reject(new Error("disk full"));
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  await expect(copyThreads(source, failing)).rejects.toThrow("disk full");
  const after = calls;
  expect(after).toBeLessThan(30);
  await source.close();
  expect(await copyThreads(await makeStore("memory"), target)).toEqual(NOTHING);
  expect(calls).toBe(after);
});

test("random threads come through every pair of stores exactly, in one go or grown piece by piece", async () => {
  const text = fc.string({ unit: "grapheme", maxLength: 12 });
  const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)));
  const run = fc.constantFrom("r1", "r2", "r3", "r\u{1f600}");
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant("say" as const), run: fc.option(run), text, json }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("complete" as const), run }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("extra" as const), key: text, json }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("ask" as const), question: run }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("answer" as const), question: run, json }) },
  );
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
  const apply = async (store: Checkpointer, one: Step): Promise<void> => {
    const claimed = (runId: string) => store.claimRun("t", runId).catch(() => {});
    if (one.do === "say") {
      if (one.run !== null) await claimed(one.run);
      const fields = { run_id: one.run, metadata: { value: one.json } as JsonObject };
      // A run that has completed takes no more.
      await store.append("t", [userMessage(one.text, fields) as Message]).catch(() => {});
    } else if (one.do === "complete") {
      await claimed(one.run);
      await store.markRunComplete("t", one.run);
    } else if (one.do === "extra") await store.saveExtra("t", { [one.key]: one.json });
    else if (one.do === "ask") await store.savePendingRequest("t", request(one.question), { runId: "r1" });
    else await store.saveHitlAnswer("t", one.question, one.json, { runId: "r2" });
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 25 }),
      fc.nat(),
      fc.constantFrom(...PAIRS),
      async (steps, cut, [from, to]) => {
        const source = await makeStore(from);
        const [once, grown] = [await makeStore(to), await makeStore(to)];
        const at = cut % (steps.length + 1);
        for (const one of steps.slice(0, at)) await apply(source, one);
        await copyThreads(source, grown);
        for (const one of steps.slice(at)) await apply(source, one);
        const expected = await whole(source);
        await copyThreads(source, once);
        expect(await whole(once)).toEqual(expected);
        expect((await copyThreads(source, once)).unchanged).toBe(expected.length);
        const { conflicts, differences } = await copyThreads(source, grown);
        expect(differences).toEqual([]);
        // Extra or a question that changed and nothing else can't be told from a change in the target.
        for (const { reason } of conflicts)
          expect(reason).toMatch(/its extra is another|another question|other answers/);
        if (conflicts.length === 0) expect(await whole(grown)).toEqual(expected);
      },
    ),
    { numRuns: 60 },
  );
}, 120_000);
