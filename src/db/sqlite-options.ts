import { InvalidArgumentError } from "../errors.ts";
import type { SqliteOptions } from "./sqlite.ts";

const OPTIONS: readonly string[] = [
  "readOnly",
  "busyTimeoutMs",
  "journalMode",
  "durability",
] satisfies (keyof SqliteOptions)[];
const JOURNAL_MODES = ["wal", "delete", "truncate", "persist", undefined];
const DURABILITIES = ["full", "normal", "off", undefined];

/**
 * Checks the options of a SQLite file.
 *
 * @param owner whose options they are, for the error: "SqliteCheckpointer"
 * @throws InvalidArgumentError naming the option that is unknown or of the wrong kind
 */
export function checkSqliteOptions(options: SqliteOptions, owner: string): void {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) {
      throw new InvalidArgumentError(`${owner} has no option ${key}. It has ${OPTIONS.join(", ")}.`);
    }
  }
  const { busyTimeoutMs = 0, journalMode, durability } = options;
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new InvalidArgumentError(`busyTimeoutMs must be 0 or more milliseconds, not ${String(busyTimeoutMs)}.`);
  }
  if (!JOURNAL_MODES.includes(journalMode)) {
    throw new InvalidArgumentError(`journalMode can't be ${String(journalMode)}.`);
  }
  if (options.readOnly && (journalMode !== undefined || durability !== undefined)) {
    throw new InvalidArgumentError(
      "journalMode and durability are of writing, and the store is to be opened readOnly.",
    );
  }
  if (!DURABILITIES.includes(durability)) throw new InvalidArgumentError(`durability can't be ${String(durability)}.`);
}
