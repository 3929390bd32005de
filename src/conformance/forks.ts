/** Snapshots and forks: completed runs only, whole or not at all, and independent of the source afterwards. */
import assert from "node:assert/strict";
import { textOf } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, rejectsWith, reply, request, say, settle, texts, wrong } from "./tools.ts";

/** A message from before runs, two completed runs, one that is under way, and one that nobody claimed. */
async function makeSource({ store }: Bench): Promise<void> {
  await store.append("source", [say("from before runs")]);
  await completeRun(store, "source", "one");
  await completeRun(store, "source", "two");
  await store.claimRun("source", "open");
  await store.append("source", [say("under way", "open"), say("unclaimed", "loose")]);
  await store.saveExtra("source", { plan: { step: 1 } });
}

const UP_TO_ONE = ["from before runs", "ask one", "reply one"];
const UP_TO_TWO = [...UP_TO_ONE, "ask two", "reply two"];

export const forkCases = [
  conformanceCase(
    "F5 a snapshot holds the completed runs up to the given one, and what no run wrote",
    async (bench) => {
      await makeSource(bench);
      const upTo = async (afterRunId: string): Promise<string[]> =>
        (await bench.store.snapshot("source", { afterRunId })).map(textOf);
      assert.deepEqual(await upTo("one"), UP_TO_ONE);
      assert.deepEqual(await upTo("two"), UP_TO_TWO);
    },
  ),

  conformanceCase("F2 F5 a fork holds what the snapshot gives, unchanged and in order", async (bench) => {
    await makeSource(bench);
    const snapshot = await bench.store.snapshot("source", { afterRunId: "two" });
    await bench.store.fork("source", "fork", { afterRunId: "two" });
    const fork = await loaded(await bench.again(), "fork");
    assert.equal(JSON.stringify(fork.messages), JSON.stringify(snapshot));
    assert.equal(fork.parentThreadId, "source");
    assert.ok(fork.revision > 0);
  }),

  conformanceCase(
    "Runs count in the order they completed, and messages stand in the order of the log",
    async ({ store }) => {
      for (const runId of ["first", "second", "third"]) await store.claimRun("source", runId);
      for (const part of ["a", "b"]) {
        for (const runId of ["first", "second", "third"])
          await store.append("source", [say(`${runId} ${part}`, runId)]);
      }
      for (const runId of ["third", "first", "second"]) await store.markRunComplete("source", runId);
      await store.fork("source", "fork", { afterRunId: "first" });
      assert.deepEqual(await texts(store, "fork"), ["first a", "third a", "first b", "third b"]);
      await store.fork("source", "fork of third", { afterRunId: "third" });
      assert.deepEqual(await texts(store, "fork of third"), ["third a", "third b"]);
    },
  ),

  conformanceCase("A fork copies extra and puts metadata under extra.fork", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    await store.fork("source", "plain", { afterRunId: "one" });
    assert.deepEqual((await loaded(store, "plain")).extra, { plan: { step: 1 } });
    const metadata = { reason: "try", nested: [null, "\0"] };
    await store.fork("source", "labelled", { afterRunId: "one", metadata });
    assert.deepEqual((await loaded(store, "labelled")).extra, { plan: { step: 1 }, fork: metadata });
    await store.saveExtra("plain", { plan: 2 });
    assert.deepEqual((await loaded(store, "source")).extra, { plan: { step: 1 } });
  }),

  conformanceCase("A fork of a thread without extra has none but its metadata", async ({ store }) => {
    await completeRun(store, "source", "one");
    await store.fork("source", "plain", { afterRunId: "one" });
    await store.fork("source", "labelled", { afterRunId: "one", metadata: {} });
    assert.deepEqual((await loaded(store, "plain")).extra, {});
    assert.deepEqual((await loaded(store, "labelled")).extra, { fork: {} });
  }),

  conformanceCase("A fork has the completed runs and no other", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    await store.fork("source", "fork", { afterRunId: "one" });
    assert.deepEqual(
      (await store.listRuns("fork")).items.map((run) => run.runId),
      ["one"],
    );
    await rejectsWith(store.append("fork", [say("late", "one")]), "run_already_completed");
    await rejectsWith(store.claimRun("fork", "one"), "run_already_completed");
    await completeRun(store, "fork", "two");
    await completeRun(store, "fork", "open");
    assert.deepEqual((await store.snapshot("fork", { afterRunId: "one" })).map(textOf), UP_TO_ONE);
    assert.deepEqual((await store.snapshot("fork", { afterRunId: "two" })).map(textOf), UP_TO_TWO);
  }),

  conformanceCase("A fork does not copy the pending request", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    await store.savePendingRequest("source", request("q"), { runId: "open" });
    await store.fork("source", "fork", { afterRunId: "two" });
    assert.equal(await store.loadPending("fork"), undefined);
    assert.equal((await store.loadPending("source"))?.request.question_id, "q");
  }),

  conformanceCase("F4 a fork of a fork has every message once", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    await store.fork("source", "fork", { afterRunId: "two" });
    await completeRun(store, "fork", "three");
    await store.fork("fork", "again", { afterRunId: "three" });
    await store.append("again", [say("more")]);
    assert.deepEqual(await texts(store, "again"), [...UP_TO_TWO, "ask three", "reply three", "more"]);
    assert.equal((await loaded(store, "again")).parentThreadId, "fork");
  }),

  conformanceCase("L1 a fork and its source each keep their own turns", async (bench) => {
    const { store } = bench;
    await completeRun(store, "source", "one");
    await store.fork("source", "fork", { afterRunId: "one" });
    const [source, fork] = await Promise.all([loaded(store, "source"), loaded(store, "fork")]);
    await store.append("source", [say("source's second")], { expectedRevision: source.revision });
    await store.append("fork", [say("fork's second"), reply("yes")], { expectedRevision: fork.revision });
    const later = await bench.again();
    assert.deepEqual(await texts(later, "source"), ["ask one", "reply one", "source's second"]);
    assert.deepEqual(await texts(later, "fork"), ["ask one", "reply one", "fork's second", "yes"]);
  }),

  conformanceCase("F8 a fork that is refused leaves nothing", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    const to = (afterRunId: string, metadata = {}) => store.fork("source", "fork", { afterRunId, metadata });
    await rejectsWith(to("open"), "run_not_completed");
    await rejectsWith(to("loose"), "run_not_completed");
    await rejectsWith(to("unknown"), "run_not_completed");
    await rejectsWith(to("one", wrong({ bad: 1n })), "invalid_message");
    await rejectsWith(to("one", wrong([])), "invalid_message");
    await rejectsWith(store.fork("missing", "fork", { afterRunId: "one" }), "thread_not_found");
    await assertAbsent(store, "fork");
    await assertAbsent(store, "missing");
    assert.equal(await store.deleteThread("fork"), false);
    await rejectsWith(store.snapshot("source", { afterRunId: "open" }), "run_not_completed");
    await rejectsWith(store.snapshot("source", { afterRunId: "unknown" }), "run_not_completed");
    await rejectsWith(store.snapshot("missing", { afterRunId: "one" }), "thread_not_found");
  }),

  conformanceCase("F8 a fork onto an existing thread is refused and leaves it as it was", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    await store.append("has messages", [say("mine")]);
    await store.saveExtra("has extra", { mine: 1 });
    await store.claimRun("has a run", "one");
    await store.savePendingRequest("has a request", request("q"));
    await store.saveHitlAnswer("has an answer", "q", 1);
    await store.fork("source", "has a fork", { afterRunId: "one" });
    const there = ["has messages", "has extra", "has a run", "has a request", "has an answer", "has a fork", "source"];
    for (const target of there) {
      const before = await store.load(target);
      const fork = store.fork("source", target, { afterRunId: "two", metadata: { again: true } });
      await rejectsWith(fork, "thread_already_exists");
      assert.deepEqual(await store.load(target), before);
    }
    assert.ok(await store.loadPending("has a request"));
    assert.equal(await store.loadHitlAnswer("has an answer", "q"), 1);
  }),

  conformanceCase("A fork onto the id of a deleted thread repeats none of its revisions", async (bench) => {
    await makeSource(bench);
    const old = await bench.store.append("fork", [say("1"), say("2"), say("3")]);
    await bench.store.deleteThread("fork");
    await bench.store.fork("source", "fork", { afterRunId: "one" });
    const { revision } = await loaded(bench.store, "fork");
    assert.ok(revision > old, `${revision} should be over ${old}`);
  }),

  conformanceCase("F8 of forks to one target at once, one is made", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    const forks = Array.from({ length: 5 }, () => store.fork("source", "fork", { afterRunId: "two" }));
    const { resolved, refused } = await settle(forks);
    assert.equal(resolved.length, 1);
    for (const error of refused) await rejectsWith(Promise.reject(error), "thread_already_exists");
    assert.deepEqual(await texts(store, "fork"), UP_TO_TWO);
  }),

  conformanceCase("Deleting a source leaves its forks whole, and the other way round", async (bench) => {
    const { store } = bench;
    await makeSource(bench);
    await store.fork("source", "kept", { afterRunId: "two" });
    await store.fork("source", "dropped", { afterRunId: "two" });
    await store.deleteThread("dropped");
    assert.deepEqual((await texts(store, "source")).length, 7);
    await store.deleteThread("source");
    const later = await bench.again();
    assert.deepEqual(await texts(later, "kept"), UP_TO_TWO);
    assert.deepEqual((await loaded(later, "kept")).extra, { plan: { step: 1 } });
    await completeRun(later, "kept", "three");
    assert.equal((await later.snapshot("kept", { afterRunId: "three" })).length, 7);
  }),
];
