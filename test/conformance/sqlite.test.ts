/** The SQLite engine under the conformance suite, on files. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { testConformance } from "./suite.ts";

await testConformance("sqlite", async () => {
  const directory = await mkdtemp(join(tmpdir(), "everthread-sqlite-"));
  const path = join(directory, "threads.db");
  return {
    checkpointer: await SqliteCheckpointer.open(path),
    reopen: () => SqliteCheckpointer.open(path),
    openCopy: (copy) => SqliteCheckpointer.open(copy),
    async plantRow(threadId, messageJson) {
      const db = new DatabaseSync(path);
      db.prepare("INSERT INTO messages (thread_id, message_json) VALUES (?, ?)").run(threadId, messageJson);
      db.close();
    },
    dispose: () => rm(directory, { recursive: true }),
  };
});
