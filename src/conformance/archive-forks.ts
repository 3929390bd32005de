/** Forks of compacted threads: what they keep, what becomes active again, and that they stand on their own. */
import assert from "node:assert/strict";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { textOf } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import {
  archivesOf,
  assertAbsent,
  compact,
  completeRun,
  loaded,
  logOf,
  rejectsWith,
  reply,
  say,
  texts,
} from "./tools.ts";

const archiveCase = (name: string, body: (bench: Bench) => Promise<void>) => conformanceCase(name, body, ["archives"]);

/**
 * Completed runs 1 to 6 of two messages each; archive a1 holds run 1 and the question of 2, a2 the rest of 2, an aborted run
 * and all of 3; 4 and 5 were active then, and 6 came later.
 */
async function makeSource(store: Checkpointer): Promise<void> {
  await completeRun(store, "source", "1");
  await completeRun(store, "source", "2");
  await store.saveExtra("source", { plan: 1 });
  await compact(store, "source", 1, { summary: "first", system: "system 1" });
  await store.append("source", [say("aborted", "aborted")]);
  await completeRun(store, "source", "3");
  await completeRun(store, "source", "4");
  await completeRun(store, "source", "5");
  await compact(store, "source", 4, { summary: "second", system: "system 2" });
  await store.saveExtra("source", { plan: 2 });
  await completeRun(store, "source", "6");
}

const turns = (...runIds: string[]): string[] => runIds.flatMap((runId) => [`ask ${runId}`, `reply ${runId}`]);

/** What a thread's archives hold, positions aside, which are each thread's own. */
async function archivesIn(store: Checkpointer, threadId: string) {
  const { items } = await archivesOf(store).list(threadId);
  return Promise.all(
    items.map(async ({ archiveId }) => {
      const { upTo, atRevision, messages, ...rest } = await archivesOf(store).read(threadId, archiveId);
      assert.equal(upTo, messages.at(-1)?.position, `upTo of ${threadId}'s ${archiveId}`);
      return { ...rest, texts: messages.map(({ message }) => message && textOf(message)) };
    }),
  );
}

