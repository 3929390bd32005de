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

/** So many candidates are asked for at first, four times as many when they were not enough, and so on up to this. */
const FIRST_CANDIDATES = 64;
const MOST_CANDIDATES = 4096;
/** One slice finds so many messages, so much text in UTF-16 units, or goes on for so many ms. */
const SLICE_MESSAGES = 256;
const SLICE_TEXT = 1_000_000;
const SLICE_MS = 5;

/** An archived message that may be a hit. */
interface Found {
  threadId: string;
  archiveId: string;
  position: number;
  createdAt: Date;
  /** Null for a large one, which is not read in one go. */
  json: string | null;
}

/** What is left to look at. */
interface Place {
  /** Messages before this id; 0 when there are no more. */
  before: number;
  /** But first these, newest first. */
  candidates: number[];
  /** How many candidates are asked for next. */
  next: number;
}

export async function search(store: SqliteStore, checked: CheckedSearch): Promise<SearchResult> {
  const { query, limit, previewBytes, timer } = checked;
  const hits: SearchHit[] = [];
  timer.check();
  if (query.text === "") return { hits, has_more: false };
  const maySay = filterOf(query);
  const place: Place = { before: Number.MAX_SAFE_INTEGER, candidates: [], next: FIRST_CANDIDATES };
  while (place.before > 0 || place.candidates.length > 0) {
    // One more than the limit, to know whether there are more.
    const wanted = Math.min(limit + 1 - hits.length, SLICE_MESSAGES);
    const found = await store.read("archives.search", () => nextSlice(store, checked, place, maySay, wanted));
    timer.check();
    for (const { json, ...source } of found) {
      if (timer.isSliceOver) await timer.breathe();
      const message = await readMessage(store, source.position, json, timer);
      const hit = message && (await hitOf({ ...source, message }, query, previewBytes, timer));
      if (hit && hits.length === limit) return { hits, has_more: true };
      if (hit) hits.push(hit);
    }
    if (timer.isSliceOver) await timer.breathe();
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

/** Goes on with a search, within a read. */
function nextSlice(
  store: SqliteStore,
  { query, threadId }: CheckedSearch,
  place: Place,
  maySay: (json: string) => boolean,
  wanted: number,
): Found[] {
  const { archives, index } = archiveTables(store);
  const last = threadId === undefined ? undefined : lastArchive(store, threadId);
  if (!archives || (threadId !== undefined && !last)) {
    Object.assign(place, { before: 0, candidates: [] });
    return [];
  }
  if (last) place.before = Math.min(place.before, last.upTo + 1);
  const byIndex = query.folded && index;
  if (byIndex && place.candidates.length === 0) askIndex(store, query, place, threadId, last?.scope);
  const found: Found[] = [];
  const holding = holdingArchives(store);
  let text = 0;
  const end = performance.now() + SLICE_MS;
  for (const row of byIndex ? candidates(store, place) : others(store, place, threadId)) {
    const json = row.message_json as string | null;
    const one = json === null || maySay(json) ? foundOf(row, threadId, holding) : undefined;
    if (one) found.push(one);
    text += one?.json?.length ?? 0;
    if (found.length === wanted || text > SLICE_TEXT || performance.now() > end) break;
  }
  return found;
}

/** Gets candidates of the newest block that the thread, or the store, has messages in. */
function askIndex(
  store: SqliteStore,
  query: Query,
  place: Place,
  threadId: string | undefined,
  scope: number | undefined,
): void {
  const { before, next } = place;
  const newest =
    threadId === undefined
      ? store.prepare(Q.LAST_BEFORE).get(before)?.id
      : store.prepare(Q.LAST_OF_THREAD_BEFORE).get(threadId, before)?.id;
  if (typeof newest !== "number") {
    place.before = 0;
    return;
  }
  const match = matchOf(query.text, newest, scope, next > FIRST_CANDIDATES);
  const from = blockStart(newest);
  const rows = store.prepare(Q.CANDIDATES).all({ match, before, from, limit: next });
  place.candidates = rows.map(({ id }) => Number(id));
  place.before = (rows.length === next && place.candidates.at(-1)) || from;
  place.next = Math.min(4 * next, MOST_CANDIDATES);
}

/** The messages of the candidates; each that was taken leaves its place. */
function* candidates(store: SqliteStore, place: Place): Generator<Row> {
  const ids = place.candidates;
  let taken = 0;
  try {
    for (const id of ids) {
      taken++;
      const row = store.prepare(Q.MESSAGE).get(id);
      if (row) yield row;
    }
  } finally {
    place.candidates = ids.slice(taken);
  }
}

/** All messages that are left. */
function* others(store: SqliteStore, place: Place, threadId: string | undefined): Generator<Row> {
  const rows =
    threadId === undefined
      ? store.prepare(Q.MESSAGES_BEFORE).iterate(place.before)
      : store.prepare(Q.MESSAGES_OF_THREAD_BEFORE).iterate(threadId, place.before);
  for (const row of rows as Iterable<Row>) {
    place.before = Number(row.id);
    yield row;
  }
  place.before = 0;
}

/** Undefined for a message that is not archived, or is another thread's. */
function foundOf(
  row: Row,
  threadId: string | undefined,
  holding: ReturnType<typeof holdingArchives>,
): Found | undefined {
  const [owner, position] = [String(row.thread_id), Number(row.id)];
  if (threadId !== undefined && owner !== threadId) return undefined;
  const archiveId = holding(owner, position);
  if (archiveId === undefined) return undefined;
  const createdAt = toDate(row.created_at);
  return { threadId: owner, archiveId, position, createdAt, json: row.message_json as string | null };
}

/** Gives the archive that a message is in. Neighbours are mostly in the same one. */
function holdingArchives(store: SqliteStore): (threadId: string, position: number) => string | undefined {
  let last = { threadId: "", start: 0, upTo: 0, archiveId: "" };
  return (threadId, position) => {
    if (threadId === last.threadId && position > last.start && position <= last.upTo) return last.archiveId;
    const row = store.prepare(Q.HOLDING).get(threadId, position);
    if (!row) return undefined;
    last = {
      threadId,
      start: Number(row.start),
      upTo: Number(row.up_to),
      archiveId: archiveIdOf(Number(row.archive_no)),
    };
    return last.archiveId;
  };
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
