/**
 * The tables of a MySQL store: CubeLoop's, schema version 5. Opening checks them and creates nothing; the SQL here is for the
 * migrations of the program that owns the database. Every function gives statements that end with a semicolon and run one
 * after the other; none holds a semicolon within, so they may be split there.
 *
 * MySQL commits each change of a table by itself. So every step looks first whether it was done: a migration that was
 * killed is finished by running it again.
 */
import { SchemaMismatchError, SchemaUninitializedError, StoreOpenError } from "../../db/errors.ts";
import type { MySqlStore, Row } from "../../db/mysql.ts";
import { InvalidArgumentError } from "../../errors.ts";
import type { Capability } from "../checkpointer.ts";
import { archivePrefix, archiveQueriesFor } from "./archive-queries.ts";
import { checkPrefix } from "./options.ts";
import { queriesFor, tablesOf } from "./queries.ts";
import { SQL } from "./sql.ts";

/** The version of the tables, in `cubepi_schema_version`: CubeLoop's, which writes the same tables. */
export const SCHEMA_VERSION = 5;
/** How many partitions `cubepi_messages` and `cubepi_runs` have. */
export const PARTITION_COUNT = 64;
/** The version of the tables of archives, in `everthread_archive_version`. */
export const ARCHIVE_SCHEMA_VERSION = 1;

const COLUMNS = {
  threads: ["thread_id", "parent_thread_id", "forked_at_seq", "extra", "pending_request", "run_id"],
  messages: ["thread_id", "seq", "role", "metadata", "payload", "run_id", "created_at"],
  runs: ["thread_id", "run_id", "claimed_at", "completed_at", "completion_seq"],
  hitl_answers: ["thread_id", "run_id", "question_id", "answer"],
  schema_version: ["version"],
} as const;
/** Columns whose values are looked up. */
const KEYS = ["thread_id", "run_id", "question_id"];
/** Collations under which texts are equal only when they are the same: in MariaDB and in MySQL. */
const EXACT = ["utf8mb4_nopad_bin", "utf8mb4_0900_bin"];

export interface SchemaOptions {
  /** What the names of the tables begin with. (Default: "cubepi_") */
  tablePrefix?: string | undefined;
}

/**
 * Everything an empty database needs: tables, indexes, partitions and the version. Run again it makes what is missing, and
 * changes nothing of what is there: an older version stays recorded.
 */
export function schemaSql(options: SchemaOptions = {}): string {
  return prefixed(SQL["0001-tables"] + FIRST_VERSION, options);
}

/** The tables of archives, which stand beside those of {@link schemaSql}, and their version. Again is harmless. */
export function archiveSchemaSql(options: SchemaOptions = {}): string {
  return prefixed(SQL["0002-archives"] + ARCHIVE_VERSION, options);
}

/** Writes the version of the tables of archives, for a tool that made the tables itself. Again is harmless. */
export function writeArchiveVersionSql(options: SchemaOptions = {}): string {
  return prefixed(ARCHIVE_VERSION, options);
}

/** Partitions a table of messages that another tool created: 64 partitions by thread. It copies the table. */
export function createMessagePartitionsSql(options: SchemaOptions = {}): string {
  return prefixed("ALTER TABLE cubepi_messages PARTITION BY KEY (thread_id) PARTITIONS 64;\n", options);
}

/** Partitions a table of runs that another tool created: 64 partitions by thread. It copies the table. */
export function createRunsPartitionsSql(options: SchemaOptions = {}): string {
  return prefixed("ALTER TABLE cubepi_runs PARTITION BY KEY (thread_id) PARTITIONS 64;\n", options);
}

/**
 * Writes the version and leaves no other; at no moment is there none. Again is harmless.
 *
 * @param version (Default: the present one)
 */
export function writeSchemaVersionSql(options: SchemaOptions = {}, version: number = SCHEMA_VERSION): string {
  return prefixed(versionSql(checkVersion(version)), options);
}

/**
 * Brings an older schema up to date, the version row included. Each statement may be run again.
 *
 * @param from the version that the database has, from 1
 * @param to the version that it shall have (Default: 5)
 * @throws InvalidArgumentError when there is no way from the one to the other
 */
export function upgradeSql(from: number, to: number = SCHEMA_VERSION, options: SchemaOptions = {}): string {
  if (checkVersion(from) > checkVersion(to)) {
    throw new InvalidArgumentError(`There is no step back from version ${from} to ${to}.`);
  }
  const steps = Array.from({ length: to - from }, (_, i) => `${STEPS[from + i]?.() ?? ""}${versionSql(from + i + 1)}`);
  return prefixed(from === to ? versionSql(to) : steps.join(""), options);
}

function checkVersion(version: number): number {
  if (Number.isInteger(version) && version >= 1 && version <= SCHEMA_VERSION) return version;
  throw new InvalidArgumentError(
    `A schema version is a whole number from 1 to ${SCHEMA_VERSION}, not ${String(version)}.`,
  );
}

