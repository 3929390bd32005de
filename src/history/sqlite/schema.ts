/** The tables of a history file: Mem0's, so that both programs share it, and Everthread's indexes and version. */
import { SchemaMismatchError, StoreError, StoreOpenError } from "../../db/errors.ts";
import type { SqliteStore } from "../../db/sqlite.ts";
import { HISTORY_COLUMNS } from "../records.ts";
import { currentColumn, LEFTOVERS, type Migration, migrate } from "./migrate.ts";
import { SQL } from "./sql.ts";

/** The version in `everthread_history_schema`. A file that Mem0 wrote has none. */
const SCHEMA_VERSION = 1;

const MESSAGE_COLUMNS = ["id", "session_scope", "role", "content", "name", "created_at"];
const INDEXES = ["everthread_history_memory", "everthread_messages_scope"];

/** How much of the file is kept in memory, in KiB: enough for the upper pages of the indexes of a million changes. */
const CACHE_KIB = 16_384;

/** What a file has, as far as it matters here. */
interface Found {
  /** Whether it holds nothing at all. */
  isNew: boolean;
  history: string[];
  messages: string[];
  /** Tables that a migration of Mem0's which failed left behind. */
  leftovers: string[];
  isCurrent: boolean;
}

/**
 * Brings the tables up to date in one transaction, and only when something is missing. Several processes may do so at once.
 * A new file gets WAL mode: one that is there keeps its own.
 *
 * @returns what was migrated, when this call did it
 * @throws StoreOpenError when the file belongs to another program @throws SchemaMismatchError when it is newer
 */
export async function prepareSchema(store: SqliteStore, path: string): Promise<Migration | undefined> {
  const found = await store.read("open", () => {
    store.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    return look(store, path);
  });
  if (found.isCurrent) return undefined;
  if (store.readOnly) {
    presentAsCurrent(store, path, found);
    return undefined;
  }
  if (found.isNew) await preferWal(store);
  return await store.write("open", () => {
    // Another process may have come first, with this version or a newer one.
    const now = look(store, path);
    if (now.isCurrent) return undefined;
    const migration = isOlder(now) ? migrate(store, now.leftovers, now.history) : undefined;
    store.exec(SQL["0001-mem0"]);
    store.exec(SQL["0002-everthread"]);
    return migration;
  });
}

/** A log is written in many small transactions, each of which costs a third in WAL mode, and readers never wait for it. */
async function preferWal(store: SqliteStore): Promise<void> {
  try {
    await store.setJournalMode("wal");
  } catch (error) {
    // Some file systems can't, and the file then stays as it is.
    if (!(error instanceof StoreError) || error.code !== "store_error") throw error;
  }
}

function isOlder({ history, leftovers }: Found): boolean {
  return leftovers.length > 0 || (history.length > 0 && !sameNames(history, HISTORY_COLUMNS));
}

function look(store: SqliteStore, path: string): Found {
  const history = columnsOf(store, "history");
  const messages = columnsOf(store, "messages");
  const leftovers = LEFTOVERS.filter((table) => columnsOf(store, table).includes("memory_id"));
  refuseOthers(store, path, { history, messages, leftovers });
  const hasVersion = columnsOf(store, "everthread_history_schema").length > 0;
  const version = hasVersion
    ? Number(store.prepare("SELECT max(version) AS version FROM everthread_history_schema").get()?.version ?? 0)
    : 0;
  if (version > SCHEMA_VERSION) {
    throw new SchemaMismatchError(
      SCHEMA_VERSION,
      version,
      "Use the newer Everthread that wrote it. Nothing was changed.",
    );
  }
  const isIndex = store.prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?");
  const isCurrent =
    version === SCHEMA_VERSION &&
    leftovers.length === 0 &&
    messages.length > 0 &&
    sameNames(history, HISTORY_COLUMNS) &&
    INDEXES.every((index) => isIndex.get(index) !== undefined);
  const isNew = store.prepare("SELECT 1 FROM sqlite_master LIMIT 1").get() === undefined;
  return { isNew, history, messages, leftovers, isCurrent };
}

/** Other programs have tables of these names as well. */
function refuseOthers(
  store: SqliteStore,
  path: string,
  { history, messages, leftovers }: Omit<Found, "isNew" | "isCurrent">,
): void {
  if (messages.includes("message_json") || columnsOf(store, "thread_extra").length > 0) {
    throw new StoreOpenError(
      `${path} is a conversation store of Everthread or CubeLoop, not a memory history; both have a table "messages". Open it with everthread/sqlite, and give the history a file of its own. Nothing was changed.`,
    );
  }
  const lacking = messages.length > 0 ? MESSAGE_COLUMNS.filter((column) => !messages.includes(column)) : [];
  if (lacking.length > 0) {
    throw new StoreOpenError(
      `${path} belongs to another program: its table messages has no column ${lacking.join(", ")}. Nothing was changed.`,
    );
  }
  if (history.length > 0 && !history.includes("memory_id")) {
    throw new StoreOpenError(
      `${path} belongs to another program: its table history has no column memory_id. Nothing was changed.`,
    );
  }
  if (history.length === 0 && leftovers.length === 0 && columnsOf(store, "memory_history").length > 0) {
    throw new StoreOpenError(
      `${path} is a file of Mem0's TypeScript package (table memory_history). Import it into a new file: everthread history <new file> import ${path}. Nothing was changed.`,
    );
  }
}

/**
 * Lets the queries read an older file that must not change: temporary views, which hide the tables of the same name, give
 * what a migration would. They live in this connection's memory.
 */
function presentAsCurrent(store: SqliteStore, path: string, { history, messages, leftovers }: Found): void {
  if (history.length === 0 && messages.length === 0 && leftovers.length === 0) {
    throw new StoreOpenError(`${path} holds no memory history: it has neither its tables. Nothing was changed.`);
  }
  if (leftovers.length > 0) {
    throw new StoreOpenError(
      `${path} has rows in ${leftovers.join(" and ")}, which a migration of Mem0 left unfinished. Open it once for writing, so that they are put back. Nothing was changed.`,
    );
  }
  if (!sameNames(history, HISTORY_COLUMNS)) {
    const columns = HISTORY_COLUMNS.map((column) => `${currentColumn(column, history)} AS ${column}`).join(", ");
    const rows = history.length > 0 ? "main.history" : "(SELECT NULL AS rowid) WHERE 0";
    store.exec(`CREATE TEMP VIEW history AS SELECT rowid AS rowid, ${columns} FROM ${rows}`);
  }
  if (messages.length === 0) {
    const columns = MESSAGE_COLUMNS.map((column) => `NULL AS ${column}`).join(", ");
    store.exec(`CREATE TEMP VIEW messages AS SELECT NULL AS rowid, ${columns} WHERE 0`);
  }
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && b.every((name) => a.includes(name));
}

function columnsOf(store: SqliteStore, table: string): string[] {
  return store
    .prepare("SELECT name FROM pragma_table_info(?)")
    .all(table)
    .map((row) => String(row.name));
}
