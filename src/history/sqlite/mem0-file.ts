/** Files of Mem0's TypeScript package, which keeps its log in a table `memory_history`: what is in one, ready to be added. */
import { createHash } from "node:crypto";
import { StoreOpenError } from "../../db/errors.ts";
import { type Row, SqliteStore } from "../../db/sqlite.ts";
import { openSqliteFile } from "../../db/sqlite-file.ts";
import type { NewHistoryRecord } from "../history.ts";
import type { HistoryContent } from "../transfer.ts";
import * as Q from "./queries.ts";
import { RowReader } from "./rows.ts";

/**
 * Reads such a file without changing it. Its changes are numbered; here each gets an id made of all it holds, so that adding the
 * same file twice is refused as a duplicate.
 *
 * @throws StoreOpenError when the file is none
 */
export async function readMem0File(path: string | URL): Promise<HistoryContent> {
  const file = openSqliteFile(path, true);
  const store = await SqliteStore.open(file, { readOnly: true });
  try {
    return await store.read("readMem0File", () => {
      const has = store.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
      if (!has.get("memory_history")) {
        throw new StoreOpenError(
          `${file.path} is no file of Mem0's TypeScript package: it has no table memory_history.`,
        );
      }
      const records = store.prepare(Q.MEM0_RECORDS).all().map(toRecord);
      const windows: HistoryContent["windows"] = new Map();
      const rows = new RowReader(store);
      for (const row of has.get("messages") ? store.prepare(Q.ALL_SCOPES).all() : []) {
        const scope = String(row.scope);
        windows.set(scope, rows.messages(Q.MESSAGES_OF_SCOPE, { scope }));
      }
      return { records, windows };
    });
  } finally {
    await store.close();
  }
}

function toRecord(row: Row): NewHistoryRecord {
  const digest = createHash("sha256")
    .update(JSON.stringify(Object.values(row)))
    .digest("hex");
  const text = (column: string) => (row[column] === null ? null : String(row[column]));
  return {
    id: digest.slice(0, 32),
    memory_id: String(row.memory_id),
    old_memory: text("previous_value"),
    new_memory: text("new_value"),
    event: String(row.action),
    created_at: text("created_at"),
    updated_at: text("updated_at"),
    is_deleted: Boolean(row.is_deleted),
  };
}
