/** The size of a file with 2,000 messages of 500 bytes, and what of it is our index. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { newId } from "../src/util/ids.ts";
import { benchDir, messageOf, report } from "./measure.ts";

const MESSAGES = 2_000;
const BYTES = 500;
const path = join(benchDir(), "size.db");

// As an agent writes: a run of 8 messages at a time, under ids of the usual length.
const store = await SqliteCheckpointer.open(path);
const threadId = newId();
for (let first = 0; first < MESSAGES; first += 8) {
  const runId = newId();
  await store.claimRun(threadId, runId);
  for (let i = first; i < first + 8; i++) await store.append(threadId, [messageOf(BYTES, i, runId)]);
  await store.markRunComplete(threadId, runId);
}
await store.close();

const size = statSync(path).size;
const without = sizeAfter("DROP INDEX ix_messages_thread; VACUUM");
const other = sizeAfter("CREATE INDEX ix_messages_thread ON messages (thread_id, id); VACUUM");
const lean = sizeAfter(
  "DROP INDEX ix_messages_thread; CREATE INDEX ix_messages_thread ON messages (thread_id); VACUUM",
);

function sizeAfter(sql: string): number {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  return statSync(path).size;
}

const raw = MESSAGES * BYTES;
report([
  { what: "file of 2,000 messages of 500 bytes, as written", unit: "bytes", values: [size] },
  { what: "file / raw JSON", unit: "×", values: [size / raw], target: { most: 1.6 } },
  { what: "vacuumed, without our index / raw JSON", unit: "×", values: [without / raw] },
  { what: "vacuumed, index on (thread_id, id) / raw JSON", unit: "×", values: [other / raw] },
  { what: "vacuumed, index on (thread_id) / raw JSON", unit: "×", values: [lean / raw] },
]);
