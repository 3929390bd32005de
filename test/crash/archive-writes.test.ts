/** Kills a process before each statement of a compaction, of retention and of an upgrade, and does the same again. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { archiveTexts, found, hasFts5, makeVersion1 } from "../sqlite/archive-files.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";

const CHILD = new URL("./archive-writes.ts", import.meta.url);
const TEXTS = ["needle one", "needle two", "needle three", "needle four", "needle five"];

/** How each file begins, and how many archives it has then and in the end. */
const ACTIONS = {
  compact: {
    least: 8,
    make: async (path: string) => {
      await using store = await SqliteCheckpointer.open(path);
      await store.append(
        "t",
        TEXTS.map((text) => userMessage(text)),
      );
    },
    before: { active: TEXTS, archived: [], pruned: 0 },
    after: { active: TEXTS.slice(3), archived: TEXTS.slice(0, 3), pruned: 0 },
  },
  prune: {
    least: 8,
    make: async (path: string) => {
      await using store = await SqliteCheckpointer.open(path);
      await archiveTexts(store, "t", TEXTS.slice(0, 2));
      await archiveTexts(store, "t", TEXTS.slice(2, 3));
      await archiveTexts(store, "t", TEXTS.slice(3));
    },
    before: { active: [], archived: TEXTS, pruned: 0 },
    after: { active: [], archived: TEXTS.slice(3), pruned: 2 },
  },
  upgrade: {
    least: 8,
    make: (path: string) => makeVersion1(path, { t: [TEXTS.slice(0, 2), TEXTS.slice(2)] }),
    before: { active: ["the active one of t"], archived: TEXTS, pruned: 0 },
    after: { active: ["the active one of t"], archived: TEXTS, pruned: 0 },
  },
};

for (const [action, { least, make, before, after }] of Object.entries(ACTIONS)) {
  test.skipIf(!hasFts5).concurrent(
    `D13 L25 ${action}, killed before any of its statements: each message is in one place, and a second try does it`,
    async ({ onTestFinished }) => {
      const dir = tempDir(onTestFinished);
      const first = join(dir, "first.db");
      await make(first);
      const copy = (name: string) => {
        copyFileSync(first, join(dir, name));
        return join(dir, name);
      };
      const whole = copy("whole.db");
      const { lines, stderr } = await ended(startChild(CHILD, [action, whole]));
      expect(stderr).toBe("");
      const statements = Number(lines[0]);
      expect(statements).toBeGreaterThanOrEqual(least);
      expect(await stateOf(whole)).toEqual(after);
      for (let n = 1; n <= statements; n++) {
        const path = copy(`${n}.db`);
        expect((await ended(startChild(CHILD, [action, path, String(n)]))).signal).toBe("SIGKILL");
        // No statement after the last of them can have been the commit.
        expect(await stateOf(path), `killed before ${n}`).toEqual(before);
        expect((await ended(startChild(CHILD, [action, path]))).code).toBe(0);
        expect(await stateOf(path), `tried again after ${n}`).toEqual(after);
      }
    },
    120_000,
  );
}

/** What a reader finds, which changes nothing. Each message must be active or archived, and what is archived is found. */
async function stateOf(path: string) {
  await using store = await SqliteCheckpointer.open(path, { readOnly: true });
  const active = ((await store.load("t"))?.messages ?? []).map(textOf);
  const { items } = await store.archives.list("t");
  const archived: (string | undefined)[] = [];
  for (const { archiveId, prunedAt } of items) {
    if (prunedAt) continue;
    const { messages } = await store.archives.read("t", archiveId);
    archived.push(...messages.map(({ message }) => message && textOf(message)));
  }
  const log = (await store.listMessages("t")).items.map(({ message }) => message && textOf(message));
  expect([...archived, ...active]).toEqual(log);
  expect((await found(store, "needle")).toReversed()).toEqual(archived);
  expect((await found(store, "ne")).toReversed()).toEqual(archived);
  expect(await store.checkIntegrity()).toEqual([]);
  return { active, archived, pruned: items.filter(({ prunedAt }) => prunedAt).length };
}
