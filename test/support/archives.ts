/** Which engines the tests of compaction can use. */
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";

/** Until the SQLite engine keeps archives, an agent refuses to compact on it, and there is nothing to test. */
export async function sqliteKeepsArchives(): Promise<boolean> {
  await using checkpointer = await SqliteCheckpointer.open(":memory:");
  return checkpointer.capabilities.archives === true;
}
