/**
 * Search in a SQLite file: candidates by the index, or all that is archived where a text is too short for it or there is no
 * index; newest first, in slices between which the event loop and other work get their turn. No transaction outlasts a slice.
 */
import type { Row, SqliteStore } from "../../db/sqlite.ts";
import { messageFromJson } from "../../messages/codec.ts";
import { InvalidMessageError } from "../../messages/errors.ts";
import type { Message } from "../../messages/schema.ts";
import { archiveIdOf } from "../archive-rules.ts";
import type { SearchHit, SearchResult } from "../archives.ts";
import { type CheckedSearch, comparable, hitOf, type Query, type SearchTimer } from "../search.ts";
import { blockStart, matchOf } from "./archive-index.ts";
import * as Q from "./archive-queries.ts";
import { lastArchive } from "./archive-rows.ts";
import { archiveTables } from "./archive-tables.ts";
import { readLargeMessage } from "./large-message.ts";
import { toDate } from "./rows.ts";

/** So many candidates are asked for at first, and up to so many later, when the first were not enough. */
const FIRST_PAGE = 64;
const MOST_PAGE = 4096;
/** One slice reads so many messages, so much text in UTF-16 units, or for so many ms. */
const SLICE_MESSAGES = 256;
const SLICE_TEXT = 1_000_000;
const SLICE_MS = 5;

/** How far a search has come. */
interface Place {
  /** What is left are messages before this id. */
  before: number;
  /** Candidates that are to be looked at first, newest first. */
  candidates: number[];
  /** How many candidates are asked for next. */
  page: number;
}

/** An archived message that may be a hit. */
interface Found {
  threadId: string;
  archiveId: string;
  position: number;
  createdAt: Date;
  /** Null for a large one, which is not read in one go. */
  json: string | null;
}

interface Slice {
  found: Found[];
  /** Undefined when there is no more. */
  next: Place | undefined;
}

export async function search(store: SqliteStore, checked: CheckedSearch): Promise<SearchResult> {
  const { query, limit, previewBytes, timer } = checked;
  const hits: SearchHit[] = [];
  timer.check();
  if (query.text === "") return { hits, has_more: false };
  let place: Place | undefined = { before: Number.MAX_SAFE_INTEGER, candidates: [], page: FIRST_PAGE };
  while (place) {
    const from: Place = place;
    // One more than the limit, to know whether there are more.
    const wanted = Math.min(limit + 1 - hits.length, SLICE_MESSAGES);
    const slice = await store.read("archives.search", () => nextSlice(store, checked, from, wanted));
    timer.check();
    for (const { json, ...source } of slice.found) {
      if (timer.isSliceOver) await timer.breathe();
      const message = await readMessage(store, source.position, json, timer);
      const hit = message && (await hitOf({ ...source, message }, query, previewBytes, timer));
      if (hit && hits.length === limit) return { hits, has_more: true };
      if (hit) hits.push(hit);
    }
    if (timer.isSliceOver) await timer.breathe();
    place = slice.next;
  }
  return { hits, has_more: false };
}

/** Undefined for one that is damaged, or gone meanwhile. */
async function readMessage(
  store: SqliteStore,
  id: number,
  json: string | null,
  timer: SearchTimer,
): Promise<Message | undefined> {
  try {
    return json === null ? await readLargeMessage(store, id, timer) : messageFromJson(json);
  } catch (error) {
    // A search that is out of time, or a store that fails, is not the damage of one row.
    if (json !== null || error instanceof SyntaxError || error instanceof InvalidMessageError) return undefined;
    throw error;
  }
}

function nextSlice(store: SqliteStore, checked: CheckedSearch, place: Place, wanted: number): Slice {
  const { query, threadId } = checked;
  const { archives, index } = archiveTables(store);
  const last = threadId === undefined ? undefined : lastArchive(store, threadId);
  if (!archives || (threadId !== undefined && !last)) return { found: [], next: undefined };
  const from = { ...place, before: Math.min(place.before, (last?.upTo ?? Number.MAX_SAFE_INTEGER - 1) + 1) };
  if (query.folded && index) return candidates(store, query, from, wanted, threadId, last?.scope);
  return scanned(store, query, from, threadId);
}

