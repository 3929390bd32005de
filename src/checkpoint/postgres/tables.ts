/** The names of the tables. SQL is written with CubeLoop's own names; these put the host's schema and prefix in their place. */
import { identifier } from "../../db/postgres-options.ts";

export interface TableNames {
  /** The Postgres schema; undefined leaves it to the search_path. */
  schema?: string | undefined;
  /** What the names begin with. (Default: "cubepi_") */
  tablePrefix?: string | undefined;
}

export const DEFAULT_PREFIX = "cubepi_";
/** In the order in which they can be created. */
export const TABLES = ["threads", "messages", "runs", "hitl_answers", "schema_version"] as const;

const TABLE = /\bcubepi_((?:messages|runs)_p\d\d|threads|messages|runs|hitl_answers|schema_version)\b/g;
const INDEX = /\bix_cubepi_/g;

/** SQL on the host's tables. */
export function onTables(sql: string, names: TableNames): string {
  const { schema, tablePrefix: prefix = DEFAULT_PREFIX } = names;
  const place = schema === undefined ? "" : `${identifier(schema)}.`;
  return sql
    .replace(TABLE, (_, table: string) => `${place}${identifier(`${prefix}${table}`)}`)
    .replace(INDEX, `ix_${prefix}`);
}
