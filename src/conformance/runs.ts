/** Runs: claimed once, completed once, and final then. */
import assert from "node:assert/strict";
import { conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, rejectsWith, reply, say, settle, texts } from "./tools.ts";

export const runCases = [
  conformanceCase("A run is claimed once and completed once", async ({ store }) => {
    await store.claimRun("thread", "run");
    await rejectsWith(store.claimRun("thread", "run"), "run_already_claimed");
    await store.markRunComplete("thread", "run");
    await rejectsWith(store.claimRun("thread", "run"), "run_already_completed");
  }),

  conformanceCase(
    "Completing a completed run again is harmless, and an unclaimed one is refused",
    async ({ store }) => {
      await store.claimRun("thread", "run");
      await rejectsWith(store.markRunComplete("thread", "other"), "run_not_claimed");
      await rejectsWith(store.markRunComplete("elsewhere", "run"), "run_not_claimed");
      await store.markRunComplete("thread", "run");
      const before = await store.listRuns("thread");
      await store.markRunComplete("thread", "run");
      assert.deepEqual(await store.listRuns("thread"), before);
      await assertAbsent(store, "elsewhere");
    },
  ),

  conformanceCase("Of those who claim a run at once, one gets it", async ({ store }) => {
    const { resolved, refused } = await settle(Array.from({ length: 8 }, () => store.claimRun("thread", "run")));
    assert.deepEqual([resolved.length, refused.length], [1, 7]);
    for (const error of refused) await rejectsWith(Promise.reject(error), "run_already_claimed");
  }),

  conformanceCase(
    "Of two stores that claim a run at once, one gets it",
    async ({ store, other }) => {
      const second = await other();
      const { resolved } = await settle([store, second].map((owner) => owner.claimRun("thread", "run")));
      assert.equal(resolved.length, 1);
      await second.markRunComplete("thread", "run");
      await rejectsWith(store.append("thread", [say("late", "run")]), "run_already_completed");
    },
    ["multiProcess"],
  ),

  conformanceCase("Runs of the same id in two threads are two runs", async ({ store }) => {
    await completeRun(store, "a", "run");
    await store.claimRun("b", "run");
    await store.append("b", [say("b", "run")]);
    await store.markRunComplete("b", "run");
    await rejectsWith(store.append("a", [say("a", "run")]), "run_already_completed");
  }),

  conformanceCase("A claimed run alone is not a thread with messages", async ({ store }) => {
    await store.claimRun("thread", "run");
    assert.equal(await store.load("thread"), undefined);
  }),

  conformanceCase("Nothing is added to a completed run", async ({ store }) => {
    await completeRun(store, "thread", "run");
    await rejectsWith(store.append("thread", [reply("late", "run")]), "run_already_completed");
    await rejectsWith(store.append("thread", [say("fine"), reply("late", "run")]), "run_already_completed");
    assert.deepEqual(await texts(store, "thread"), ["ask run", "reply run"]);
    await store.append("thread", [say("of no run"), say("of a run that nobody claimed", "loose")]);
    assert.equal((await texts(store, "thread")).length, 4);
  }),

  conformanceCase("Completion numbers count from 1 within a thread, in the order of completion", async ({ store }) => {
    await completeRun(store, "elsewhere", "x");
    for (const runId of ["a", "b", "c"]) await store.claimRun("thread", runId);
    const sequence = async (): Promise<[string, number | null][]> =>
      (await store.listRuns("thread")).items.map((run) => [run.runId, run.completionSeq]);
    await store.markRunComplete("thread", "b");
    await store.markRunComplete("thread", "a");
    assert.deepEqual(await sequence(), [
      ["a", 2],
      ["b", 1],
      ["c", null],
    ]);
    await store.markRunComplete("thread", "b");
    await store.markRunComplete("thread", "c");
    assert.deepEqual(await sequence(), [
      ["a", 2],
      ["b", 1],
      ["c", 3],
    ]);
  }),

  conformanceCase("Runs completed at once get numbers of their own", async ({ store }) => {
    const ids = Array.from({ length: 8 }, (_, i) => `run ${i}`);
    await Promise.all(ids.map((id) => store.claimRun("thread", id)));
    await Promise.all(ids.map((id) => store.markRunComplete("thread", id)));
    const { items } = await store.listRuns("thread");
    assert.deepEqual(items.map((run) => run.completionSeq).sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  }),

  conformanceCase("Y6 a new run's id has at most 64 characters, of any script", async ({ store }) => {
    for (const [i, char] of ["a", "é", "🦄"].entries()) {
      const fits = char.repeat(64);
      await store.claimRun("thread", fits);
      await store.append("thread", [say(`${i}`, fits)]);
      await store.markRunComplete("thread", fits);
      await rejectsWith(store.append("thread", [say("late", fits)]), "run_already_completed");
      const tooLong = char.repeat(65);
      await rejectsWith(store.claimRun("thread", tooLong), "invalid_id");
      await rejectsWith(store.append("thread", [say("x", tooLong)]), "invalid_id");
      await rejectsWith(store.markRunComplete("thread", tooLong), "run_not_claimed");
    }
    assert.deepEqual(await texts(store, "thread"), ["0", "1", "2"]);
    const { items } = await store.listRuns("thread");
    assert.deepEqual(
      items.map((run) => [...run.runId].length),
      [64, 64, 64],
    );
  }),

  conformanceCase("A deleted thread's runs are gone, and their ids free again", async ({ store }) => {
    await completeRun(store, "thread", "done");
    await store.claimRun("thread", "open");
    await store.deleteThread("thread");
    await rejectsWith(store.markRunComplete("thread", "open"), "run_not_claimed");
    await completeRun(store, "thread", "done");
    const { items } = await store.listRuns("thread");
    assert.deepEqual(
      items.map((run) => [run.runId, run.completionSeq]),
      [["done", 1]],
    );
  }),
];
