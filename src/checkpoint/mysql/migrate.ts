/** Applies the SQL of schema.ts, for programs without migrations of their own, and for tests. */
import { LockTimeoutError, SchemaMismatchError } from "../../db/errors.ts";
import { MySqlStore, type MySqlTarget } from "../../db/mysql.ts";
import { checkOptions, checkPrefix, type MySqlOptions } from "./options.ts";
import {
  ARCHIVE_SCHEMA_VERSION,
  archiveSchemaSql,
  findArchives,
  findSchema,
  SCHEMA_VERSION,
  schemaSql,
  upgradeSql,
  verifySchema,
} from "./schema.ts";

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
export async function planMigration(target: MySqlTarget, options: MySqlOptions = {}): Promise<Migration> {
  return await withStore(target, options, (store, prefix) => plan(store, prefix));
}

/**
 * Brings the tables up to date, under a lock: of several that do so at once, one does it and the others find it done. MySQL
 * can't undo a change of a table, so one that was interrupted is finished by calling this again. Needs a user that may create
 * and alter tables.
 *
 * @throws SchemaMismatchError when the tables are newer, or are not whole @throws LockTimeoutError
 */
export async function migrate(target: MySqlTarget, options: MySqlOptions = {}): Promise<Migration> {
  const { lockTimeoutMs = 30_000 } = options;
  return await withStore(target, options, async (store, prefix) => {
    const done = await store.locked("migrate", `everthread ${prefix}`, lockTimeoutMs, async (session) => {
      const planned = await plan(store, prefix);
      for (const statement of statementsOf(planned.sql)) await session.text(statement);
      return planned;
    });
    if (!done) throw new LockTimeoutError(lockTimeoutMs, { option: "lockTimeoutMs" });
    await verifySchema(store, prefix);
    return done.value;
  });
}

/** SQL of schema.ts as single statements. */
export function statementsOf(sql: string): string[] {
  return sql.split(/;\n/).filter((statement) => statement.trim() !== "");
}

async function withStore<T>(
  target: MySqlTarget,
  options: MySqlOptions,
  run: (store: MySqlStore, prefix: string) => Promise<T>,
): Promise<T> {
  checkOptions(options);
  // Two connections: one holds the lock and runs the statements, the other looks.
  const store = await MySqlStore.open(target, { ...options, maxPoolSize: Math.max(2, options.maxPoolSize ?? 2) });
  try {
    return await run(store, checkPrefix(options.tablePrefix));
  } finally {
    await store.close();
  }
}

async function plan(store: MySqlStore, prefix: string): Promise<Migration> {
  const names = { tablePrefix: prefix };
  const { tables, versions } = await findSchema(store, prefix);
  const [version] = versions;
  const archives = (await findArchives(store, prefix)) ?? 0;
  const beside = archives < ARCHIVE_SCHEMA_VERSION ? archiveSchemaSql(names) : "";
  // The version is written last: a table for it that is empty is of a migration that was interrupted.
  if (version === undefined && (tables.size === 0 || tables.has(`${prefix}schema_version`))) {
    return { from: 0, to: SCHEMA_VERSION, sql: schemaSql(names) + beside };
  }
  if (version !== undefined && version <= SCHEMA_VERSION && (version < SCHEMA_VERSION || versions.length > 1)) {
    return { from: version, to: SCHEMA_VERSION, sql: upgradeSql(version, SCHEMA_VERSION, names) + beside };
  }
  if (version !== undefined && version > SCHEMA_VERSION) {
    throw new SchemaMismatchError(SCHEMA_VERSION, version, "Use a newer Everthread. Nothing was changed.");
  }
  await verifySchema(store, prefix);
  return { from: SCHEMA_VERSION, to: SCHEMA_VERSION, sql: beside };
}
