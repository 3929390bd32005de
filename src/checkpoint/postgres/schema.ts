/**
 * The tables belong to the host's migrations: this gives the SQL for them, and checks that they are there. The functions
 * give text for any migration tool; all of it can run inside a transaction.
 */
import { SchemaMismatchError, SchemaUninitializedError } from "../../db/errors.ts";
import type { PostgresStore } from "../../db/postgres.ts";
import { identifier } from "../../db/postgres-options.ts";
import { InvalidArgumentError } from "../../errors.ts";
import type { Capability } from "../checkpointer.ts";
import { checkTableNames } from "./options.ts";
import { SQL } from "./sql.ts";
import { ARCHIVE_TABLES, archivePrefix, DEFAULT_PREFIX, onTables, TABLES, type TableNames } from "./tables.ts";

export type { TableNames };

/** The version of the tables, in `cubepi_schema_version`: CubeLoop's, which writes the same tables. */
export const SCHEMA_VERSION = 5;
/** How many partitions `cubepi_messages` and `cubepi_runs` have. */
export const PARTITION_COUNT = 64;
/** The version of the tables of archives, in `everthread_archive_version`. */
export const ARCHIVE_SCHEMA_VERSION = 1;

/** Each step from a version to the next. */
const STEPS: Record<number, () => string> = {
  1: () => SQL["0002-from-1-to-2"],
  2: () => SQL["0003-from-2-to-3"],
  3: () => SQL["0004-from-3-to-4"] + partitions("runs"),
  4: () => SQL["0005-from-4-to-5"],
};

/** Everything an empty database needs: tables, indexes, partitions and the version. */
export function schemaSql(names: TableNames = {}): string {
  return named(SQL["0001-tables"] + partitions("messages") + partitions("runs") + versionSql(SCHEMA_VERSION), names);
}

/** The 64 partitions of `cubepi_messages`, for a tool that made the table itself. */
export function createMessagePartitionsSql(names: TableNames = {}): string {
  return named(partitions("messages"), names);
}

/** The 64 partitions of `cubepi_runs`, for a tool that made the table itself. */
export function createRunsPartitionsSql(names: TableNames = {}): string {
  return named(partitions("runs"), names);
}

/**
 * The tables of archives, which stand beside those of {@link schemaSql}, and their version. Harmless where they are there.
 *
 * @param options.trigram also the index of search, which needs the extension pg_trgm (Default: false)
 * @param options.trigramSchema the schema that pg_trgm is in (Default: it is on the search_path)
 */
export function archiveSchemaSql(
  names: TableNames = {},
  options: { trigram?: boolean | undefined; trigramSchema?: string | undefined } = {},
): string {
  const { trigram = false, trigramSchema } = options;
  const tables = named(SQL["0006-archives"] + archiveVersionSql(), names);
  if (!trigram) return tables;
  const operators = trigramSchema === undefined ? "" : `${identifier(trigramSchema)}.`;
  return tables + named(SQL["0007-archive-sources"].replace("gin_trgm_ops", `${operators}gin_trgm_ops`), names);
}

/** Writes the version of the tables of archives, for a tool that made the tables itself. Again is harmless. */
export function writeArchiveVersionSql(names: TableNames = {}): string {
  return named(archiveVersionSql(), names);
}

/** Writes the version and leaves no other. Again is harmless. @param version (Default: the present one) */
export function writeSchemaVersionSql(names: TableNames = {}, version: number = SCHEMA_VERSION): string {
  return named(versionSql(checkVersion(version)), names);
}

/**
 * The steps from one version to a later one, and the write of that version. Harmless where a part of it was done before.
 *
 * @param from the version that the tables have, from 1
 * @param to (Default: the present one)
 */
export function upgradeSql(from: number, to: number = SCHEMA_VERSION, names: TableNames = {}): string {
  if (checkVersion(from) > checkVersion(to)) {
    throw new InvalidArgumentError(`There is no step back from version ${from} to ${to}.`);
  }
  const steps = Array.from({ length: to - from }, (_, i) => STEPS[from + i]?.() ?? "");
  return named(steps.join("") + versionSql(to), names);
}

