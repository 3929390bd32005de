/** The tables belong to the host's migrations: this gives the SQL for them, and checks that they are there. */
import { SchemaMismatchError, SchemaUninitializedError } from "../../db/errors.ts";
import type { PostgresStore } from "../../db/postgres.ts";
import { checkSchemaName, identifier } from "../../db/postgres-options.ts";
import { SQL } from "./sql.ts";

/** The version in `everthread_history_schema`. */
export const SCHEMA_VERSION = 1;
const VERSION_TABLE = "everthread_history_schema";
const TABLES = ["everthread_history", "everthread_history_messages", VERSION_TABLE];

const FIND_TABLES = `SELECT n.nspname AS schema, c.relname AS name
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p') AND c.relname IN (SELECT pg_catalog.json_array_elements_text($1::json))
    AND CASE WHEN $2::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2 END`;
const VERSION = "SELECT max(version) AS version FROM everthread_history_schema";

/**
 * Everything that a memory history needs in a database, as text for any migration tool. Again is harmless. It may run inside
 * a transaction.
 *
 * @param options.schema where the tables go (Default: the first of the search_path)
 * @throws InvalidArgumentError
 */
export function historySchemaSql({ schema }: { schema?: string | undefined } = {}): string {
  checkSchemaName(schema);
  return inSchema(SQL["0001-tables"], schema);
}

/** SQL on the tables of a schema; undefined leaves them to the search_path. */
export function inSchema(sql: string, schema: string | undefined): string {
  if (schema === undefined) return sql;
  return sql.replace(/\beverthread_history(?:_messages|_schema)?\b/g, (table) => `${identifier(schema)}.${table}`);
}

/**
 * Checks that the tables are there in the version that this program writes, and gives their schema. Writes nothing.
 *
 * @param wanted the schema to look in (Default: those of the search_path)
 * @throws SchemaUninitializedError, SchemaMismatchError
 */
export async function verifySchema(store: PostgresStore, wanted: string | undefined): Promise<string> {
  const [found = []] = await store.read("open", [
    { text: FIND_TABLES, values: [JSON.stringify(TABLES), wanted ?? null] },
  ]);
  const schema = (found.find(({ name }) => name === TABLES[0]) ?? found[0])?.schema;
  if (typeof schema !== "string") {
    const where = wanted === undefined ? "on the search_path" : `in the schema ${identifier(wanted)}`;
    throw new SchemaUninitializedError(
      `There are no tables ${TABLES.join(", ")} ${where}.`,
      "Run the SQL of historySchemaSql() in a migration of your own; nothing is created here.",
    );
  }
  const here = found.filter((table) => table.schema === schema).map(({ name }) => name);
  const missing = TABLES.filter((table) => !here.includes(table));
  if (!missing.includes(VERSION_TABLE)) await verifyVersion(store, schema);
  if (missing.length > 0) {
    throw new SchemaUninitializedError(
      `Of the tables in the schema ${identifier(schema)} there are no ${missing.join(", ")}.`,
      "Run the SQL of historySchemaSql(), which makes what is missing, or restore them from a backup.",
    );
  }
  return schema;
}

async function verifyVersion(store: PostgresStore, schema: string): Promise<void> {
  const [rows = []] = await store.read("open", [{ text: inSchema(VERSION, schema) }]);
  const written = rows[0]?.version;
  if (typeof written !== "string") {
    throw new SchemaUninitializedError(
      `The table ${VERSION_TABLE} is empty.`,
      "Run the SQL of historySchemaSql() once more: it writes the version.",
    );
  }
  if (Number(written) !== SCHEMA_VERSION) {
    const hint = "Use an Everthread that knows it. Nothing was changed.";
    throw new SchemaMismatchError(SCHEMA_VERSION, Number(written), hint);
  }
}
