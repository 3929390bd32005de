/**
 * The rebuilding of an older history table: Mem0's steps (rename, create, copy, drop), within the caller's transaction,
 * without losing a row or a value. It also puts back the rows that an interrupted migration of Mem0's left in a table of
 * another name.
 */
import type { SqliteStore } from "../../db/sqlite.ts";
import { HISTORY_COLUMNS } from "../records.ts";
import { SQL } from "./sql.ts";

/** What Mem0 renamed the old table to while it migrated: since 0.1.102, and before. */
export const LEFTOVERS = ["history_old", "old_history"] as const;

/** The names that columns had in Mem0's first versions; where the new name is there as well, it counts. */
const FORMER_NAMES: Record<string, string> = {
  old_memory: "prev_value",
  new_memory: "new_value",
  created_at: "timestamp",
  updated_at: "timestamp",
};

/** What a migration did. */
export interface Migration {
  /** How many changes were moved into the new table. */
  records: number;
  /** Columns that the new table lacks; what they held is in `everthread_history_extra`. */
  keptColumns: string[];
}

/** The expression that gives a column of Mem0's table out of an older one. */
export function currentColumn(column: string, available: readonly string[]): string {
  if (available.includes(column)) return quoteName(column);
  const former = FORMER_NAMES[column];
  return former !== undefined && available.includes(former) ? quoteName(former) : "NULL";
}

/** A name from the file, for SQL. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

const SOURCE = "everthread_history_source";

/** A random UUID (version 4, but for the variant's spare bits), made by SQLite. */
const NEW_ID = `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) ||
  '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`;

/**
 * Rebuilds `history` out of the tables that are there, the oldest first. Only inside a write.
 *
 * @param leftovers tables of an interrupted migration
 * @param columns the columns of `history`; none when it is not there
 */
export function migrate(store: SqliteStore, leftovers: readonly string[], columns: readonly string[]): Migration {
  const sources: string[] = [...leftovers];
  if (columns.length > 0) {
    store.exec(`ALTER TABLE history RENAME TO ${SOURCE}`);
    sources.push(SOURCE);
  }
  store.exec(SQL["0001-mem0"]);
  store.exec(SQL["0003-kept-columns"]);
  const keptColumns = new Set<string>();
  for (const source of sources) for (const column of moveRows(store, source)) keptColumns.add(column);
  // An index that Everthread made earlier goes with its table, and is made anew on the new one.
  for (const source of sources) store.exec(`DROP TABLE ${source}`);
  if (!store.prepare("SELECT 1 FROM everthread_history_extra LIMIT 1").get()) {
    store.exec("DROP TABLE everthread_history_extra");
  }
  const { records } = store.prepare("SELECT count(*) AS records FROM history").get() ?? {};
  return { records: Number(records), keptColumns: [...keptColumns] };
}

/** Moves the rows of one table, in their order, and gives the columns of which something had to be kept aside. */
function moveRows(store: SqliteStore, source: string): string[] {
  const available = store
    .prepare("SELECT name FROM pragma_table_info(?)")
    .all(source)
    .map((row) => String(row.name));
  const values = HISTORY_COLUMNS.map((column) => `${currentColumn(column, available)} AS ${column}`).join(", ");
  const old = `(SELECT rowid AS position, ${values} FROM ${source})`;
  const same = HISTORY_COLUMNS.map((column) => `history.${column} IS old.${column}`).join(" AND ");
  // A row gets a new id where it has none, or one that another row has. A row that was copied before is there already.
  store.exec(`CREATE TEMP TABLE everthread_moving AS
    SELECT position, original, iif(original IS NULL OR nth > 1 OR taken, ${NEW_ID}, original) AS id
    FROM (
      SELECT old.position, old.id AS original, row_number() OVER (PARTITION BY old.id ORDER BY old.position) AS nth,
        EXISTS (SELECT 1 FROM history WHERE history.id = old.id) AS taken
      FROM ${old} AS old WHERE NOT EXISTS (SELECT 1 FROM history WHERE ${same})
    )`);
  const [, ...rest] = HISTORY_COLUMNS;
  const names = rest.join(", ");
  const oldValues = rest.map((column) => `old.${column}`).join(", ");
  store.exec(`INSERT INTO history (id, ${names})
    SELECT moving.id, ${oldValues}
    FROM temp.everthread_moving AS moving JOIN ${old} AS old ON old.position = moving.position
    ORDER BY moving.position`);
  const kept = available.filter((column) => !isCurrent(column) && keepAside(store, source, column, old));
  const renamed = store.prepare(`INSERT INTO everthread_history_extra (history_id, column_name, value)
    SELECT id, 'id', original FROM temp.everthread_moving WHERE original IS NOT NULL AND original IS NOT id`);
  if (renamed.run().changes > 0) kept.push("id");
  store.exec("DROP TABLE temp.everthread_moving");
  return kept;
}

/** Keeps what a column holds that no column of the new table does. Gives whether there was any. */
function keepAside(store: SqliteStore, source: string, column: string, old: string): boolean {
  const value = `source.${quoteName(column)}`;
  const heirs = HISTORY_COLUMNS.filter((heir) => FORMER_NAMES[heir] === column);
  const elsewhere = heirs.map((heir) => ` AND ${value} IS NOT old.${heir}`).join("");
  const insert = store.prepare(`INSERT INTO everthread_history_extra (history_id, column_name, value)
    SELECT moving.id, ?, ${value}
    FROM temp.everthread_moving AS moving
    JOIN ${source} AS source ON source.rowid = moving.position
    JOIN ${old} AS old ON old.position = moving.position
    WHERE ${value} IS NOT NULL${elsewhere}
    ORDER BY moving.position`);
  return insert.run(column).changes > 0;
}

function isCurrent(column: string): boolean {
  return HISTORY_COLUMNS.some((name) => name === column);
}
