/** Kills a process before each statement of what writes archives, and does the same again. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { found, hasFts5 } from "../sqlite/archive-files.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { ACTIONS, type State } from "./archive-actions.ts";

const CHILD = new URL("./archive-writes.ts", import.meta.url);
for (const [name, action] of Object.entries(ACTIONS)) {
  for (const journalMode of name === "compact" || name === "fork"
    ? (["delete", "wal"] as const)
    : (["delete"] as const)) {
    test.skipIf(!hasFts5).concurrent(
      `D13 L25 ${name}, killed before any of its statements: each message is in one place, and a second try does it (${journalMode})`,
      async ({ onTestFinished }) => {
        const dir = tempDir(onTestFinished);
        const first = join(dir, "first.db");
        const made = await SqliteCheckpointer.open(first, { journalMode, durability: "off" });
        await action.make(made, first);
        await made.close();
        const copy = (n: number) => {
          copyFileSync(first, join(dir, `${n}.db`));
          return join(dir, `${n}.db`);
        };
        const whole = copy(0);
        const { lines, stderr } = await ended(startChild(CHILD, [name, whole]));
        expect(stderr).toBe("");
        expect(await stateOf(whole, action.thread)).toEqual(action.after);
        const statements = Number(lines[0]);
        expect(statements).toBeGreaterThanOrEqual(8);
        for (let n = 1; n <= statements; n++) {
          const path = copy(n);
          expect((await ended(startChild(CHILD, [name, path, String(n)]))).signal).toBe("SIGKILL");
          // No statement after the last of them can have been the commit.
          expect(await stateOf(path, action.thread), `killed before ${n}`).toEqual(action.before);
          const again = await SqliteCheckpointer.open(path);
          await action.act?.(again);
          await again.close();
          expect(await stateOf(path, action.thread), `tried again after ${n}`).toEqual(action.after);
        }
      },
      120_000,
    );
  }
}

/** What a reader finds, which changes nothing. Each message must be active or archived, and what is archived is found. */
async function stateOf(path: string, thread: string): Promise<State> {
  await using store = await SqliteCheckpointer.open(path, { readOnly: true });
  const active = ((await store.load(thread))?.messages ?? []).map(textOf);
  const { items } = await store.archives.list(thread);
  const archived: string[] = [];
  for (const { archiveId, prunedAt } of items) {
    if (prunedAt) continue;
    const { messages } = await store.archives.read(thread, archiveId);
    archived.push(...messages.map(({ message }) => (message ? textOf(message) : "damaged")));
  }
  const log = (await store.listMessages(thread)).items.map(({ message }) => message && textOf(message));
  expect([...archived, ...active]).toEqual(log);
  expect((await found(store, "needle", thread)).toReversed()).toEqual(archived);
  expect((await found(store, "ne", thread)).toReversed()).toEqual(archived);
  expect(await store.checkIntegrity()).toEqual([]);
  return { active, archived, pruned: items.filter(({ prunedAt }) => prunedAt).length };
}
