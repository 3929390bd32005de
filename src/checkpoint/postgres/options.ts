import type { PostgresStoreOptions } from "../../db/postgres.ts";
import { InvalidArgumentError } from "../../errors.ts";
import type { TableNames } from "./tables.ts";

export interface PostgresOptions extends PostgresStoreOptions, TableNames {
  /** The Postgres schema that holds the tables. (Default: the one where the search_path finds them when the store is opened) */
  schema?: string | undefined;
  /** What the tables' names begin with. (Default: "cubepi_", which CubeLoop needs) */
  tablePrefix?: string | undefined;
}

const OPTIONS: readonly string[] = [
  "schema",
  "tablePrefix",
  "minPoolSize",
  "maxPoolSize",
  "connectTimeoutMs",
  "lockTimeoutMs",
] satisfies (keyof PostgresOptions)[];
/** Index names hold the prefix and up to 24 characters more, and Postgres cuts names off after 63. */
const PREFIX = /^[a-z_][a-z0-9_]{0,38}$/;

/** @throws InvalidArgumentError naming the option that is unknown or of the wrong kind */
export function checkOptions(options: PostgresOptions): void {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) {
      throw new InvalidArgumentError(`PostgresCheckpointer has no option ${key}. It has ${OPTIONS.join(", ")}.`);
    }
  }
  checkTableNames(options);
  const { minPoolSize = 1, maxPoolSize = 10, connectTimeoutMs = 1, lockTimeoutMs = 1 } = options;
  if (!Number.isInteger(maxPoolSize) || maxPoolSize < 1) {
    throw new InvalidArgumentError(`maxPoolSize must be a whole number of 1 or more, not ${String(maxPoolSize)}.`);
  }
  if (!Number.isInteger(minPoolSize) || minPoolSize < 0 || minPoolSize > maxPoolSize) {
    throw new InvalidArgumentError(
      `minPoolSize must be a whole number from 0 to maxPoolSize (${maxPoolSize}), not ${String(minPoolSize)}.`,
    );
  }
  for (const [name, value] of Object.entries({ connectTimeoutMs, lockTimeoutMs })) {
    if (!Number.isInteger(value) || value < 1 || value > 2 ** 31 - 1) {
      throw new InvalidArgumentError(`${name} must be a whole number of milliseconds from 1, not ${String(value)}.`);
    }
  }
}

/** @throws InvalidArgumentError */
export function checkTableNames({ schema, tablePrefix }: TableNames): void {
  if (schema !== undefined && (typeof schema !== "string" || schema === "" || schema.includes("\0"))) {
    throw new InvalidArgumentError(`schema must be the name of a schema, not ${JSON.stringify(schema)}.`);
  }
  if (tablePrefix !== undefined && (typeof tablePrefix !== "string" || !PREFIX.test(tablePrefix))) {
    throw new InvalidArgumentError(
      `tablePrefix must be 1 to 39 of a-z, 0-9 and _, not begun by a digit; not ${JSON.stringify(tablePrefix)}.`,
    );
  }
}
