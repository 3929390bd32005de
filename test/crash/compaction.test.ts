/** Kills a process at every step of a compaction, and goes on in another. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { text, toolCall } from "../../src/messages/construct.ts";
import { danglingCalls } from "../../src/messages/pairing.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { type Engine, openStore, STEPS, storyAgent, summariser, THREAD } from "./compaction-story.ts";

const STORY = new URL("./compaction-story.ts", import.meta.url);
const ENGINES: Engine[] = ["json", "sqlite"];

const points = ENGINES.flatMap((engine) =>
  Array.from({ length: STEPS }, (_, i) => i + 1).flatMap((n) => [
    { engine, n, when: "before" },
    { engine, n, when: "after" },
  ]),
);

for (const engine of ENGINES) {
  test.concurrent(`the story has as many steps as are tried, on ${engine}`, async ({ onTestFinished }) => {
    const dir = tempDir(onTestFinished);
    const { code, stderr, lines } = await ended(startChild(STORY, [engine, dir, String(STEPS + 1), "before"]));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    await using checkpointer = await openStore(engine, dir);
    const archives = (await checkpointer.archives?.list(THREAD))?.items ?? [];
    expect(archives.map(({ archiveId, prunedAt }) => [archiveId, prunedAt !== null])).toEqual([
      ["a1", true],
      ["a2", false],
      ["a3", false],
    ]);
    expect(lines).toHaveLength(12);
  });
}

for (const { engine, n, when } of points) {
  test.concurrent(`D13 L25 killed ${when} step ${n} on ${engine}: each message is active or archived, and the next prompt works`, async ({
    onTestFinished,
  }) => {
    const dir = tempDir(onTestFinished);
    const { signal, lines } = await ended(startChild(STORY, [engine, dir, String(n), when]));
    expect(signal).toBe("SIGKILL");

    await using checkpointer = await openStore(engine, dir);
    const log = await partsOf(checkpointer);
    // What was acknowledged is there, once, in its order, but for what retention removed: the first archive, at the end.
    const pruned = lines.length - log.all.length;
    expect(log.all).toEqual(lines.slice(pruned));
    expect(pruned).toBe(n === STEPS && when === "after" ? 2 : 0);
    // Three steps make a compaction, and the second of them is the store's.
    const made = Math.floor((n + (when === "after" ? 1 : 0)) / 3);
    expect(log.archiveIds).toEqual(Array.from({ length: made }, (_, i) => `a${i + 1}`));
    expect(log.summary === undefined).toBe(made === 0);

    const next: Parameters<typeof storyAgent>[2] = [
      [[toolCall("c9", "look")], 10],
      [[text("still here")], 20],
    ];
    const agent = storyAgent(checkpointer, dir, next, summariser());
    const retried = await agent.prompt("Remember zebra-1.", { runId: "run-1" });
    expect(retried).toMatchObject({ replayed: true, status: "completed" });
    expect(retried.messages).toHaveLength(pruned > 0 ? 0 : 2);
    const result = await agent.prompt("Are you there?");
    expect(result).toMatchObject({ status: "completed", text: "still here" });
    expect(await agent.compact()).toBeDefined();

    const after = await partsOf(checkpointer);
    expect(danglingCalls(after.all.map((line) => JSON.parse(line)))).toEqual([]);
    // Nothing that was there went but by retention, and nothing was done twice.
    const all = [...lines.slice(0, pruned), ...after.all];
    const gone = lines.length + 4 - after.all.length;
    expect(new Set(all).size).toBe(all.length);
    expect(after.all.slice(0, lines.length - gone)).toEqual(lines.slice(gone));
    const effects = existsSync(join(dir, "effects"))
      ? readFileSync(join(dir, "effects"), "utf8").trim().split("\n")
      : [];
    expect(new Set(effects).size).toBe(effects.length);
  });
}

/** All messages of the thread as JSON, which its archives and its active context are to make up exactly. */
async function partsOf(checkpointer: Checkpointer) {
  const { archives } = checkpointer;
  const loaded = await checkpointer.load(THREAD);
  const infos = (await archives?.list(THREAD))?.items ?? [];
  const archived: string[] = [];
  for (const { archiveId, prunedAt } of infos) {
    if (prunedAt) continue;
    const read = await archives?.read(THREAD, archiveId);
    archived.push(...(read?.messages ?? []).map(({ message }) => JSON.stringify(message)));
  }
  const active = (loaded?.messages ?? []).map((message) => JSON.stringify(message));
  const all = (await checkpointer.listMessages(THREAD)).items.map(({ message }) => JSON.stringify(message));
  expect([...archived, ...active]).toEqual(all);
  return { all, archiveIds: infos.map(({ archiveId }) => archiveId), summary: loaded?.summary };
}
