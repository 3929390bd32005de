import { InvalidArgumentError } from "../errors.ts";

const MAX_LIMIT = 10_000;

/**
 * A count of items at most, checked: 0 means none, and nothing means "all" by accident.
 *
 * @param name how the error calls it (Default: "A page's limit")
 * @param fallback what an undefined one stands for (Default: 100)
 * @throws InvalidArgumentError unless it is a whole number from 0 to 10,000
 */
export function checkLimit(limit: unknown, name = "A page's limit", fallback = 100): number {
  if (limit === undefined) return fallback;
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 0 || limit > MAX_LIMIT) {
    throw new InvalidArgumentError(`${name} must be a whole number from 0 to ${MAX_LIMIT}, not ${String(limit)}.`);
  }
  // -0 is 0.
  return limit === 0 ? 0 : limit;
}
