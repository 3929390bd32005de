/** What a MySQL store can be told, checked. */
import type { MySqlStoreOptions } from "../../db/mysql.ts";
import { InvalidArgumentError } from "../../errors.ts";

export interface MySqlOptions extends MySqlStoreOptions {
  /** What the names of the tables begin with. (Default: "cubepi_") */
  tablePrefix?: string | undefined;
}

const OPTIONS: readonly string[] = [
  "tablePrefix",
  "minPoolSize",
  "maxPoolSize",
  "connectTimeoutMs",
  "lockTimeoutMs",
] satisfies (keyof MySqlOptions)[];

/** A name has 64 characters at most, and the longest of ours is ix_…messages_thread_run. */
const PREFIX = /^[A-Za-z0-9_]{1,42}$/;

/** @throws InvalidArgumentError naming the option that is unknown or of the wrong kind */
export function checkOptions(options: MySqlOptions): void {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) {
      throw new InvalidArgumentError(`MySQLCheckpointer has no option ${key}. It has ${OPTIONS.join(", ")}.`);
    }
  }
  checkPrefix(options.tablePrefix);
  const { minPoolSize = 1, maxPoolSize = 10, connectTimeoutMs = 0, lockTimeoutMs = 0 } = options;
  if (!Number.isInteger(maxPoolSize) || maxPoolSize < 1) {
    throw new InvalidArgumentError(`maxPoolSize must be a whole number of 1 or more, not ${String(maxPoolSize)}.`);
  }
  if (!Number.isInteger(minPoolSize) || minPoolSize < 0 || minPoolSize > maxPoolSize) {
    throw new InvalidArgumentError(
      `minPoolSize must be a whole number from 0 to maxPoolSize, not ${String(minPoolSize)}.`,
    );
  }
  for (const [name, value] of Object.entries({ connectTimeoutMs, lockTimeoutMs })) {
    if (!Number.isFinite(value) || value < 0) {
      throw new InvalidArgumentError(`${name} must be 0 or more milliseconds, not ${String(value)}.`);
    }
  }
}

/** A prefix of table names, checked: it becomes a part of SQL. @throws InvalidArgumentError */
export function checkPrefix(prefix: unknown = "cubepi_"): string {
  if (typeof prefix !== "string" || !PREFIX.test(prefix)) {
    throw new InvalidArgumentError("tablePrefix must be 1 to 42 of the characters A-Z, a-z, 0-9 and _.");
  }
  return prefix;
}
