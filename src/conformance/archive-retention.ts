/** Retention of archives: the newest stay, the waiting run's stay, and what was removed is told. */
import assert from "node:assert/strict";
import { textOf } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import { archivesOf, archiveTexts, completeRun, loaded, logOf, rejectsWith, request, say, wrong } from "./tools.ts";

const archiveCase = (name: string, body: (bench: Bench) => Promise<void>) => conformanceCase(name, body, ["archives"]);

/** As many archives of two messages each, and one active message. */
async function fill({ store }: Bench, count: number, threadId = "thread"): Promise<void> {
  for (let i = 1; i <= count; i++) await archiveTexts(store, threadId, [`${i} a`, `${i} b`]);
  await store.append(threadId, [say("active")]);
}

const said = async ({ store }: Bench, threadId = "thread") =>
  (await logOf(store, threadId)).map(({ message }) => message && textOf(message));

export const archiveRetentionCases = [
  archiveCase("Retention keeps the newest archives, and of the others their summaries", async (bench) => {
    const { store } = bench;
    await fill(bench, 4);
    await fill(bench, 3, "other");
    const before = { checkpoint: await loaded(store, "thread"), log: await logOf(store, "thread") };
    const { items } = await archivesOf(store).list("thread");
    const newest = await archivesOf(store).read("thread", "a3");
    assert.deepEqual(await archivesOf(store).prune("thread", { keep: 2 }), { pruned: ["a1", "a2"], protected: [] });

    const later = await bench.again();
    const archives = archivesOf(later);
    assert.deepEqual(await loaded(later, "thread"), before.checkpoint);
    assert.deepEqual(await logOf(later, "thread"), before.log.slice(4));
    const listed = (await archives.list("thread")).items;
    for (const [i, { prunedAt, ...rest }] of listed.entries()) {
      const { prunedAt: _, ...kept } = items[i] ?? assert.fail("an archive more than before");
      assert.deepEqual(rest, i < 2 ? { ...kept, messageCount: 0 } : kept);
      assert.equal(prunedAt instanceof Date, i < 2);
    }
    assert.equal(listed.length, 4);
    await rejectsWith(archives.read("thread", "a1"), "archive_pruned");
    await rejectsWith(archives.read("thread", "a2"), "archive_pruned");
    assert.deepEqual(await archives.read("thread", "a3"), newest);
    const [thread] = (await later.listThreads({ prefix: "thread" })).items;
    assert.deepEqual([thread?.messageCount, thread?.revision], [5, before.checkpoint.revision]);
    assert.equal((await logOf(later, "other")).length, 7);
  }),

  archiveCase("The current archive is always kept, and a thread goes on after retention", async (bench) => {
    const { store } = bench;
    await fill(bench, 3);
    const { revision } = await loaded(store, "thread");
    assert.deepEqual((await archivesOf(store).prune("thread", { keep: 1 })).pruned, ["a1", "a2"]);
    const next = await store.append("thread", [say("more")], { expectedRevision: revision });
    assert.ok(next > revision);
    const upTo = (await logOf(store, "thread")).at(-2)?.position ?? 0;
    const info = await archivesOf(store).compact("thread", { upTo, summary: "fourth", expectedRevision: next });
    assert.deepEqual([info.archiveId, info.messageCount], ["a4", 1]);
    assert.deepEqual(await said(bench), ["3 a", "3 b", "active", "more"]);
    assert.deepEqual((await archivesOf(store).prune("thread", { keep: 1 })).pruned, ["a3"]);
    const later = await bench.again();
    assert.deepEqual(await said({ ...bench, store: later }), ["active", "more"]);
    assert.deepEqual((await loaded(later, "thread")).messages.map(textOf), ["more"]);
    assert.equal((await archivesOf(later).read("thread", "a4")).previousSummary, "summary");
  }),

  archiveCase("Retention of nothing is harmless: nothing old, nothing more, no thread", async (bench) => {
    const { store } = bench;
    await fill(bench, 3);
    const archives = archivesOf(store);
    const nothing = { pruned: [], protected: [] };
    for (const keep of [0, -0, 3, 4, 10_000]) assert.deepEqual(await archives.prune("thread", { keep }), nothing);
    assert.equal((await logOf(store, "thread")).length, 7);
    assert.deepEqual((await archives.prune("thread", { keep: 2 })).pruned, ["a1"]);
    const listed = await archives.list("thread");
    assert.deepEqual(await archives.prune("thread", { keep: 2 }), nothing);
    assert.deepEqual(await archives.prune("thread", { keep: 0 }), nothing);
    assert.deepEqual(await archives.list("thread"), listed);
    await store.append("never compacted", [say("1")]);
    for (const threadId of ["missing", "never compacted"]) {
      assert.deepEqual(await archives.prune(threadId, { keep: 1 }), nothing);
    }
    assert.equal(await store.load("missing"), undefined);
    assert.equal((await logOf(store, "never compacted")).length, 1);
  }),

  archiveCase("W11 what is no number of archives is refused, and removes nothing", async (bench) => {
    await fill(bench, 2);
    const bad = [
      -1,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 53,
      10_001,
      wrong("1"),
      wrong(null),
      wrong(undefined),
    ];
    for (const keep of bad) {
      await rejectsWith(archivesOf(bench.store).prune("thread", { keep }), "invalid_argument");
    }
    assert.equal((await logOf(bench.store, "thread")).length, 5);
  }),

  archiveCase(
    "W8 an archive of the run that waits on a person is kept and reported, and the rest is removed",
    async (bench) => {
      const { store } = bench;
      const archives = archivesOf(store);
      await archiveTexts(store, "thread", ["1"]);
      for (const summary of ["2", "3"]) {
        const upTo = await store.append("thread", [say(`${summary} before`), say(`${summary} waiting`, "waiting")]);
        await archives.compact("thread", { upTo, summary });
      }
      await archiveTexts(store, "thread", ["4"]);
      await archiveTexts(store, "thread", ["5"]);
      await store.savePendingRequest("thread", request("q"), { runId: "waiting" });
      const { pruned, protected: kept } = await archives.prune("thread", { keep: 1 });
      assert.deepEqual(
        [pruned, kept.map(({ archiveId }) => archiveId)],
        [
          ["a1", "a4"],
          ["a2", "a3"],
        ],
      );
      for (const { reason } of kept) assert.ok(reason.length > 10, "a reason should be given");
      assert.deepEqual(await said(bench), ["2 before", "2 waiting", "3 before", "3 waiting", "5"]);
      assert.equal((await archives.read("thread", "a3")).messages.length, 2);
      await store.answerPending("thread", { questionId: "q", runId: "waiting", answer: true });
      // The newest two are a4, of which nothing is left, and a5.
      assert.deepEqual(await archives.prune("thread", { keep: 2 }), { pruned: ["a2", "a3"], protected: [] });
      assert.deepEqual(await said(bench), ["5"]);
    },
  ),

  archiveCase("W8 a question of no run, or of a run that is not archived, protects nothing", async (bench) => {
    const { store } = bench;
    for (const runId of [null, "elsewhere"]) {
      const threadId = `thread of ${runId}`;
      await fill(bench, 2, threadId);
      await store.savePendingRequest(threadId, request("q"), { runId });
      const report = await archivesOf(store).prune(threadId, { keep: 1 });
      assert.deepEqual(report, { pruned: ["a1"], protected: [] });
    }
  }),

  archiveCase("Runs whose messages were removed stay completed", async ({ store }) => {
    await completeRun(store, "thread", "one");
    const archives = archivesOf(store);
    await archives.compact("thread", { upTo: (await loaded(store, "thread")).revision, summary: "one" });
    await completeRun(store, "thread", "two");
    await archives.compact("thread", { upTo: (await loaded(store, "thread")).revision, summary: "two" });
    await completeRun(store, "thread", "three");
    await archives.prune("thread", { keep: 1 });
    await rejectsWith(store.append("thread", [say("late", "one")]), "run_already_completed");
    await rejectsWith(store.claimRun("thread", "one"), "run_already_completed");
    const completed = (await store.listRuns("thread")).items.map(({ runId, completionSeq }) => [runId, completionSeq]);
    assert.deepEqual(completed, [
      ["one", 1],
      ["three", 3],
      ["two", 2],
    ]);
    const { messages, summary } = await archives.contextAfter("thread", { afterRunId: "three" });
    assert.deepEqual([messages.map(textOf), summary], [["ask three", "reply three"], "two"]);
  }),

  archiveCase("A thread is deleted whole after retention too", async (bench) => {
    await fill(bench, 3);
    await archivesOf(bench.store).prune("thread", { keep: 1 });
    assert.equal(await bench.store.deleteThread("thread"), true);
    const later = await bench.again();
    assert.equal(await later.load("thread"), undefined);
    assert.deepEqual((await archivesOf(later).list("thread")).items, []);
  }),
];
