/** Which of the archives' tables a file has, and how they are made: the first compaction makes them, in any program. */
import { StoreError } from "../../db/errors.ts";
import type { SqliteStore, Steps } from "../../db/sqlite.ts";
import { indexText } from "./archive-index.ts";
import * as Q from "./archive-queries.ts";
import { SQL } from "./sql.ts";

export interface ArchiveTables {
  archives: boolean;
  /** An older file has none, and where SQLite has no FTS5 it can't be read: then search reads the messages. */
  index: boolean;
}

/** So many messages are read at once to be indexed. */
const BATCH = 100;
const PROGRESS_EVERY = 200;
const INDEX = "everthread_archive_index";

const known = new WeakMap<SqliteStore, { cookie: unknown; tables: ArchiveTables }>();

/** Looks which tables are there, within a read. Costs next to nothing while no program makes or drops a table. */
export function archiveTables(store: SqliteStore): ArchiveTables {
  const cookie = store.prepare(Q.SCHEMA_COOKIE).get()?.schema_version;
  const last = known.get(store);
  if (last?.cookie === cookie && last) return last.tables;
  const tables = archiveTablesNow(store);
  known.set(store, { cookie, tables });
  return tables;
}

/** As {@link archiveTables}, within a write: what is made there may yet be undone, so it is not remembered. */
export function archiveTablesNow(store: SqliteStore): ArchiveTables {
  const names = namesOf(store);
  return { archives: names.includes("everthread_archives"), index: names.includes(INDEX) && hasFts5(store) };
}

function namesOf(store: SqliteStore): unknown[] {
  const rows = store.prepare(Q.TABLES).all();
  return rows.map(({ name }) => name);
}

/** Node's own SQLite has it since 22.16; one that a system gives Node may not. Then search reads the messages. */
function hasFts5(store: SqliteStore): boolean {
  return store.prepare(Q.HAS_FTS5).get() !== undefined;
}

/**
 * Whether there is an index to keep up with the archives, within a write.
 *
 * @throws StoreError when this SQLite can't write it: what it lacks would never be found, what is erased would stay in it
 */
export function keepsIndex(store: SqliteStore): boolean {
  if (!namesOf(store).includes(INDEX)) return false;
  if (hasFts5(store)) return true;
  throw new StoreError(
    "The file has an index of its archives, and this SQLite has no FTS5 to write it with. Use Node 22.16 or later. Nothing was changed.",
  );
}

/** Whether the file has archives and no index of them, though there could be one. Within a read or a write. */
export function lacksIndex(store: SqliteStore): boolean {
  const { archives, index } = archiveTablesNow(store);
  return archives && !index && hasFts5(store);
}

/**
 * Makes what is missing, within a write. A new index gets every message that is archived already.
 *
 * @param onProgress told how many of them are in it
 * @returns whether there is an index
 */
export function* makeArchiveTables(
  store: SqliteStore,
  onProgress?: (done: number, total: number) => void,
): Steps<boolean> {
  const { archives } = archiveTablesNow(store);
  if (!archives) store.exec(SQL["0004-archives"]);
  if (keepsIndex(store)) return true;
  if (!hasFts5(store)) return false;
  store.exec(SQL["0005-archive-index"]);
  if (archives) yield* indexArchives(store, onProgress);
  return true;
}

function* indexArchives(store: SqliteStore, onProgress?: (done: number, total: number) => void): Steps<void> {
  let total = 0;
  let before = { threadId: "", upTo: 0 };
  for (const row of store.prepare(Q.EVERY_ARCHIVE).all()) {
    const [threadId, upTo] = [String(row.thread_id), Number(row.up_to)];
    const start = threadId === before.threadId ? before.upTo : 0;
    total += Number(store.prepare(Q.COUNT_BETWEEN).get(threadId, start, upTo)?.count);
    before = { threadId, upTo };
    yield;
  }
  let done = 0;
  for (let left = Number.MAX_SAFE_INTEGER; ; ) {
    const rows = store.prepare(Q.EVERY_MESSAGE_BEFORE).all(left, BATCH);
    for (const row of rows) {
      left = Number(row.id);
      const scope = store.prepare(Q.SCOPE_OF).get(String(row.thread_id), left)?.scope;
      if (scope !== undefined) {
        indexText(store, left, Number(scope), String(row.message_json));
        done++;
        if (done % PROGRESS_EVERY === 0 || done === total) onProgress?.(done, total);
      }
      yield;
    }
    if (rows.length === 0) return;
  }
}

/** Puts archived messages of a thread into the index, the newest first; a step is a message. */
export function* indexBetween(
  store: SqliteStore,
  threadId: string,
  scope: number,
  start: number,
  upTo: number,
): Steps<void> {
  // The rows are read first: an index is not written to while what goes into it is still being read.
  for (let last = upTo; ; ) {
    const rows = store.prepare(Q.LAST_BETWEEN).all(threadId, start, last, BATCH);
    for (const { id, message_json } of rows) {
      indexText(store, Number(id), scope, String(message_json));
      last = Number(id) - 1;
      yield;
    }
    if (rows.length === 0) return;
  }
}
