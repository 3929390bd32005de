import type { PostgresStoreOptions } from "../../db/postgres.ts";
import { checkPostgresOptions, checkSchemaName, POOL_OPTIONS } from "../../db/postgres-options.ts";

export interface PostgresHistoryOptions extends PostgresStoreOptions {
  /** The Postgres schema that holds the tables. (Default: the one where the search_path finds them when it is opened) */
  schema?: string | undefined;
  /** Never write: what would is refused. (Default: false) */
  readOnly?: boolean | undefined;
}

const OPTIONS: readonly string[] = ["schema", "readOnly", ...POOL_OPTIONS];

/** @throws InvalidArgumentError naming the option that is unknown or of the wrong kind */
export function checkOptions(options: PostgresHistoryOptions): void {
  checkPostgresOptions(options, "PostgresMemoryHistory", OPTIONS);
  checkSchemaName(options.schema);
}
