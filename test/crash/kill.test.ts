/** Kills writers at random moments: what they were told is stored is there. */

import { join } from "node:path";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { killAfter, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";

const WRITER = new URL("./writer.mjs", import.meta.url);

for (const journalMode of ["delete", "wal", "truncate", "persist"] as const) {
  test.concurrent(`D9 25 writers killed at once after an append (${journalMode}): every acknowledged message is there`, async ({
    onTestFinished,
  }) => {
    const dir = tempDir(onTestFinished);
    for (let round = 0; round < 25; round++) {
      const database = join(dir, `${round}.db`);
      const acknowledged = await killAfter(startChild(WRITER, [database, journalMode]), round * 2);
      await using checkpointer = await SqliteCheckpointer.open(database);
      const stored = ((await checkpointer.load("t"))?.messages ?? []).map(textOf);
      expect(stored).toEqual(stored.map((_, i) => `message ${i}`));
      expect(stored.length).toBeGreaterThanOrEqual(acknowledged);
      expect(await checkpointer.checkIntegrity()).toEqual([]);
      await checkpointer.append("t", []);
    }
  }, 120_000);
}
