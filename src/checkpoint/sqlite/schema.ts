/** The tables of a SQLite store: CubeLoop's, so that both programs share a file, and Everthread's index and version. */
import { SchemaMismatchError, StoreOpenError } from "../../db/errors.ts";
import type { SqliteStore } from "../../db/sqlite.ts";
import { lacksIndex, makeArchiveTables } from "./archive-tables.ts";
import { SQL } from "./sql.ts";

/**
 * The version in `everthread_schema`: 1 without an index of archives, 2 with it, which the first compaction makes. A file that
 * CubeLoop wrote has none.
 */
const FIRST_VERSION = 1;
const SCHEMA_VERSION = 2;

const ADDED_COLUMNS = [
  { table: "thread_pending_request", column: "run_id" },
  { table: "messages", column: "run_id" },
  { table: "thread_extra", column: "parent_thread_id" },
] as const;

const NEEDED_COLUMNS = {
  messages: ["id", "thread_id", "message_json", "created_at"],
  thread_extra: ["thread_id", "extra_json"],
  thread_pending_request: ["thread_id", "request_json"],
  thread_hitl_answers: ["thread_id", "run_id", "question_id", "answer_json"],
  runs: ["thread_id", "run_id", "claimed_at", "completed_at", "completion_seq"],
} as const;

/**
 * Brings the tables up to date, in one transaction, and only when something is missing. Two processes may do so at once.
 *
 * @param onUpgrade told how many archived messages are in an index that is made anew
 * @throws StoreOpenError when the file belongs to another program @throws SchemaMismatchError when it is newer
 */
export async function prepareSchema(
  store: SqliteStore,
  path: string,
  onUpgrade?: (done: number, total: number) => void,
): Promise<void> {
  await prepareTables(store, path);
  if (store.readOnly || !(await store.read("open", () => lacksIndex(store)))) return;
  await store.writeInSteps("open", () => makeArchiveTables(store, onUpgrade));
}

async function prepareTables(store: SqliteStore, path: string): Promise<void> {
  const missing = await store.read("open", () => isBehind(store, path));
  if (!missing) return;
  if (store.readOnly) {
    presentAsCurrent(store, path);
    return;
  }
  await store.write("open", () => {
    // Another process may have come first, with this version or a newer one.
    if (!isBehind(store, path)) return;
    store.exec(SQL["0001-cubeloop-v3"]);
    for (const { table, column } of ADDED_COLUMNS) {
      if (!columnsOf(store, table).has(column)) store.exec(`ALTER TABLE ${table} ADD COLUMN ${column} TEXT`);
    }
    store.exec(SQL["0002-cubeloop-v4"]);
    store.exec(SQL["0003-everthread"]);
  });
}

function isBehind(store: SqliteStore, path: string): boolean {
  // Mem0 would find its window of messages in CubeLoop's table of the same name.
  if (columnsOf(store, "history").has("memory_id") && columnsOf(store, "messages").size === 0) {
    throw new StoreOpenError(`${path} holds a memory history. Open it with everthread/history. Nothing was changed.`);
  }
  const tables = Object.entries(NEEDED_COLUMNS).map(([table, needed]) => {
    const columns = columnsOf(store, table);
    const lacking = needed.filter((column) => !columns.has(column));
    if (columns.size > 0 && lacking.length > 0) {
      throw new StoreOpenError(
        `${path} belongs to another program: its table ${table} has no column ${lacking.join(", ")}. Nothing was changed.`,
      );
    }
    return columns.size > 0;
  });
  if (columnsOf(store, "everthread_schema").size > 0) {
    const version = Number(store.prepare("SELECT max(version) AS version FROM everthread_schema").get()?.version ?? 0);
    if (version > SCHEMA_VERSION) {
      throw new SchemaMismatchError(
        SCHEMA_VERSION,
        version,
        "Use the newer Everthread that wrote it. Nothing was changed.",
      );
    }
    if (version < FIRST_VERSION) return true;
  } else return true;
  if (tables.includes(false)) return true;
  const index = store.prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'ix_messages_thread'").get();
  return !index || ADDED_COLUMNS.some(({ table, column }) => !columnsOf(store, table).has(column));
}

/**
 * Lets the queries read an older file that must not change: temporary views, which hide the tables of the same name, give
 * what a migration would add. They live in this connection's memory.
 */
function presentAsCurrent(store: SqliteStore, path: string): void {
  if (columnsOf(store, "messages").size === 0) {
    throw new StoreOpenError(`${path} holds no conversations: it has no table "messages". Nothing was changed.`);
  }
  for (const { table, column } of ADDED_COLUMNS) {
    const columns = columnsOf(store, table);
    if (columns.size > 0 && !columns.has(column)) {
      store.exec(`CREATE TEMP VIEW ${table} AS SELECT *, NULL AS ${column} FROM main.${table}`);
    }
  }
  // A thread_extra or runs that is not there at all is an empty one.
  for (const [table, columns] of Object.entries(NEEDED_COLUMNS)) {
    if (columnsOf(store, table).size > 0) continue;
    const added = ADDED_COLUMNS.filter((item) => item.table === table).map((item) => item.column);
    const list = [...columns, ...added].map((column) => `NULL AS ${column}`).join(", ");
    store.exec(`CREATE TEMP VIEW ${table} AS SELECT ${list} WHERE 0`);
  }
}

function columnsOf(store: SqliteStore, table: string): Set<string> {
  const rows = store.prepare("SELECT name FROM pragma_table_info(?)").all(table);
  return new Set(rows.map((row) => String(row.name)));
}