function candidates(
  store: SqliteStore,
  query: Query,
  place: Place,
  wanted: number,
  threadId: string | undefined,
  scope: number | undefined,
): Slice {
  const next = place.candidates.length > 0 ? place : withCandidates(store, query, place, threadId, scope);
  if (!next) return { found: [], next: undefined };
  const found: Found[] = [];
  let text = 0;
  let looked = 0;
  for (const id of next.candidates) {
    looked++;
    const row = store.prepare(Q.MESSAGE).get(id);
    const one = row && foundOf(store, row, threadId);
    if (one) found.push(one);
    text += one?.json?.length ?? 0;
    if (found.length === wanted || text > SLICE_TEXT) break;
  }
  return { found, next: { ...next, candidates: next.candidates.slice(looked) } };
}

/** Asks the index about the next block that the thread, or the store, has messages in. */
function withCandidates(
  store: SqliteStore,
  query: Query,
  { before, page }: Place,
  threadId: string | undefined,
  scope: number | undefined,
): Place | undefined {
  const newest =
    threadId === undefined
      ? store.prepare(Q.LAST_BEFORE).get(before)?.id
      : store.prepare(Q.LAST_OF_THREAD_BEFORE).get(threadId, before)?.id;
  if (typeof newest !== "number") return undefined;
  const rows = store.prepare(Q.CANDIDATES).all({ match: matchOf(query.text, newest, scope), before, limit: page });
  const ids = rows.map(({ id }) => Number(id));
  const left = ids.length === page ? ids.at(-1) : undefined;
  return { before: left ?? blockStart(newest), candidates: ids, page: Math.min(page * 4, MOST_PAGE) };
}

function scanned(store: SqliteStore, query: Query, place: Place, threadId: string | undefined): Slice {
  const rows =
    threadId === undefined
      ? store.prepare(Q.MESSAGES_BEFORE).iterate(place.before)
      : store.prepare(Q.MESSAGES_OF_THREAD_BEFORE).iterate(threadId, place.before);
  const maySay = filterOf(query);
  const end = performance.now() + SLICE_MS;
  const found: Found[] = [];
  let text = 0;
  for (const row of rows as Iterable<Row>) {
    const json = row.message_json as string | null;
    const one = json === null || maySay(json) ? foundOf(store, row, threadId) : undefined;
    if (one) found.push(one);
    text += one?.json?.length ?? 0;
    if (found.length === SLICE_MESSAGES || text > SLICE_TEXT || performance.now() > end) {
      return { found, next: { ...place, before: Number(row.id) } };
    }
  }
  return { found, next: undefined };
}

/** Undefined for a message that is not archived, or is another thread's. */
function foundOf(store: SqliteStore, row: Row, threadId: string | undefined): Found | undefined {
  const [owner, position] = [String(row.thread_id), Number(row.id)];
  if (threadId !== undefined && owner !== threadId) return undefined;
  const holding = store.prepare(Q.HOLDING).get(owner, position);
  if (!holding) return undefined;
  const archiveId = archiveIdOf(Number(holding.archive_no));
  const createdAt = toDate(row.created_at);
  return { threadId: owner, archiveId, position, createdAt, json: row.message_json as string | null };
}

/** Characters that JSON may hold in another form. */
const ESCAPED = /["\\/\u0000-\u001f]/;
/** ASCII that no other character becomes in its normal form, as the Kelvin sign becomes K. */
const PLAIN = /^[ -:<-JL-_a-~]+$/;

/**
 * Whether a message may say what is looked for, by its JSON alone. What is said is in the JSON as it is, but for escaped
 * characters, and for what `sourceText` writes itself of a tool call: "path: x", numbers.
 */
function filterOf(query: Query): (json: string) => boolean {
  if (ESCAPED.test(query.text)) return () => true;
  const isPlain = !query.folded && PLAIN.test(query.text);
  const holds = (json: string) => (isPlain ? json : comparable(json, query)).includes(query.text);
  return (json) => holds(json) || json.includes("\\u") || json.includes('tool_call"');
}
