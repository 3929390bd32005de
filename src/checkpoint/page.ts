import { InvalidArgumentError } from "../errors.ts";

export { checkLimit } from "../util/limit.ts";

/** One page of a listing; hand `next` back as `after` for the following page. Null when there is no more. */
export interface Page<T, Cursor> {
  items: T[];
  next: Cursor | null;
}

export interface PageOptions<Cursor> {
  /** Only what follows this. (Default: from the start) */
  after?: Cursor | undefined;
  /** How many items at most, 0 to 10,000. (Default: 100) */
  limit?: number | undefined;
}

/** A page's options, checked. */
export interface CheckedPage<Cursor> {
  after: Cursor;
  limit: number;
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
