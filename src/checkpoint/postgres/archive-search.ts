/**
 * Search: keys of messages first, the newest in front, then the messages themselves, a few at a time, until there are hits
 * enough. No transaction is held from one step to the next. The server stops a query that outlasts the time limit.
 */
import type { Row, Value } from "../../db/postgres.ts";
import type { SearchHit, SearchResult } from "../archives.ts";
import { type CheckedSearch, hitOf, type SearchTimer } from "../search.ts";
import { STORE_KEYS, STORE_KEYS_BY_INDEX, THREAD_KEYS, THREAD_KEYS_BY_INDEX } from "./archive-search-queries.ts";
import { keyOf, slices, sourceOf, sourcesQuery } from "./archive-sources.ts";
import type { Query, Tables } from "./archives.ts";

const KEYS = 5000;
const ROWS = 200;
const STATEMENT_TIMEOUT = "SELECT pg_catalog.set_config('statement_timeout', $1, true)";

/** @throws SearchTimeoutError, or the signal's reason */
export async function searchArchives(
  tables: Tables,
  { query, threadId, limit, previewBytes, timer }: CheckedSearch,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  const hits: SearchHit[] = [];
  timer.check();
  if (query.text === "") return { hits, has_more: false };
  const read = (sql: string, values: readonly Value[]) => readWithin(tables, [sql, values], timer, signal);
  // Folded text is what the index holds; a shorter text has to match in case.
  const like = tables.indexed && query.folded ? likeOf(query.text) : undefined;
  // Most of what an index finds is a hit.
  const atOnce = like === undefined ? ROWS : Math.min(ROWS, limit + 1);
  for (let last: Row | undefined, more = true; more; ) {
    const rows = await read(...(threadId === undefined ? storeKeys(last, like) : threadKeys(threadId, last, like)));
    last = rows.at(-1);
    more = rows.length === KEYS;
    for (const slice of slices(rows.map(keyOf), atOnce)) {
      for (const row of await read(...sourcesQuery(slice))) {
        if (timer.isSliceOver) await timer.breathe();
        const source = sourceOf(tables.prefix, row);
        const hit = source && hitOf(source, query, previewBytes);
        if (hit && hits.length === limit) return { hits, has_more: true };
        if (hit) hits.push(hit);
      }
    }
  }
  return { hits, has_more: false };
}

function threadKeys(threadId: string, last: Row | undefined, like: string | undefined): Query {
  const values = [threadId, last?.seq ?? null, KEYS];
  return like === undefined ? [THREAD_KEYS, values] : [THREAD_KEYS_BY_INDEX, [...values, like]];
}

function storeKeys(last: Row | undefined, like: string | undefined): Query {
  const values = [last?.at ?? null, last?.thread_id ?? null, last?.seq ?? null, KEYS];
  return like === undefined ? [STORE_KEYS, values] : [STORE_KEYS_BY_INDEX, [...values, like]];
}

function likeOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, "\\$&")}%`;
}

/** Reads as long as the search may take. What is given up here the server stops by itself. */
async function readWithin(
  tables: Tables,
  query: Query,
  timer: SearchTimer,
  signal: AbortSignal | undefined,
): Promise<Row[]> {
  timer.check();
  const stopped = Promise.withResolvers<never>();
  const stop = () => {
    try {
      timer.check();
    } catch (reason) {
      stopped.reject(reason);
    }
  };
  const left = Math.ceil(timer.remainingMs) + 1;
  const timeout = setTimeout(stop, left);
  signal?.addEventListener("abort", stop);
  try {
    const reading = tables.read("archives.search", [[STATEMENT_TIMEOUT, [`${left}ms`]], query]);
    const [, rows = []] = await Promise.race([reading, stopped.promise]);
    return rows;
  } catch (error) {
    timer.check();
    throw error;
  } finally {
    clearTimeout(timeout);
    signal?.removeEventListener("abort", stop);
  }
}
