/** Applies the SQL of schema.ts, for programs without migrations of their own, and for tests. */
import { SchemaMismatchError } from "../../db/errors.ts";
import { PostgresStore, type PostgresTarget, type Statement } from "../../db/postgres.ts";
import { checkOptions, type PostgresOptions } from "./options.ts";
import {
  ARCHIVE_SCHEMA_VERSION,
  archiveSchemaSql,
  type FoundArchives,
  findSchema,
  SCHEMA_VERSION,
  schemaSql,
  upgradeSql,
  verifySchema,
} from "./schema.ts";
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
  return await withStore(target, options, async (store) => (await plan(store, options)).migration);
}

/**
 * Brings the tables up to date, in one transaction, under a lock: of several that do so at once, one does it and the
 * others find it done. Needs a role that may create tables.
 *
 * @throws SchemaMismatchError when the tables are newer, or are not whole
 */
export async function migrate(target: PostgresTarget, options: PostgresOptions = {}): Promise<Migration> {
  return await withStore(target, options, async (store) => {
    const { migration, guard } = await plan(store, options);
    if (migration.sql === "") return migration;
    try {
      await store.write("migrate", ["everthread migrate"], [...guard, ...statementsOf(migration.sql)]);
    } catch (error) {
      // Another may have done it while this one waited for the lock: then its tables are in the way of ours.
      const { migration: now } = await plan(store, options);
      if (now.sql !== "") throw error;
      return now;
    }
    return migration;
  });
}

// Each fails, by a division by zero, when another program has moved the tables since the plan was made: perhaps beyond it.
const IS_VERSION = "SELECT 1 / (max(version) = $1)::int FROM cubepi_schema_version";
const IS_MISSING = "SELECT 1 / (pg_catalog.to_regclass($1) IS NULL)::int";

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

/** What is to run, and what must hold when it does. */
interface Plan {
  migration: Migration;
  guard: Statement[];
}

async function plan(store: PostgresStore, options: PostgresOptions): Promise<Plan> {
  const { missing, version, schema, archives } = await findSchema(store, options);
  const names = { ...options, schema: schema ?? options.schema };
  const to = SCHEMA_VERSION;
  const beside = archiveSql(archives, names);
  if (missing.length === TABLES.length) {
    return { migration: { from: 0, to, sql: schemaSql(names) + beside }, guard: [] };
  }
  if (version !== undefined && version < SCHEMA_VERSION) {
    const guard = [{ text: onTables(IS_VERSION, names), values: [String(version)] }];
    return { migration: { from: version, to, sql: upgradeSql(version, to, names) + beside }, guard };
  }
  if (version !== undefined && version > SCHEMA_VERSION) {
    throw new SchemaMismatchError(SCHEMA_VERSION, version, "Use an Everthread that knows it. Nothing was changed.");
  }
  await verifySchema(store, options);
  const [table] = beside === "" ? [] : archives.missing;
  const guard = table ? [{ text: IS_MISSING, values: [onTables(`everthread_${table}`, names)] }] : [];
  return { migration: { from: to, to, sql: beside }, guard };
}

/** What is missing of the tables of archives; the index of search only where the database has the extension for it. */
function archiveSql({ version, missing, trigramSchema }: FoundArchives, names: PostgresOptions): string {
  if (version !== undefined && version > ARCHIVE_SCHEMA_VERSION) return "";
  const trigram = trigramSchema !== undefined;
  const current = version === ARCHIVE_SCHEMA_VERSION && !(trigram && missing.includes("archive_sources"));
  return current ? "" : archiveSchemaSql(names, { trigram, trigramSchema });
}
