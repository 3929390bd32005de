import type { PostgresStoreOptions } from "../../db/postgres.ts";
import { checkPostgresOptions, checkSchemaName, POOL_OPTIONS } from "../../db/postgres-options.ts";
import { InvalidArgumentError } from "../../errors.ts";
import type { TableNames } from "./tables.ts";

export interface PostgresOptions extends PostgresStoreOptions, TableNames {
  /** The Postgres schema that holds the tables. (Default: the one where the search_path finds them when the store is opened) */
  schema?: string | undefined;
  /** What the tables' names begin with. (Default: "cubepi_", which CubeLoop needs) */
  tablePrefix?: string | undefined;
}

const OPTIONS: readonly string[] = ["schema", "tablePrefix", ...POOL_OPTIONS];
/** Index names hold the prefix and up to 24 characters more, and Postgres cuts names off after 63. */
const PREFIX = /^[a-z_][a-z0-9_]{0,38}$/;

/** @throws InvalidArgumentError naming the option that is unknown or of the wrong kind */
export function checkOptions(options: PostgresOptions): void {
  checkPostgresOptions(options, "PostgresCheckpointer", OPTIONS);
  checkTableNames(options);
}

/** @throws InvalidArgumentError */
export function checkTableNames({ schema, tablePrefix }: TableNames): void {
  checkSchemaName(schema);
  if (tablePrefix !== undefined && (typeof tablePrefix !== "string" || !PREFIX.test(tablePrefix))) {
    throw new InvalidArgumentError(
      `tablePrefix must be 1 to 39 of a-z, 0-9 and _, not begun by a digit; not ${JSON.stringify(tablePrefix)}.`,
    );
  }
}
