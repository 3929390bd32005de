import { InvalidArgumentError } from "../errors.ts";
import type { PostgresStoreOptions } from "./postgres.ts";

/** The options of a store that are those of its pool. */
export const POOL_OPTIONS: readonly string[] = [
  "minPoolSize",
  "maxPoolSize",
  "connectTimeoutMs",
  "lockTimeoutMs",
] satisfies (keyof PostgresStoreOptions)[];

/**
 * Checks the options of a store on Postgres.
 *
 * @param owner whose options they are, for the error: "PostgresCheckpointer"
 * @param known the names of all that it has
 * @throws InvalidArgumentError naming the option that is unknown or of the wrong kind
 */
export function checkPostgresOptions(options: PostgresStoreOptions, owner: string, known: readonly string[]): void {
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new InvalidArgumentError(`${owner} has no option ${key}. It has ${known.join(", ")}.`);
    }
  }
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
export function checkSchemaName(schema: string | undefined): void {
  if (schema !== undefined && (typeof schema !== "string" || schema === "" || schema.includes("\0"))) {
    throw new InvalidArgumentError(`schema must be the name of a schema, not ${JSON.stringify(schema)}.`);
  }
}

/** A name as SQL writes it, in quotes where it needs them. */
export function identifier(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
