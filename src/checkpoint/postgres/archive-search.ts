/**
 * Search: keys of messages first, the newest in front, then the messages themselves, a few at a time, until there are hits
 * enough. No transaction is held from one step to the next. The server stops a query that outlasts the time limit.
 */
import type { Row } from "../../db/postgres.ts";
import type { SearchHit, SearchResult } from "../archives.ts";
import { type CheckedSearch, hitOf } from "../search.ts";
import { STORE_KEYS, STORE_KEYS_BY_INDEX, THREAD_KEYS, THREAD_KEYS_BY_INDEX } from "./archive-search-queries.ts";
import { keyOf, SourceReader, slices } from "./archive-sources.ts";
import type { Query, Tables } from "./archive-tables.ts";

/** How many keys are asked for: few at first, and then many, since each time all that is archived is put in order. */
const FIRST_KEYS = 1000;
const KEYS = 20_000;
const ROWS = 1000;
const STATEMENT_TIMEOUT = "SELECT pg_catalog.set_config('statement_timeout', $1, true)";

/** @throws SearchTimeoutError, or the signal's reason */
export async function searchArchives(
  tables: Tables,
  { query, threadId, limit, previewBytes, timer }: CheckedSearch,
): Promise<SearchResult> {
  const hits: SearchHit[] = [];
  timer.check();
  if (query.text === "") return { hits, has_more: false };
  const read = async (queries: readonly Query[]) => {
    timer.check();
    // What is given up here the server stops by itself.
    const timeout: Query = [STATEMENT_TIMEOUT, [`${Math.ceil(timer.remainingMs) + 1}ms`]];
    return (await timer.race(tables.read("archives.search", [timeout, ...queries]))).slice(1);
  };
  const reader = new SourceReader(tables.prefix, read);
  // Folded text is what the index holds; a shorter text has to match in case.
  const like = tables.indexed && query.folded ? likeOf(query.text) : undefined;
  // Most of what an index finds is a hit.
  const atOnce = like === undefined ? ROWS : Math.min(ROWS, limit + 1);
  for (let last: Row | undefined, more = true; more; ) {
    const count = last ? KEYS : FIRST_KEYS;
    const page = { last, count, like };
    const [rows = []] = await read([threadId === undefined ? storeKeys(page) : threadKeys(threadId, page)]);
    last = rows.at(-1);
    more = rows.length === count;
    for (const slice of slices(rows.map(keyOf), atOnce)) {
      for (const row of await reader.rows(slice)) {
        if (timer.isSliceOver) await timer.breathe();
        const source = reader.sourceOf(row);
        const hit = source && (await hitOf(source, query, previewBytes, timer));
        if (hit && hits.length === limit) return { hits, has_more: true };
        if (hit) hits.push(hit);
      }
    }
  }
  return { hits, has_more: false };
}

interface KeyPage {
  /** The last key of the page before. */
  last: Row | undefined;
  count: number;
  /** What the index is asked for; undefined where there is none. */
  like: string | undefined;
}

function threadKeys(threadId: string, { last, count, like }: KeyPage): Query {
  const values = [threadId, last?.seq ?? null, count];
  return like === undefined ? [THREAD_KEYS, values] : [THREAD_KEYS_BY_INDEX, [...values, like]];
}

function storeKeys({ last, count, like }: KeyPage): Query {
  const values = [last?.at ?? null, last?.thread_id ?? null, last?.seq ?? null, count];
  return like === undefined ? [STORE_KEYS, values] : [STORE_KEYS_BY_INDEX, [...values, like]];
}

function likeOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, "\\$&")}%`;
}
