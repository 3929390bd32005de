/** Kills a process at every write point of a run, and goes on in another. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { pairToolCalls } from "../../src/messages/pairing.ts";
import { modelView } from "../../src/messages/view.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { storyAgent, THREAD } from "./story.ts";

const STORY = new URL("./story.ts", import.meta.url);
/** Claim, user, call, result, extra, clear, calls, question, two answers, results, … : a run has this many writes. */
const WRITE_POINTS = 16;

const points = Array.from({ length: WRITE_POINTS }, (_, i) => i + 1).flatMap((n) => [
  { n, when: "before" },
  { n, when: "after" },
]);

test.concurrent("the story has as many write points as are tried", async ({ onTestFinished }) => {
  const dir = tempDir(onTestFinished);
  const database = join(dir, "story.db");
  expect(await ended(startChild(STORY, [database, String(WRITE_POINTS + 1), "before"]))).toMatchObject({ code: 0 });
  expect(await ended(startChild(STORY, [join(dir, "other.db"), String(WRITE_POINTS), "after"]))).toMatchObject({
    signal: "SIGKILL",
  });
});

for (const { n, when } of points) {
  test.concurrent(`L25 killed ${when} write ${n}: nothing acknowledged is lost or doubled, and the next prompt works`, async ({
    onTestFinished,
  }) => {
    const database = join(tempDir(onTestFinished), "story.db");
    const { signal, lines } = await ended(startChild(STORY, [database, String(n), when]));
    expect(signal).toBe("SIGKILL");

    await using checkpointer = await SqliteCheckpointer.open(database);
    const log = await logOf(checkpointer);
    expect(log.slice(0, lines.length)).toEqual(lines);
    // At most the one write that was under way may be there without its acknowledgement having come out.
    expect(log.length - lines.length).toBeLessThanOrEqual(2);

    await goOn(checkpointer, database);
    const after = await logOf(checkpointer);
    expect(after.slice(0, log.length)).toEqual(log);
    expect(new Set(after).size).toBe(after.length);
    const messages = after.map((line) => JSON.parse(line));
    const { calls, orphans, duplicates } = pairToolCalls(messages);
    expect(calls.filter(({ result }) => result === undefined)).toEqual([]);
    expect([...orphans, ...duplicates]).toEqual([]);
    expect(modelView(messages).findings).toEqual([]);
    // No tool ran twice: neither in the life that was cut short, nor in the one that went on.
    const effects = existsSync(`${database}.effects`)
      ? readFileSync(`${database}.effects`, "utf8").split("\n").slice(0, -1)
      : [];
    expect(new Set(effects).size).toBe(effects.length);
    expect(effects).not.toContain("c3");
    expect(await checkpointer.loadPending(THREAD)).toBeUndefined();
  });
}

/** What a person would do next: answer what is asked, then say something. */
async function goOn(checkpointer: Checkpointer, database: string): Promise<void> {
  for (
    let pending = await checkpointer.loadPending(THREAD);
    pending;
    pending = await checkpointer.loadPending(THREAD)
  ) {
    const { question_id } = pending.request;
    const answer = question_id === "c3" ? { decision: "deny" } : { decision: "approve" };
    const { status } = await storyAgent(checkpointer, database, ["done"]).respond(question_id, answer);
    expect(["completed", "suspended"]).toContain(status);
  }
  const result = await storyAgent(checkpointer, database, ["still here"]).prompt("are you there?");
  expect(result).toMatchObject({ status: "completed", text: "still here" });
}

async function logOf(checkpointer: Checkpointer): Promise<string[]> {
  return ((await checkpointer.load(THREAD))?.messages ?? []).map((message) => JSON.stringify(message));
}
