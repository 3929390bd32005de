/** Pages of a listing that is in memory. */
import { compareCodePoints, type Page } from "everthread";

/** The first `limit` items, and where the next page begins if there are more. */
export function pageOf<T, Cursor>(items: T[], limit: number, cursorOf: (item: T) => Cursor): Page<T, Cursor> {
  const page = items.slice(0, limit);
  const last = page.at(-1);
  return { items: page, next: last !== undefined && items.length > limit ? cursorOf(last) : null };
}

/** As pageOf, of what follows the id `after` in code point order. */
export function pageById<T>(
  items: T[],
  after: string | undefined,
  limit: number,
  idOf: (item: T) => string,
): Page<T, string> {
  const rest = items
    .filter((item) => after === undefined || compareCodePoints(idOf(item), after) > 0)
    .sort((a, b) => compareCodePoints(idOf(a), idOf(b)));
  return pageOf(rest, limit, idOf);
}
