/** copyThreads of compacted threads: archives go along whole, and the active context is the same. */
import { describe, expect, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { copyThreads } from "../../src/copy/copy.ts";
import { assistantMessage, userMessage } from "../../src/messages/construct.ts";
import { everything, makeStore, PAIRS } from "./stores.ts";

/** Six runs; compacted after the second and the fourth with a tail kept, and pruned to one archive when told to. */
async function compactedThread(store: Checkpointer, { prune = false } = {}): Promise<void> {
  for (let run = 1; run <= 6; run++) {
    const run_id = `run-${run}`;
    await store.claimRun("t", run_id);
    const asked = userMessage(`question ${run} \u{1f600}\u0000`, { run_id });
    await store.append("t", [asked, assistantMessage(`answer ${run}`, { run_id })]);
    await store.markRunComplete("t", run_id);
    await store.saveExtra("t", { run });
    if (run === 3 || run === 5) await compact(store, `what was said up to ${run - 1}`);
  }
  if (prune) await store.archives?.prune("t", { keep: 1 });
}

/** All but the last run is set aside. */
async function compact(store: Checkpointer, summary: string): Promise<void> {
  const { items } = await store.listMessages("t");
  const upTo = items.at(-3)?.position ?? 0;
  await store.archives?.compact("t", { upTo, summary, system: "Be kind." });
}

/** The archives and the active context, without what is each store's own. */
async function archived(store: Checkpointer) {
  const loaded = await store.load("t");
  const { items = [] } = (await store.archives?.list("t")) ?? {};
  const archives = await Promise.all(
    items.map(async ({ upTo, atRevision, ...info }) => {
      if (info.prunedAt) return info;
      const { messages, previousSummary, system, extra } = (await store.archives?.read("t", info.archiveId)) ?? {};
      return { ...info, previousSummary, system, extra, messages: messages?.map(({ message }) => message) };
    }),
  );
  return { active: loaded?.messages, summary: loaded?.summary, kept: loaded?.kept, archives };
}

const REFUSED = /compacted, and the target keeps no archives/;

describe.each(PAIRS)("from %s to %s", (from, to) => {
  test.for([false, true])("F1 a compacted thread is copied with its archives (pruned: %s)", async (prune, { skip }) => {
    const source = await makeStore(from);
    const target = await makeStore(to);
    if (!source.archives) return skip(`The ${from} store keeps no archives.`);
    await compactedThread(source, { prune });
    const report = await copyThreads(source, target);
    if (!target.archives) {
      expect(report.damaged).toMatchObject([{ threadId: "t", reason: expect.stringMatching(REFUSED) }]);
      expect(await target.load("t")).toBeUndefined();
      return;
    }
    expect(report).toMatchObject({ copied: 1, conflicts: [], damaged: [], differences: [] });
    expect(await archived(target)).toEqual(await archived(source));
    expect(await everything(target, "t")).toEqual(await everything(source, "t"));
    expect(await copyThreads(source, target)).toMatchObject({ copied: 0, unchanged: 1 });
    // A fork there is what a fork here would be.
    for (const store of [source, target]) await store.fork("t", "fork", { afterRunId: "run-5" });
    const [here, there] = [await source.load("fork"), await target.load("fork")];
    expect(there).toEqual({ ...here, revision: there?.revision, compactedUpTo: there?.compactedUpTo });
  });

  test("a thread that was compacted after it was copied is compacted in the copy too", async ({ skip }) => {
    const source = await makeStore(from);
    const target = await makeStore(to);
    if (!source.archives || !target.archives) return skip("One of them keeps no archives.");
    await compactedThread(source);
    await copyThreads(source, target);
    await compact(source, "all of it");
    expect(await copyThreads(source, target)).toMatchObject({ continued: 1, conflicts: [] });
    expect(await archived(target)).toEqual(await archived(source));
  });

  test("a thread that was compacted otherwise in the target is a conflict, and stays", async ({ skip }) => {
    const source = await makeStore(from);
    const target = await makeStore(to);
    if (!source.archives || !target.archives) return skip("One of them keeps no archives.");
    await compactedThread(source);
    await copyThreads(source, target);
    await compact(target, "the target's own");
    const before = await archived(target);
    const { conflicts } = await copyThreads(source, target);
    expect(conflicts).toMatchObject([{ threadId: "t", reason: "it was compacted otherwise" }]);
    expect(await archived(target)).toEqual(before);
  });
});