function checkVersion(version: number): number {
  if (Number.isInteger(version) && version >= 1 && version <= SCHEMA_VERSION) return version;
  throw new InvalidArgumentError(`A schema version is a whole number from 1 to ${SCHEMA_VERSION}, not ${version}.`);
}

function named(sql: string, names: TableNames): string {
  checkTableNames(names);
  return onTables(sql, names);
}

function partitions(table: "messages" | "runs"): string {
  const lines = Array.from({ length: PARTITION_COUNT }, (_, i) => {
    const name = `cubepi_${table}_p${String(i).padStart(2, "0")}`;
    return `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF cubepi_${table} FOR VALUES WITH (MODULUS ${PARTITION_COUNT}, REMAINDER ${i});\n`;
  });
  return lines.join("");
}

function versionSql(version: number): string {
  return `DELETE FROM cubepi_schema_version WHERE version <> ${version};
INSERT INTO cubepi_schema_version (version) VALUES (${version}) ON CONFLICT DO NOTHING;
`;
}

function archiveVersionSql(): string {
  return `DELETE FROM everthread_archive_version WHERE version <> ${ARCHIVE_SCHEMA_VERSION};
INSERT INTO everthread_archive_version (version) VALUES (${ARCHIVE_SCHEMA_VERSION}) ON CONFLICT DO NOTHING;
`;
}

/** What is there: the schema that holds the tables, which of them, and the version that is written there. */
export interface FoundSchema {
  schema: string | undefined;
  missing: string[];
  /** Undefined when the table of the version is empty or missing. */
  version: number | undefined;
  archives: FoundArchives;
}

/** What is there of the tables of archives. */
export interface FoundArchives {
  /** Undefined when the tables, or the row that says it, are missing. */
  version: number | undefined;
  /** Which of them are not there for this role; the one of search's index is never needed. */
  missing: (typeof ARCHIVE_TABLES)[number][];
  /** Whether some are there that this role may not even read. */
  forbidden: boolean;
  /** The schema that the extension pg_trgm is in, if it is in the database. */
  trigramSchema: string | undefined;
}

const FIND_TABLES = `SELECT n.nspname AS schema, c.relname AS name,
    pg_catalog.has_table_privilege(c.oid, 'SELECT') AS readable
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p') AND c.relname IN (SELECT json_array_elements_text($1::json))
    AND CASE WHEN $2::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2 END`;
const FIND_TRIGRAM = `SELECT n.nspname AS schema
  FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'`;
const VERSION = "SELECT max(version) AS version FROM cubepi_schema_version";
const ARCHIVE_VERSION = "SELECT max(version) AS version FROM everthread_archive_version";

/** Looks for the tables; writes nothing. */
export async function findSchema(store: PostgresStore, names: TableNames): Promise<FoundSchema> {
  const { schema, tablePrefix = DEFAULT_PREFIX } = names;
  const wanted = TABLES.map((table) => `${tablePrefix}${table}`);
  const own = ARCHIVE_TABLES.map((table) => `${archivePrefix(names)}${table}`);
  const find = { text: FIND_TABLES, values: [JSON.stringify([...wanted, ...own]), schema ?? null] };
  const [found = [], extensions = []] = await store.read("open", [find, { text: FIND_TRIGRAM }]);
  const ofOurs = found.filter(({ name }) => wanted.includes(String(name)));
  const place = ofOurs.find(({ name }) => name === `${tablePrefix}threads`)?.schema ?? ofOurs[0]?.schema ?? undefined;
  const there = found.filter((table) => table.schema === place);
  const here = there.map(({ name }) => String(name));
  const readable = there.filter((table) => table.readable === "t").map(({ name }) => String(name));
  const versions = [
    ...(here.includes(`${tablePrefix}schema_version`) ? [VERSION] : []),
    ...(own.slice(0, 2).every((name) => readable.includes(name)) ? [ARCHIVE_VERSION] : []),
  ];
  const texts = versions.map((sql) => ({ text: onTables(sql, { schema: place, tablePrefix }) }));
  const rows = texts.length === 0 ? [] : await store.read("open", texts);
  const versionBy = (sql: string) => {
    const written = rows[versions.indexOf(sql)]?.[0]?.version;
    return typeof written === "string" ? Number(written) : undefined;
  };
  return {
    schema: place,
    missing: wanted.filter((name) => !here.includes(name)),
    version: versionBy(VERSION),
    archives: {
      version: versionBy(ARCHIVE_VERSION),
      missing: ARCHIVE_TABLES.filter((_, i) => !readable.includes(own[i] ?? "")),
      forbidden: own.some((name) => here.includes(name) && !readable.includes(name)),
      trigramSchema: extensions[0]?.schema ?? undefined,
    },
  };
}

