import { InvalidArgumentError } from "../errors.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

/** The limit of a page, checked: 0 means none, and nothing means "all" by accident. @throws InvalidArgumentError */
export function checkLimit(limit: unknown): number {
  if (limit === undefined) return DEFAULT_LIMIT;
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 0 || limit > MAX_LIMIT) {
    throw new InvalidArgumentError(
      `A page's limit must be a whole number from 0 to ${MAX_LIMIT}, not ${String(limit)}.`,
    );
  }
  return limit === 0 ? 0 : limit;
}

/** A revision or position, checked. @throws InvalidArgumentError */
export function checkRevision(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new InvalidArgumentError(`${name} must be a revision: a whole number of 0 or more, not ${String(value)}.`);
  }
  return value;
}

/** A text cursor or prefix, checked. @throws InvalidArgumentError */
export function checkText(value: unknown, name: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw new InvalidArgumentError(`${name} must be a string, not ${typeof value}.`);
  return value;
}
