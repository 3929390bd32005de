/**
 * Search in a SQLite file: candidates by the index, or all that is archived where a text is too short for it or there is no
 * index; newest first, in slices between which the event loop and other work get their turn.
 */
import type { Row, SqliteStore } from "../../db/sqlite.ts";
import { messageFromJson } from "../../messages/codec.ts";
import { archiveIdOf } from "../archive-rules.ts";
import type { SearchHit, SearchResult } from "../archives.ts";
import { type CheckedSearch, hitOf, type Query, type Source } from "../search.ts";
import { matchOf } from "./archive-index.ts";
import * as Q from "./archive-queries.ts";
import { lastArchive } from "./archive-rows.ts";
import { archiveTables } from "./archive-tables.ts";
import { toDate } from "./rows.ts";

/** One step through the index looks at so many ids at most: a common trigram has as many rows. */
const INDEX_WINDOW = 100_000;
const SCAN_WINDOW = 5000;
/** One slice takes so many rows, or so much text in UTF-16 units. */
const SLICE_ROWS = 256;
const SLICE_TEXT = 1_000_000;

/**
 * Characters that stand in JSON as they are, and that no other character becomes in its normal form (as the Kelvin sign
 * becomes K): a message whose JSON lacks a text of them does not say it.
 */
const STANDS_IN_JSON = /^[ !#-:<-JL-[\]-_a-~]+$/;

export async function search(store: SqliteStore, checked: CheckedSearch): Promise<SearchResult> {
  const { query, limit, previewBytes, timer } = checked;
  const hits: SearchHit[] = [];
  timer.check();
  if (query.text === "") return { hits, has_more: false };
  let before: number | undefined;
  for (;;) {
    const slice = await store.read("archives.search", () => nextSlice(store, checked, before));
    timer.check();
    for (const source of slice.sources) {
      if (timer.isSliceOver) await timer.breathe();
      const hit = await hitOf(source, query, previewBytes, timer);
      if (hit && hits.length === limit) return { hits, has_more: true };
      if (hit) hits.push(hit);
    }
    if (slice.before <= 0) return { hits, has_more: false };
    before = slice.before;
    if (timer.isSliceOver) await timer.breathe();
  }
}

interface Slice {
  sources: Source[];
  /** Where the next slice ends; 0 when this was the last. */
  before: number;
}

function nextSlice(store: SqliteStore, { query, threadId }: CheckedSearch, given: number | undefined): Slice {
  const { archives, index } = archiveTables(store);
  const last = threadId === undefined ? undefined : lastArchive(store, threadId);
  if (!archives || (threadId !== undefined && !last)) return { sources: [], before: 0 };
  const newest = last?.upTo ?? Number(store.prepare(Q.LAST_ID).get()?.id);
  const before = Math.min(given ?? newest + 1, newest + 1);
  const rows =
    query.folded && index
      ? { window: INDEX_WINDOW, of: (from: number) => candidates(store, query, last?.scope, from, before) }
      : { window: SCAN_WINDOW, of: (from: number) => scanned(store, query, threadId, from, before) };
  const from = Math.max(1, before - rows.window);
  const sources: Source[] = [];
  let text = 0;
  for (const row of rows.of(from)) {
    const source = sourceOf(store, row);
    if (source) sources.push(source);
    text += String(row.message_json).length;
    if (sources.length === SLICE_ROWS || text > SLICE_TEXT) return { sources, before: Number(row.id) };
  }
  return { sources, before: from === 1 ? 0 : from };
}

function candidates(store: SqliteStore, query: Query, scope: number | undefined, from: number, before: number) {
  return store.prepare(Q.CANDIDATES).iterate({ match: matchOf(query.text, scope), from, before }) as Iterable<Row>;
}

function scanned(store: SqliteStore, query: Query, thread: string | undefined, from: number, before: number) {
  const raw = !query.folded && STANDS_IN_JSON.test(query.text) ? query.text : null;
  const rows =
    thread === undefined
      ? store.prepare(Q.SOURCES).iterate({ raw, from, before })
      : store.prepare(Q.SOURCES_OF_THREAD).iterate({ thread, raw, from, before });
  return rows as Iterable<Row>;
}

/** The source of a row; undefined for a message that is not archived, or can't be read. */
function sourceOf(store: SqliteStore, row: Row): Source | undefined {
  const [threadId, position] = [String(row.thread_id), Number(row.id)];
  const holding = store.prepare(Q.HOLDING).get(threadId, position);
  if (!holding) return undefined;
  try {
    const message = messageFromJson(String(row.message_json));
    const archiveId = archiveIdOf(Number(holding.archive_no));
    return { threadId, archiveId, position, createdAt: toDate(row.created_at), message };
  } catch {
    return undefined;
  }
}
