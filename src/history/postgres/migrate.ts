/** Applies the SQL of schema.ts, for programs without migrations of their own. */
import { SchemaUninitializedError } from "../../db/errors.ts";
import { PostgresStore, type PostgresTarget } from "../../db/postgres.ts";
import { checkOptions, type PostgresHistoryOptions } from "./options.ts";
import { historySchemaSql, SCHEMA_VERSION, verifySchema } from "./schema.ts";

/** What is to run, or was run: from version 0, where tables are missing. */
export interface HistoryMigration {
  from: number;
  to: number;
  /** Empty when nothing is to be done. */
  sql: string;
}

/**
 * Says what would make the tables of a memory history, or with `apply` makes them: in one transaction, under a lock. Of
 * several that do so at once, one does it and the others find it done.
 *
 * @param options.apply whether to do it; needs a role that may create tables (Default: false)
 * @throws SchemaMismatchError when the tables are of another version
 */
export async function migrateHistory(
  target: PostgresTarget,
  { apply = false, ...options }: PostgresHistoryOptions & { apply?: boolean | undefined } = {},
): Promise<HistoryMigration> {
  checkOptions(options);
  const store = await PostgresStore.open(target, options);
  try {
    await store.connect();
    const current = await isCurrent(store, options.schema);
    const sql = current ? "" : historySchemaSql(options);
    // Every statement says IF NOT EXISTS, so one who waited for the lock does no harm.
    if (apply && !current) await store.write("migrate", ["everthread migrate history"], statementsOf(sql));
    return { from: current ? SCHEMA_VERSION : 0, to: SCHEMA_VERSION, sql };
  } finally {
    await store.close();
  }
}

async function isCurrent(store: PostgresStore, schema: string | undefined): Promise<boolean> {
  try {
    await verifySchema(store, schema);
    return true;
  } catch (error) {
    if (error instanceof SchemaUninitializedError) return false;
    throw error;
  }
}

/** Our own SQL holds no semicolon but at the end of a statement. */
function statementsOf(sql: string): { text: string }[] {
  return sql
    .split(/;\s*\n/)
    .filter((text) => text.trim() !== "")
    .map((text) => ({ text }));
}
