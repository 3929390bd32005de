/** Threads of another store: put here as they stood there, whole or in parts. */
import assert from "node:assert/strict";
import type { RunInfo } from "../checkpoint/checkpointer.ts";
import { textOf } from "../messages/construct.ts";
import { conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, raw, rejectsWith, reply, request, say, texts, wrong } from "./tools.ts";

// Whole seconds: CubeLoop's tables for MySQL hold no more of a time.
const at = (second: number): Date => new Date(Date.UTC(2020, 1, 29, 23, 59, second));
const entry = (text: string, runId: string | null, second: number) => ({
  message: say(text, runId),
  createdAt: at(second),
});
const RUNS: RunInfo[] = [
  { runId: "a late one", claimedAt: at(1), completedAt: at(9), completionSeq: 2 },
  { runId: "first done", claimedAt: at(3), completedAt: at(5), completionSeq: 1 },
  { runId: "open", claimedAt: at(10), completedAt: null, completionSeq: null },
];
const MESSAGES = [
  entry("before runs", null, 0),
  entry("one", "a late one", 1),
  entry("two", "first done", 4),
  { message: reply("three", "a late one"), createdAt: at(9) },
  entry("four", "open", 11),
];
const WHOLE = {
  messages: MESSAGES,
  runs: RUNS,
  parentThreadId: "not here",
  extra: { b: [1, null], a: "\0" },
  pending: { request: request("q2"), runId: "open" },
  answers: [
    { runId: null, questionId: "q0", answer: false },
    { runId: "open", questionId: "q1", answer: null },
  ],
};

