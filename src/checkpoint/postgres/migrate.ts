/** Applies the SQL of schema.ts, for programs without migrations of their own, and for tests. */
import { SchemaMismatchError } from "../../db/errors.ts";
import { PostgresStore, type PostgresTarget, type Statement } from "../../db/postgres.ts";
import { checkOptions, type PostgresOptions } from "./options.ts";
import { findSchema, SCHEMA_VERSION, schemaSql, upgradeSql, verifySchema } from "./schema.ts";
import { onTables, TABLES } from "./tables.ts";

/** What is to run, or was run: from version 0, which is none, or from an older one. */
export interface Migration {
  from: number;
  to: number;
  /** Empty when nothing is to be done. */
  sql: string;
}

/**
 * Says what would bring the tables up to date. Changes nothing.
 *
 * @throws SchemaMismatchError when the tables are newer, or are not whole
 */
export async function planMigration(target: PostgresTarget, options: PostgresOptions = {}): Promise<Migration> {
  return await withStore(target, options, async (store) => await plan(store, options));
}

/**
 * Brings the tables up to date, in one transaction, under a lock: of several that do so at once, one does it and the
 * others find it done. Needs a role that may create tables.
 *
 * @throws SchemaMismatchError when the tables are newer, or are not whole
 */
export async function migrate(target: PostgresTarget, options: PostgresOptions = {}): Promise<Migration> {
  return await withStore(target, options, async (store) => {
    const planned = await plan(store, options);
    if (planned.sql === "") return planned;
    try {
      await store.write("migrate", ["everthread migrate"], [...guard(planned, options), ...statementsOf(planned.sql)]);
    } catch (error) {
      // Another may have done it while this one waited for the lock: then its tables are in the way of ours.
      const now = await plan(store, options);
      if (now.sql !== "") throw error;
      return now;
    }
    return planned;
  });
}

const IS_VERSION = "SELECT 1 / (max(version) = $1)::int FROM cubepi_schema_version";

/** Fails, by a division by zero, when another program has moved the tables since the plan was made: perhaps beyond it. */
function guard({ from }: Migration, names: PostgresOptions): Statement[] {
  return from === 0 ? [] : [{ text: onTables(IS_VERSION, names), values: [String(from)] }];
}

/** Our own SQL holds no semicolon but at the end of a statement. */
function statementsOf(sql: string): { text: string }[] {
  return sql
    .split(/;\s*\n/)
    .filter((text) => text.trim() !== "")
    .map((text) => ({ text }));
}

async function withStore<T>(
  target: PostgresTarget,
  options: PostgresOptions,
  run: (store: PostgresStore) => Promise<T>,
) {
  checkOptions(options);
  const store = await PostgresStore.open(target, options);
  try {
    await store.connect();
    return await run(store);
  } finally {
    await store.close();
  }
}

async function plan(store: PostgresStore, options: PostgresOptions): Promise<Migration> {
  const { missing, version, schema } = await findSchema(store, options);
  if (missing.length === TABLES.length) return { from: 0, to: SCHEMA_VERSION, sql: schemaSql(options) };
  if (version !== undefined && version < SCHEMA_VERSION) {
    return { from: version, to: SCHEMA_VERSION, sql: upgradeSql(version, SCHEMA_VERSION, { ...options, schema }) };
  }
  if (version !== undefined && version > SCHEMA_VERSION) {
    throw new SchemaMismatchError(SCHEMA_VERSION, version, "Use an Everthread that knows it. Nothing was changed.");
  }
  await verifySchema(store, options);
  return { from: SCHEMA_VERSION, to: SCHEMA_VERSION, sql: "" };
}
