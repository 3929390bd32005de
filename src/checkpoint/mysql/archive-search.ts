/**
 * Search: keys of messages first, the newest in front, then the messages themselves, a few at a time, until there are hits
 * enough. It is a scan, and holds no transaction from one step to the next.
 */
import type { MySqlStore, Row, Session } from "../../db/mysql.ts";
import type { SearchHit, SearchResult } from "../archives.ts";
import { CheckpointCorruptionError } from "../errors.ts";
import { type CheckedSearch, hitOf, type Source } from "../search.ts";
import { type ArchiveTables, type Marks, marksOf } from "./archive-marks.ts";
import { readMessage, toDate } from "./rows.ts";

/** How many keys are asked for: few at first, and then many, since each time all that is archived is put in order. */
const FIRST_KEYS = 1000;
const KEYS = 20_000;
const ROWS = 1000;
const BYTES = 4_000_000;

interface Key {
  threadId: string;
  seq: number;
  bytes: number;
  /** When it was stored, in seconds since 1970; only in a search of the whole store. */
  at: number;
}

/** @throws SearchTimeoutError, or the signal's reason */
export async function searchArchives(
  store: MySqlStore,
  tables: ArchiveTables,
  { query, threadId, limit, previewBytes, timer }: CheckedSearch,
): Promise<SearchResult> {
  const hits: SearchHit[] = [];
  timer.check();
  if (query.text === "") return { hits, has_more: false };
  const read = async <T>(run: (session: Session) => Promise<T>): Promise<T> => {
    timer.check();
    return await timer.race(store.read("archives.search", run));
  };
  const met = new Map<string, Marks>();
  const meet = async (id: string) => {
    const marks = met.get(id) ?? (await read((session) => marksOf(session, tables, id)));
    met.set(id, marks);
    return marks;
  };
  for (let last: Key | undefined, more = true; more; ) {
    const count = last ? KEYS : FIRST_KEYS;
    const end = threadId === undefined ? 0 : ((await meet(threadId)).marks.at(-1)?.upTo ?? 0);
    const keys = await read((session) =>
      threadId === undefined
        ? storeKeys(session, tables, last, count)
        : threadKeys(session, tables, { threadId, end, last, count }),
    );
    last = keys.at(-1);
    more = keys.length === count;
    for (const slice of slices(keys)) {
      for (const { threadId: id } of slice) if (!met.has(id)) await meet(id);
      const json = JSON.stringify(slice.map(({ threadId: id, seq }, n) => [n, id, seq]));
      const rows = await read((session) => session.rows(tables.archives.SOURCES, [json]));
      for (const row of rows.sort((a, b) => Number(a.n) - Number(b.n))) {
        if (timer.isSliceOver) await timer.breathe();
        const id = slice[Number(row.n)]?.threadId ?? "";
        const source = sourceOf(tables.prefix, id, row, met.get(id));
        const hit = source && (await hitOf(source, query, previewBytes, timer));
        if (hit && hits.length === limit) return { hits, has_more: true };
        if (hit) hits.push(hit);
      }
    }
  }
  return { hits, has_more: false };
}

async function threadKeys(
  session: Session,
  { archives }: ArchiveTables,
  { threadId, end, last, count }: { threadId: string; end: number; last: Key | undefined; count: number },
): Promise<Key[]> {
  const rows = await session.rows(archives.THREAD_KEYS, [threadId, last ? last.seq - 1 : end, count]);
  return rows.map((row) => ({ threadId, seq: Number(row.seq), bytes: Number(row.bytes), at: 0 }));
}

async function storeKeys(
  session: Session,
  { archives }: ArchiveTables,
  last: Key | undefined,
  count: number,
): Promise<Key[]> {
  const { at, threadId, seq } = last ?? { at: 2 ** 53, threadId: "", seq: 0 };
  const rows = await session.rows(archives.STORE_KEYS, [at, at, threadId, threadId, seq, count]);
  return rows.map((row) => ({
    threadId: String(row.thread_id),
    seq: Number(row.seq),
    bytes: Number(row.bytes),
    at: Number(row.at),
  }));
}

/** Keys whose messages are read at once. */
function* slices(keys: readonly Key[]): Generator<Key[]> {
  let slice: Key[] = [];
  let bytes = 0;
  for (const key of keys) {
    if (slice.length > 0 && (slice.length === ROWS || bytes + key.bytes > BYTES)) {
      yield slice;
      slice = [];
      bytes = 0;
    }
    slice.push(key);
    bytes += key.bytes;
  }
  if (slice.length > 0) yield slice;
}

/** Undefined for a message that is in no archive, and for a damaged one: it says nothing that could be found. */
function sourceOf(prefix: string, threadId: string, row: Row, marks: Marks | undefined): Source | undefined {
  const seq = Number(row.seq);
  const mark = marks?.marks.find(({ upTo }) => upTo >= seq);
  if (!marks || !mark) return undefined;
  const { archiveId } = mark;
  const createdAt = toDate(row.created_at);
  try {
    return { threadId, archiveId, position: marks.base + seq, createdAt, message: readMessage(prefix, threadId, row) };
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return undefined;
    throw error;
  }
}
