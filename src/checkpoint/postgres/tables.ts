/** The names of the tables. SQL is written with the names by default; these put the host's schema and prefix in their place. */
import { identifier } from "../../db/postgres-options.ts";

export interface TableNames {
  /** The Postgres schema; undefined leaves it to the search_path. */
  schema?: string | undefined;
  /** What the names begin with. (Default: "cubepi_", and "everthread_" for the tables of archives) */
  tablePrefix?: string | undefined;
}

export const DEFAULT_PREFIX = "cubepi_";
/** In the order in which they can be created. */
export const TABLES = ["threads", "messages", "runs", "hitl_answers", "schema_version"] as const;
/** Those that CubeLoop does not know. The last is there only where search has an index. */
export const ARCHIVE_TABLES = ["archives", "archive_version", "archive_sources"] as const;

const TABLE = /\bcubepi_((?:messages|runs)_p\d\d|threads|messages|runs|hitl_answers|schema_version)\b/g;
const ARCHIVE_TABLE = /\beverthread_(archives|archive_version|archive_sources)\b/g;
const INDEX = /\bix_cubepi_/g;
const ARCHIVE_INDEX = /\bix_everthread_/g;

/** What the names of the tables of archives begin with. */
export function archivePrefix({ tablePrefix = DEFAULT_PREFIX }: TableNames): string {
  return tablePrefix === DEFAULT_PREFIX ? "everthread_" : tablePrefix;
}

/** SQL on the host's tables. */
export function onTables(sql: string, names: TableNames): string {
  const { schema, tablePrefix: prefix = DEFAULT_PREFIX } = names;
  const own = archivePrefix(names);
  const place = schema === undefined ? "" : `${identifier(schema)}.`;
  return sql
    .replace(TABLE, (_, table: string) => `${place}${identifier(`${prefix}${table}`)}`)
    .replace(ARCHIVE_TABLE, (_, table: string) => `${place}${identifier(`${own}${table}`)}`)
    .replace(INDEX, `ix_${prefix}`)
    .replace(ARCHIVE_INDEX, `ix_${own}`);
}