/**
 * Makes tables that CubeLoop created tell apart ids that differ by case, accent or a trailing space. It copies the tables,
 * and CubeLoop goes on working with them. The tables of archives are exact already, unless another tool made them. Each
 * statement may be run again.
 */
export function exactIdsSql(options: SchemaOptions = {}): string {
  const alter = (table: string) => `ALTER TABLE ${table} CONVERT TO CHARACTER SET utf8mb4 COLLATE ${COLLATION};\n`;
  const tables = ["cubepi_threads", "cubepi_messages", "cubepi_runs", "cubepi_hitl_answers"];
  // A column of a foreign key can't be changed while the key is there, and its name is the server's own choice.
  return prefixed(DROP_PARENT_KEY + tables.map(alter).join("") + ADD_PARENT_KEY + EXACT_ARCHIVES, options);
}

/**
 * Checks that the tables are there, are of this version, and can hold what they must.
 *
 * @returns whether they tell apart all ids, which CubeLoop's own don't, and the collation of the ids of threads
 * @throws SchemaUninitializedError, SchemaMismatchError, StoreOpenError
 */
export async function verifySchema(store: MySqlStore, prefix: string): Promise<{ exact: boolean; collation: string }> {
  const { columns, tables, versions } = await findSchema(store, prefix);
  if (!tables.has(`${prefix}schema_version`)) {
    if (!tables.has(`${prefix}threads`)) {
      throw new SchemaUninitializedError(
        `The database has no table ${prefix}threads.`,
        "Run the SQL of schemaSql() from everthread/mysql in your migrations. Nothing was created.",
      );
    }
    throw new SchemaMismatchError(
      SCHEMA_VERSION,
      0,
      `The table ${prefix}schema_version is missing, so the version of the others is unknown. Restore it from the history of your migrations; don't run schemaSql() over existing data.`,
    );
  }
  checkVersions(versions, prefix);
  const present = new Set(columns.map((row) => `${String(row.table_name)}.${String(row.column_name)}`));
  for (const [table, needed] of Object.entries(COLUMNS)) {
    const lacking = needed.filter((column) => !present.has(`${prefix}${table}.${column}`));
    if (lacking.length > 0) {
      throw new SchemaUninitializedError(
        `The table ${prefix}${table} is missing or lacks ${lacking.join(", ")}, though the recorded version is ${SCHEMA_VERSION}.`,
        "Finish the migration that was interrupted: run its statements again.",
      );
    }
  }
  for (const row of columns) checkColumn(row);
  const ids = columns.find((row) => row.table_name === `${prefix}messages` && row.column_name === "thread_id");
  return {
    exact: columns.every((row) => !isKey(row) || EXACT.includes(String(row.collation_name))),
    collation: String(ids?.collation_name),
  };
}

/** The version of the tables of archives; undefined when they, or the row that says it, are missing. */
export async function findArchives(store: MySqlStore, prefix: string): Promise<number | undefined> {
  const queries = archiveQueriesFor(prefix);
  return await store.read("open", async (session) => {
    if ((await session.rows(queries.TABLES)).length < 2) return undefined;
    const [row] = await session.rows(queries.VERSION);
    return row?.version == null ? undefined : Number(row.version);
  });
}

/** Whether archives can be kept, decided when a store is opened. @param version what {@link findArchives} gave */
export function archivesCapability(version: number | undefined, prefix: string): Capability {
  if (version === ARCHIVE_SCHEMA_VERSION) return true;
  const table = `${archivePrefix(prefix)}archives`;
  if (version !== undefined && version > ARCHIVE_SCHEMA_VERSION) {
    return {
      reason: `The table ${table} is of version ${version}; this Everthread knows ${ARCHIVE_SCHEMA_VERSION}. Use a newer one.`,
    };
  }
  return {
    reason: `There is no table ${table}, or this user has no rights on it: run \`everthread migrate <url> --apply\`, or the SQL of archiveSchemaSql().`,
  };
}

/** What is there: the columns of our tables, the names of the tables, and the recorded versions, the lowest first. */
export async function findSchema(store: MySqlStore, prefix: string) {
  const queries = queriesFor(prefix);
  const columns = await store.read("open", (session) => session.rows(queries.COLUMNS, tablesOf(prefix)));
  const tables = new Set(columns.map((row) => String(row.table_name)));
  const rows = tables.has(`${prefix}schema_version`)
    ? await store.read("open", (session) => session.rows(queries.VERSION))
    : [];
  return { columns, tables, versions: rows.map((row) => Number(row.version)) };
}

function checkVersions(versions: readonly number[], prefix: string): void {
  const [version] = versions;
  if (version === undefined) {
    throw new SchemaUninitializedError(
      `The table ${prefix}schema_version is empty.`,
      "Finish the migration that was interrupted: run the SQL of schemaSql() from everthread/mysql again.",
    );
  }
  if (version > SCHEMA_VERSION) {
    throw new SchemaMismatchError(SCHEMA_VERSION, version, "Use a newer Everthread. Nothing was changed.");
  }
  // More than one row: an upgrade was interrupted, and the lowest version is what is certainly there.
  if (version < SCHEMA_VERSION || versions.length > 1) {
    throw new SchemaMismatchError(
      SCHEMA_VERSION,
      version,
      `Run the SQL of upgradeSql(${version}, ${SCHEMA_VERSION}) from everthread/mysql in your migrations. Nothing was changed.`,
    );
  }
}