export const archiveForkCases = [
  archiveCase("F1 F5 a fork past the cut has its source's summary, archives and context", async (bench) => {
    await makeSource(bench.store);
    await bench.store.fork("source", "fork", { afterRunId: "6" });
    const later = await bench.again();
    const [source, fork] = [await loaded(later, "source"), await loaded(later, "fork")];
    assert.equal(JSON.stringify(fork.messages), JSON.stringify(source.messages));
    assert.deepEqual([fork.summary, fork.kept, fork.extra], ["second", 4, { plan: 2 }]);
    assert.deepEqual(fork.messages.map(textOf), turns("4", "5", "6"));
    const [first, second] = await archivesIn(later, "source");
    assert.deepEqual(await archivesIn(later, "fork"), [
      first,
      // The aborted run does not leak.
      { ...second, messageCount: 3, texts: ["reply 2", ...turns("3")] },
    ]);
    assert.deepEqual([second?.messageCount, second?.system, second?.extra], [4, "system 2", { plan: 1 }]);
    const { upTo } = await archivesOf(later).read("fork", "a2");
    assert.equal(fork.compactedUpTo, upTo);
    const tail = await loaded(later, "fork", (await logOf(later, "fork")).at(-2)?.position);
    assert.deepEqual([tail.messages.map(textOf), tail.tail, tail.kept], [["reply 6"], true, 0]);
  }),

  archiveCase("F2 F4 a fork holds every message it takes once, archived or active", async ({ store }) => {
    await makeSource(store);
    for (const [i, afterRunId] of ["1", "2", "3", "4", "5", "6"].entries()) {
      const target = `fork ${afterRunId}`;
      await store.fork("source", target, { afterRunId });
      const log = await logOf(store, target);
      const expected = turns("1", "2", "3", "4", "5", "6").slice(0, 2 * (i + 1));
      assert.deepEqual(
        log.map(({ message }) => message && textOf(message)),
        expected,
        target,
      );
      const archived = (await archivesIn(store, target)).flatMap((archive) => archive.texts);
      assert.deepEqual([...archived, ...(await texts(store, target))], expected, target);
    }
  }),

  archiveCase("A fork keeps the archives that end before its run does; later ones are active again", async (bench) => {
    const { store } = bench;
    await makeSource(store);
    const expected: [afterRunId: string, archives: string[], summary: string | undefined, active: string[]][] = [
      ["1", [], undefined, turns("1")],
      ["2", ["a1"], "first", ["reply 2"]],
      ["3", ["a1", "a2"], "second", []],
      ["4", ["a1", "a2"], "second", turns("4")],
      ["6", ["a1", "a2"], "second", turns("4", "5", "6")],
    ];
    for (const [afterRunId] of expected) await store.fork("source", `fork ${afterRunId}`, { afterRunId });
    const later = await bench.again();
    for (const [afterRunId, ids, summary, active] of expected) {
      const target = `fork ${afterRunId}`;
      const fork = await loaded(later, target);
      assert.deepEqual([fork.summary, fork.messages.map(textOf)], [summary, active], target);
      assert.equal("kept" in fork, summary !== undefined, target);
      const { items } = await archivesOf(later).list(target);
      assert.deepEqual(
        items.map(({ archiveId }) => archiveId),
        ids,
        target,
      );
    }
    assert.equal((await loaded(later, "fork 4")).kept, 2);
    assert.equal((await loaded(later, "fork 2")).kept, 1);
  }),

  archiveCase("contextAfter is what the fork loads, and snapshot its messages", async (bench) => {
    const { store } = bench;
    await makeSource(store);
    for (const afterRunId of ["1", "2", "3", "4", "5", "6"]) {
      const context = await archivesOf(store).contextAfter("source", { afterRunId });
      await store.fork("source", `fork ${afterRunId}`, { afterRunId });
      const { messages, summary } = await loaded(store, `fork ${afterRunId}`);
      assert.equal(JSON.stringify(context.messages), JSON.stringify(messages), afterRunId);
      assert.equal(context.summary, summary, afterRunId);
      assert.equal("summary" in context, summary !== undefined, afterRunId);
      assert.deepEqual(await store.snapshot("source", { afterRunId }), messages, afterRunId);
    }
    const contextAfter = (threadId: string, afterRunId: string) =>
      archivesOf(store).contextAfter(threadId, { afterRunId });
    await rejectsWith(contextAfter("source", "aborted"), "run_not_completed");
    await rejectsWith(contextAfter("source", "unknown"), "run_not_completed");
    await rejectsWith(contextAfter("missing", "1"), "thread_not_found");
    await rejectsWith(contextAfter("source", ""), "invalid_id");
  }),

  archiveCase("F8 a fork that would need what retention removed is refused and leaves nothing", async (bench) => {
    const { store } = bench;
    await makeSource(store);
    await archivesOf(store).prune("source", { keep: 1 });
    await rejectsWith(store.fork("source", "fork", { afterRunId: "1" }), "archive_pruned");
    // Of run 2 the question is gone, under the summary that stays; the answer is there.
    assert.deepEqual((await store.snapshot("source", { afterRunId: "2" })).map(textOf), ["reply 2"]);
    await compact(store, "source", 2, { summary: "third" });
    await archivesOf(store).prune("source", { keep: 1 });
    const before = await loaded(store, "source");
    await store.append("taken", [say("mine")]);
    for (const afterRunId of ["1", "2"]) {
      await rejectsWith(store.fork("source", "fork", { afterRunId }), "archive_pruned");
      await rejectsWith(store.snapshot("source", { afterRunId }), "archive_pruned");
      await rejectsWith(archivesOf(store).contextAfter("source", { afterRunId }), "archive_pruned");
    }
    const later = await bench.again();
    await assertAbsent(later, "fork");
    assert.deepEqual((await archivesOf(later).list("fork")).items, []);
    assert.deepEqual(await loaded(later, "source"), before);
    await later.fork("source", "fork", { afterRunId: "6" });
    assert.deepEqual(await texts(later, "fork"), turns("6"));
    assert.equal((await loaded(later, "fork")).summary, "third");
  }),

  archiveCase("A fork past what retention removed keeps the summaries, and says what is gone", async ({ store }) => {
    await makeSource(store);
    await archivesOf(store).prune("source", { keep: 1 });
    await store.fork("source", "fork", { afterRunId: "5" });
    const archives = archivesOf(store);
    const [source, fork] = [(await archives.list("source")).items, (await archives.list("fork")).items];
    const plain = ({ archiveId, createdAt, summary, prunedAt }: (typeof fork)[number]) => [
      archiveId,
      createdAt,
      summary,
      prunedAt,
    ];
    assert.deepEqual(fork.map(plain), source.map(plain));
    assert.deepEqual(
      fork.map(({ messageCount }) => messageCount),
      [0, 3],
    );
    await rejectsWith(archives.read("fork", "a1"), "archive_pruned");
    const { messages, previousSummary } = await archives.read("fork", "a2");
    assert.deepEqual([messages.length, previousSummary], [3, "first"]);
    assert.deepEqual(await texts(store, "fork"), turns("4", "5"));
    await store.append("fork", [say("more")]);
    assert.equal((await compact(store, "fork", 1)).archiveId, "a3");
  }),

  archiveCase("A fork and its source are compacted, pruned and deleted each on its own", async (bench) => {
    const { store } = bench;
    await makeSource(store);
    await store.fork("source", "fork", { afterRunId: "6" });
    const source = [await loaded(store, "source"), await archivesIn(store, "source")];
    const { archiveId, messageCount } = await compact(store, "fork", 1, { summary: "the fork's" });
    assert.deepEqual([archiveId, messageCount], ["a3", 5]);
    assert.deepEqual([(await loaded(store, "fork")).summary, await texts(store, "fork")], ["the fork's", ["reply 6"]]);
    await archivesOf(store).prune("fork", { keep: 2 });
    assert.deepEqual([await loaded(store, "source"), await archivesIn(store, "source")], source);
    await archivesOf(store).prune("source", { keep: 1 });
    const fork = await archivesOf(store).read("fork", "a2");
    await store.deleteThread("source");
    const later = await bench.again();
    assert.deepEqual(await archivesOf(later).read("fork", "a2"), fork);
    assert.equal((await archivesOf(later).read("fork", "a3")).messages.length, 5);
    assert.equal((await loaded(later, "fork")).summary, "the fork's");
    await later.deleteThread("fork");
    assert.deepEqual((await archivesOf(later).list("fork")).items, []);
  }),

  archiveCase("F4 a fork of a fork has every archive and message once", async (bench) => {
    const { store } = bench;
    await makeSource(store);
    await store.fork("source", "fork", { afterRunId: "4" });
    await completeRun(store, "fork", "other 5");
    await compact(store, "fork", 1, { summary: "third" });
    await store.append("fork", [reply("open", "open")]);
    await store.fork("fork", "again", { afterRunId: "other 5" });
    const later = await bench.again();
    const [of, again] = [await archivesIn(later, "fork"), await archivesIn(later, "again")];
    assert.deepEqual(again, of);
    assert.deepEqual(
      again.map((archive) => archive.texts),
      [
        ["ask 1", "reply 1", "ask 2"],
        ["reply 2", "ask 3", "reply 3"],
        ["ask 4", "reply 4", "ask other 5"],
      ],
    );
    const { messages, summary, kept } = await loaded(later, "again");
    assert.deepEqual([messages.map(textOf), summary, kept], [["reply other 5"], "third", 1]);
    await later.fork("again", "third", { afterRunId: "4" });
    assert.deepEqual(await texts(later, "third"), turns("4"));
  }),

  archiveCase(
    "F1 a fork keeps what ends before the last of its runs does, whichever was completed last",
    async ({ store }) => {
      for (const runId of ["long", "short"]) await store.claimRun("source", runId);
      await store.append("source", [say("1", "long"), say("2", "short"), say("3", "short")]);
      await compact(store, "source", 1, { summary: "first" });
      await store.markRunComplete("source", "short");
      await store.markRunComplete("source", "long");
      await store.fork("source", "of both", { afterRunId: "long" });
      assert.deepEqual([await texts(store, "of both"), (await loaded(store, "of both")).summary], [["3"], "first"]);
      await store.fork("source", "of short", { afterRunId: "short" });
      assert.deepEqual(
        (await archivesIn(store, "of short")).map((archive) => archive.texts),
        [["2"]],
      );
    },
  ),

  archiveCase("A fork takes the messages that no run wrote, archived and active ones", async ({ store }) => {
    await store.append("source", [say("before runs")]);
    await completeRun(store, "source", "1");
    await compact(store, "source", 1, { summary: "first" });
    await store.append("source", [say("between")]);
    await completeRun(store, "source", "2");
    await store.append("source", [say("after")]);
    await store.fork("source", "fork", { afterRunId: "2" });
    assert.deepEqual(await texts(store, "fork"), ["reply 1", "between", ...turns("2"), "after"]);
    assert.deepEqual(
      (await archivesIn(store, "fork")).map((archive) => archive.texts),
      [["before runs", "ask 1"]],
    );
    await store.fork("source", "of one", { afterRunId: "1" });
    assert.deepEqual(
      [await texts(store, "of one"), (await loaded(store, "of one")).kept],
      [["reply 1", "between", "after"], 1],
    );
  }),
];
