/** Mem0's golden files for tests: copies of them, and looks into a file by plain SQL. */
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { fileURLToPath } from "node:url";
import type { HistoryRecord, WindowMessage } from "../../src/history/history.ts";

const GOLDEN = fileURLToPath(new URL("../golden/mem0/", import.meta.url));

/** The path of a copy of a golden file in `directory`. */
export function golden(directory: string, name: string): string {
  const path = join(directory, `${name}.sqlite3`);
  copyFileSync(join(GOLDEN, `${name}.sqlite3`), path);
  return path;
}

/** What the release that wrote a golden file reads from it. */
export function expectedOf(name: string): {
  histories: Record<string, Record<string, unknown>[]>;
  windows: Record<string, WindowMessage[]>;
} {
  return JSON.parse(readFileSync(join(GOLDEN, `${name}.json`), "utf8"));
}

/** Runs SQL on a file, as another program would, and gives the rows of a query. */
export function sql(path: string, text: string, ...values: SQLInputValue[]): Record<string, unknown>[] {
  const db = new DatabaseSync(path);
  try {
    if (values.length === 0 && !/^\s*(SELECT|PRAGMA)/i.test(text)) {
      db.exec(text);
      return [];
    }
    return db
      .prepare(text)
      .all(...values)
      .map((row) => ({ ...row }));
  } finally {
    db.close();
  }
}

/** A table's columns: names, types, keys. */
export const columnsOf = (path: string, table: string) =>
  sql(path, 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', table);

/** Every record of a memory as an older release named its columns, or as the present one does. */
export function asRecord(row: Record<string, unknown>): Partial<HistoryRecord> {
  const { prev_value, new_value, timestamp, is_deleted, ...rest } = row;
  return {
    ...(prev_value === undefined ? {} : { old_memory: prev_value as string | null }),
    ...(new_value === undefined ? {} : { new_memory: new_value as string | null }),
    ...(timestamp === undefined
      ? {}
      : { created_at: timestamp as string | null, updated_at: timestamp as string | null }),
    ...(is_deleted === undefined ? {} : { is_deleted: Boolean(is_deleted) }),
    ...rest,
  };
}
