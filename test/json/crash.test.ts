/** Writers killed at each change that they make to the file system: what was acknowledged is there, and nothing is twice. */
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { ended, killAfter, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { code, type Files, filesIn, logOf, open, says, textsOf } from "./support.ts";

const WRITER = new URL("./writer.ts", import.meta.url);
const APPENDER = new URL("./appender.ts", import.meta.url);

/** A thread of three messages, of which so many are archived, one an archive. */
async function prepare(files: Files, archived: number): Promise<void> {
  await using store = await open(files);
  await store.claimRun("session", "r");
  await store.append("session", says("1", "2", "3"));
  await store.markRunComplete("session", "r");
  for (let upTo = 1; upTo <= archived; upTo++) await store.archives.compact("session", { upTo, summary: `${upTo}` });
}

interface Step {
  archived: number;
  /** Whether it is done, where nothing was lost; throws when anything was. */
  isDone(store: JsonCheckpointer): Promise<boolean>;
  again(store: JsonCheckpointer): Promise<unknown>;
  /** What is in the directory of archives in the end. */
  leaves: string[];
}

const STEPS: Record<string, Step> = {
  append: {
    archived: 0,
    async isDone(store) {
      const log = await logOf(store);
      expect(["1 2 3", "1 2 3 4 5"]).toContain(log.join(" "));
      return log.length === 5;
    },
    again: (store) => store.append("session", says("4", "5"), { expectedRevision: 3 }),
    leaves: [],
  },
  compact: {
    archived: 0,
    async isDone(store) {
      expect(await logOf(store)).toEqual(["1", "2", "3"]);
      const { summary } = (await store.load("session")) ?? {};
      expect(await textsOf(store)).toEqual(summary === undefined ? ["1", "2", "3"] : ["3"]);
      return summary !== undefined;
    },
    again: (store) => store.archives.compact("session", { upTo: 2, summary: "two" }),
    leaves: ["a1"],
  },
  prune: {
    archived: 2,
    async isDone(store) {
      const log = (await logOf(store)).join(" ");
      expect(["1 2 3", "2 3"]).toContain(log);
      expect(await textsOf(store)).toEqual(["3"]);
      return log === "2 3";
    },
    again: (store) => store.archives.prune("session", { keep: 1 }),
    leaves: ["a2"],
  },
  fork: {
    archived: 2,
    async isDone(store) {
      expect(await logOf(store)).toEqual(["1", "2", "3"]);
      const fork = await logOf(store, "fork");
      expect(["", "1 2 3"]).toContain(fork.join(" "));
      return fork.length > 0;
    },
    again: (store) => store.fork("session", "fork", { afterRunId: "r" }),
    leaves: ["a1", "a2"],
  },
  delete: {
    archived: 2,
    async isDone(store) {
      const log = await logOf(store);
      expect(["", "1 2 3"]).toContain(log.join(" "));
      return log.length === 0;
    },
    again: (store) => store.deleteThread("session"),
    leaves: [],
  },
};

describe("D13 L25 killed before each change to the file system", () => {
  test.concurrent.for(Object.entries(STEPS))(
    "%s is done or not, and can be done again",
    { timeout: 120_000 },
    async ([what, step], { onTestFinished }) => {
      const dir = tempDir(onTestFinished);
      let kills = 0;
      for (let at = 1; ; at++) {
        const files = filesIn(join(dir, String(at)));
        fs.mkdirSync(files.dir);
        await prepare(files, step.archived);
        const { signal, lines, stderr } = await ended(
          startChild(WRITER, [files.state, files.memory, what, String(at)]),
        );
        // A reader finds a whole conversation while nobody has opened it to write.
        const reader = await open(files, { readOnly: true });
        const done = await step.isDone(reader);
        expect(await reader.checkIntegrity()).toEqual([]);
        await reader.close();
        const store = await open(files);
        expect(await step.isDone(store)).toBe(done);
        if (!done) await step.again(store);
        expect(await step.isDone(store)).toBe(true);
        // What a killed writer left to be removed goes with the next write.
        await store.saveExtra("other", { a: 1 });
        expect(await store.checkIntegrity()).toEqual([]);
        const archives = fs.existsSync(files.memory) ? fs.readdirSync(files.memory).sort() : [];
        expect(archives).toEqual(step.leaves);
        await store.close();
        expect(fs.readdirSync(files.dir).filter((name) => name.endsWith(".claim"))).toEqual([]);
        if (lines.includes("done")) {
          expect(done, stderr).toBe(true);
          break;
        }
        expect(signal, stderr).toBe("SIGKILL");
        kills++;
      }
      expect(kills).toBeGreaterThan(5);
    },
  );
});

test.concurrent("D9 C9 20 writers killed at once after an append: every acknowledged message is there", async ({
  onTestFinished,
}) => {
  const files = filesIn(tempDir(onTestFinished));
  let all: (string | undefined)[] = [];
  for (let round = 0; round < 20; round++) {
    const child = startChild(APPENDER, [files.state, files.memory, `${round}`, "1000000"]);
    const acknowledged = await killAfter(child, round % 7);
    await using store = await open(files, { readOnly: true });
    const log = await logOf(store);
    const added = log.slice(all.length);
    expect(log.slice(0, all.length)).toEqual(all);
    expect(added).toEqual(added.map((_, i) => `${round}: ${i}`));
    expect(added.length).toBeGreaterThanOrEqual(acknowledged);
    all = log;
  }
  await using store = await open(files);
  await store.append("session", says("end"));
  await expect(store.append("session", says("end"), { expectedRevision: 0 })).rejects.toEqual(code("thread_conflict"));
}, 120_000);