export const importCases = [
  conformanceCase("An imported thread stands as it stood, with its times and the order of its runs", async (bench) => {
    const { store } = bench;
    const revision = await store.importThread("thread", WHOLE, { expectedRevision: 0 });
    const later = await bench.again();
    const checkpoint = await loaded(later, "thread");
    const messages = MESSAGES.map(({ message }) => message);
    assert.equal(JSON.stringify(checkpoint.messages), JSON.stringify(messages));
    assert.equal(checkpoint.revision, revision);
    assert.deepEqual([checkpoint.extra, checkpoint.parentThreadId], [WHOLE.extra, "not here"]);
    assert.deepEqual(await later.loadPending("thread"), WHOLE.pending);
    assert.deepEqual(await later.listHitlAnswers("thread"), WHOLE.answers);
    assert.deepEqual((await later.listRuns("thread")).items, RUNS);
    const { items } = await later.listMessages("thread");
    assert.deepEqual(
      items.map(({ createdAt }) => createdAt),
      MESSAGES.map(({ createdAt }) => createdAt),
    );
    const [info] = (await later.listThreads()).items;
    assert.deepEqual([info?.messageCount, info?.createdAt, info?.updatedAt], [5, at(0), at(11)]);
  }),

  conformanceCase("An imported thread goes on like any other", async ({ store }) => {
    const revision = await store.importThread("thread", WHOLE);
    await rejectsWith(store.append("thread", [say("late", "first done")]), "run_already_completed");
    await rejectsWith(store.claimRun("thread", "open"), "run_already_claimed");
    await rejectsWith(store.claimRun("thread", "a late one"), "run_already_completed");
    assert.deepEqual((await store.snapshot("thread", { afterRunId: "first done" })).map(textOf), [
      "before runs",
      "two",
    ]);
    const next = await store.append("thread", [say("five", "open")], { expectedRevision: revision });
    assert.ok(next > revision);
    await store.markRunComplete("thread", "open");
    const open = (await store.listRuns("thread")).items.find(({ runId }) => runId === "open");
    assert.equal(open?.completionSeq, 3);
    await store.fork("thread", "fork", { afterRunId: "a late one" });
    assert.deepEqual(await texts(store, "fork"), ["before runs", "one", "two", "three"]);
    const match = { questionId: "q2", runId: "open" };
    assert.equal(await store.clearPendingRequestIfMatches("thread", match), true);
    assert.equal(await store.loadHitlAnswer("thread", "q0"), false);
  }),

  conformanceCase("A thread is imported in parts, and what a part leaves out stays as it is", async (bench) => {
    const { store } = bench;
    const { messages, runs, ...rest } = WHOLE;
    let revision = await store.importThread("thread", { messages: messages.slice(0, 2) }, { expectedRevision: 0 });
    assert.equal(await store.importThread("thread", { runs }, { expectedRevision: revision }), revision);
    // A message of a run that has completed there.
    const more = { messages: messages.slice(2), ...rest };
    revision = await store.importThread("thread", more, { expectedRevision: revision });
    assert.equal(await store.importThread("thread", {}, { expectedRevision: revision }), revision);
    assert.equal(await store.importThread("thread", { extra: { c: 3 } }), revision);
    const later = await bench.again();
    const checkpoint = await loaded(later, "thread");
    assert.deepEqual(checkpoint.messages.map(textOf), ["before runs", "one", "two", "three", "four"]);
    assert.deepEqual(checkpoint.extra, { ...WHOLE.extra, c: 3 });
    assert.equal(checkpoint.parentThreadId, "not here");
    assert.deepEqual(await later.loadPending("thread"), WHOLE.pending);
    assert.deepEqual(await later.listHitlAnswers("thread"), WHOLE.answers);
    assert.deepEqual((await later.listRuns("thread")).items, RUNS);
  }),

  conformanceCase("Runs, the question and the ledger are put in place of those that are there", async ({ store }) => {
    await completeRun(store, "thread", "done here");
    await store.claimRun("thread", "open");
    await store.savePendingRequest("thread", request("old"), { runId: "open" });
    await store.saveHitlAnswer("thread", "old", 1);
    await store.saveHitlAnswer("thread", "q1", 1, { runId: "open" });
    const completed = { runId: "open", claimedAt: at(1), completedAt: at(2), completionSeq: 7 };
    const { pending, answers } = WHOLE;
    await store.importThread("thread", { runs: [completed], pending, answers });
    const { items } = await store.listRuns("thread");
    assert.deepEqual([items.length, items[0]?.completionSeq, items[1]], [2, 1, completed]);
    assert.deepEqual(await store.loadPending("thread"), pending);
    assert.deepEqual(await store.listHitlAnswers("thread"), answers);
    await store.importThread("thread", { pending: null, answers: [] });
    assert.equal(await store.loadPending("thread"), undefined);
    assert.deepEqual(await store.listHitlAnswers("thread"), []);
  }),

  conformanceCase("An import at another revision is refused and changes nothing", async ({ store }) => {
    await store.append("thread", [say("mine")]);
    const { revision } = await loaded(store, "thread");
    for (const expectedRevision of [0, revision + 1]) {
      const fields = { threadId: "thread", expected: expectedRevision, actual: revision };
      await rejectsWith(store.importThread("thread", WHOLE, { expectedRevision }), "thread_conflict", fields);
    }
    await rejectsWith(store.importThread("other", WHOLE, { expectedRevision: 1 }), "thread_conflict");
    assert.deepEqual(await texts(store, "thread"), ["mine"]);
    assert.deepEqual([(await loaded(store, "thread")).extra, await store.listHitlAnswers("thread")], [{}, []]);
    assert.deepEqual((await store.listRuns("thread")).items, []);
    await assertAbsent(store, "other");
  }),

  conformanceCase("A part that holds what can't be stored is refused whole, with the path", async ({ store }) => {
    const [run] = RUNS as [RunInfo];
    const bad: [part: object, code: string, path?: string][] = [
      [{ messages: [entry("x", null, 1), { message: raw({ role: "user" }), createdAt: at(1) }] }, "invalid_message"],
      [{ extra: { n: Number.NaN } }, "invalid_message", "extra.n"],
      [{ answers: [{ runId: null, questionId: "q", answer: wrong(1n) }] }, "invalid_message", "answers[0].answer"],
      [{ pending: { request: wrong({}), runId: null } }, "invalid_message"],
      [{ messages: [entry("x", "r".repeat(65), 1)] }, "invalid_id"],
      [{ runs: [{ ...run, runId: "r".repeat(65) }] }, "invalid_id"],
      [{ parentThreadId: "" }, "invalid_id"],
      [{ messages: [{ message: say("x"), createdAt: new Date("never") }] }, "invalid_argument"],
      [{ messages: [{ message: say("x"), createdAt: "2020-02-29" }] }, "invalid_argument"],
      [{ messages: [null] }, "invalid_argument"],
      [{ messages: "x" }, "invalid_argument"],
      [{ runs: [{ ...run, claimedAt: null }] }, "invalid_argument"],
      [{ runs: [{ ...run, completionSeq: 0 }] }, "invalid_argument"],
      [{ runs: [{ ...run, completionSeq: 1.5 }] }, "invalid_argument"],
      [{ runs: [{ ...run, completedAt: null }] }, "invalid_argument"],
    ];
    for (const [part, code, path] of bad) {
      const whole = wrong({ ...WHOLE, ...part });
      await rejectsWith(store.importThread("thread", whole), code, path === undefined ? {} : { path });
    }
    await assertAbsent(store, "thread");
    assert.deepEqual(await store.listHitlAnswers("thread"), []);
  }),

  conformanceCase("Nothing comes of a part without anything, and a copy is taken of every other", async (bench) => {
    const { store } = bench;
    await store.importThread("nothing", { messages: [], runs: [], pending: null, answers: [] });
    await assertAbsent(store, "nothing");
    const part = structuredClone(WHOLE);
    const imported = store.importThread("thread", part);
    part.messages.length = 1;
    part.messages[0]?.createdAt.setTime(0);
    (part.extra as Record<string, unknown>).b = "changed";
    await imported;
    const later = await bench.again();
    assert.deepEqual((await loaded(later, "thread")).extra, WHOLE.extra);
    assert.deepEqual((await later.listMessages("thread")).items[0]?.createdAt, at(0));
    assert.equal((await texts(later, "thread")).length, 5);
  }),

  conformanceCase("An import onto the id of a deleted thread repeats none of its revisions", async ({ store }) => {
    const old = await store.append("thread", [say("1"), say("2"), say("3")]);
    await store.deleteThread("thread");
    const revision = await store.importThread("thread", { messages: MESSAGES.slice(0, 1) }, { expectedRevision: 0 });
    assert.ok(revision > old, `${revision} should be over ${old}`);
  }),

  conformanceCase("Of imports of one part at once, one is made", async ({ store }) => {
    const imports = Array.from({ length: 5 }, () => store.importThread("thread", WHOLE, { expectedRevision: 0 }));
    const results = await Promise.allSettled(imports);
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal((await texts(store, "thread")).length, 5);
  }),
];