/**
 * Checks that the tables are there in the version that this program writes. Gives their schema, and what there is of archives.
 *
 * @throws SchemaUninitializedError, SchemaMismatchError
 */
export async function verifySchema(
  store: PostgresStore,
  names: TableNames,
): Promise<{ schema: string; archives: FoundArchives }> {
  const { schema, missing, version, archives } = await findSchema(store, names);
  const { tablePrefix = DEFAULT_PREFIX } = names;
  const where = names.schema === undefined ? "on the search_path" : `in the schema ${identifier(names.schema)}`;
  if (schema === undefined || missing.length === TABLES.length) {
    throw new SchemaUninitializedError(
      `There are no tables ${tablePrefix}threads and so on ${where}.`,
      "Run the SQL of schemaSql() in a migration of your own; nothing is created here.",
    );
  }
  if (missing.includes(`${tablePrefix}schema_version`)) {
    throw new SchemaMismatchError(
      SCHEMA_VERSION,
      0,
      `There are tables, but no ${tablePrefix}schema_version to say of which version. Restore it from your migrations; don't run schemaSql() on existing data.`,
    );
  }
  if (version === undefined) {
    throw new SchemaUninitializedError(
      `The table ${tablePrefix}schema_version is empty.`,
      "The migration that makes the tables must also run the SQL of writeSchemaVersionSql().",
    );
  }
  if (version > SCHEMA_VERSION) {
    throw new SchemaMismatchError(SCHEMA_VERSION, version, "Use an Everthread that knows it. Nothing was changed.");
  }
  if (version < SCHEMA_VERSION) {
    throw new SchemaMismatchError(
      SCHEMA_VERSION,
      version,
      `Run the SQL of upgradeSql(${version}, ${SCHEMA_VERSION}) in a migration of your own. Nothing was changed.`,
    );
  }
  if (missing.length > 0) {
    throw new SchemaUninitializedError(
      `Of the tables of version ${version} there are no ${missing.join(", ")}.`,
      "Make them as schemaSql() does, or restore them from a backup.",
    );
  }
  return { schema, archives };
}

/** Whether archives can be kept, decided when a store is opened. */
export function archivesCapability({ version, missing, forbidden }: FoundArchives, names: TableNames): Capability {
  if (version === ARCHIVE_SCHEMA_VERSION) return true;
  const table = `${archivePrefix(names)}archives`;
  if (version !== undefined && version > ARCHIVE_SCHEMA_VERSION) {
    return {
      reason: `The table ${table} is of version ${version}; this Everthread knows ${ARCHIVE_SCHEMA_VERSION}. Use a newer one.`,
    };
  }
  if (forbidden) return { reason: `This role has no rights on the table ${table} and those beside it: GRANT them.` };
  const what = missing.includes("archives") ? `There is no table ${table}` : `The table ${table} has no version`;
  return { reason: `${what}: run \`everthread migrate <url> --apply\`, or the SQL of archiveSchemaSql().` };
}