function checkColumn(row: Row): void {
  const name = `${String(row.table_name)}.${String(row.column_name)}`;
  if (row.engine !== "InnoDB") {
    throw new StoreOpenError(
      `${String(row.table_name)} is a table of ${String(row.engine)}, which has no transactions: ALTER TABLE … ENGINE=InnoDB.`,
    );
  }
  if (isKey(row) && row.character_set_name !== "utf8mb4") {
    throw new StoreOpenError(
      `${name} is in ${String(row.character_set_name)}, in which not every id can be written. Convert the tables: run the SQL of exactIdsSql() from everthread/mysql. Nothing was changed.`,
    );
  }
}

function isKey(row: Row): boolean {
  return KEYS.includes(String(row.column_name));
}

function prefixed(sql: string, { tablePrefix }: SchemaOptions): string {
  const prefix = checkPrefix(tablePrefix);
  return sql.replaceAll("cubepi_", prefix).replaceAll("everthread_archive", `${archivePrefix(prefix)}archive`);
}

const COLLATION = "/*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

const FIRST_VERSION = `INSERT INTO cubepi_schema_version (version)
SELECT ${SCHEMA_VERSION} FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM cubepi_schema_version);
`;

const ARCHIVE_VERSION = `INSERT IGNORE INTO everthread_archive_version (version) VALUES (${ARCHIVE_SCHEMA_VERSION});
DELETE FROM everthread_archive_version WHERE version <> ${ARCHIVE_SCHEMA_VERSION};
`;

const versionSql = (version: number) => `INSERT IGNORE INTO cubepi_schema_version (version) VALUES (${version});
DELETE FROM cubepi_schema_version WHERE version <> ${version};
`;

/** Runs a statement that is made up first. */
const prepared = (text: string) => `SET @everthread_step = ${text};
PREPARE everthread_step FROM @everthread_step;
EXECUTE everthread_step;
DEALLOCATE PREPARE everthread_step;
`;
/** Runs a statement only where it has something to do, which MySQL has no syntax of its own for. */
const when = (condition: string, statement: string) => prepared(`IF(${condition}, '${statement}', 'DO 0')`);
const addColumn = (table: string, column: string, type: string) =>
  when(
    `NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '${table}' AND column_name = '${column}')`,
    `ALTER TABLE ${table} ADD COLUMN ${column} ${type}`,
  );
const addIndex = (table: string, index: string, columns: string) =>
  when(
    `NOT EXISTS (SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '${table}' AND index_name = '${index}')`,
    `CREATE INDEX ${index} ON ${table} (${columns})`,
  );
const PARENT_KEY = `FROM information_schema.key_column_usage WHERE table_schema = DATABASE()
  AND table_name = 'cubepi_threads' AND column_name = 'parent_thread_id' AND referenced_table_name IS NOT NULL`;
const DROP_PARENT_KEY = prepared(
  `COALESCE((SELECT CONCAT('ALTER TABLE cubepi_threads DROP FOREIGN KEY \`', MIN(constraint_name), '\`') ${PARENT_KEY}), 'DO 0')`,
);
const ADD_PARENT_KEY = when(
  `NOT EXISTS (SELECT 1 ${PARENT_KEY})`,
  "ALTER TABLE cubepi_threads ADD FOREIGN KEY (parent_thread_id) REFERENCES cubepi_threads (thread_id)",
);

const EXACT_ARCHIVES = when(
  `EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'everthread_archives'
    AND column_name = 'thread_id' AND collation_name NOT IN (${EXACT.map((name) => `'${name}'`).join(", ")}))`,
  `ALTER TABLE everthread_archives CONVERT TO CHARACTER SET utf8mb4 COLLATE ${COLLATION}`,
);

const createTable = (name: string) => {
  const statements = SQL["0001-tables"].split("\n\n");
  const found = statements.find((statement) => statement.startsWith(`CREATE TABLE IF NOT EXISTS ${name} `));
  return `${found?.trimEnd()}\n`;
};

/** Each step from a version to the next. */
const STEPS: Record<number, () => string> = {
  1: () => addColumn("cubepi_threads", "pending_request", "JSON NULL"),
  2: () => addColumn("cubepi_threads", "run_id", "VARCHAR(64) NULL"),
  3: () =>
    addColumn("cubepi_messages", "run_id", "VARCHAR(255) NULL") +
    addIndex("cubepi_messages", "ix_cubepi_messages_thread_run", "thread_id, run_id") +
    createTable("cubepi_runs"),
  4: () => createTable("cubepi_hitl_answers"),
};
