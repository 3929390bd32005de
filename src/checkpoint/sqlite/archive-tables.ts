/** Which of the archives' tables a file has, and how they are made: the first compaction makes them, in any program. */
import type { SqliteStore, Steps } from "../../db/sqlite.ts";
import { indexText } from "./archive-index.ts";
import * as Q from "./archive-queries.ts";
import { SQL } from "./sql.ts";

export interface ArchiveTables {
  archives: boolean;
  /** Of an older file, or where SQLite has no FTS5, there is none: search reads the messages. */
  index: boolean;
}

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
  const names = store
    .prepare(Q.TABLES)
    .all()
    .map(({ name }) => name);
  return { archives: names.includes("everthread_archives"), index: names.includes("everthread_archive_index") };
}

/** Node's own SQLite has it; one that a system gives Node may not. Then search reads the messages. */
export function hasFts5(store: SqliteStore): boolean {
  return store.prepare(Q.HAS_FTS5).get() !== undefined;
}

const BATCH = 200;

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
  const { archives, index } = archiveTablesNow(store);
  if (!archives) store.exec(SQL["0004-archives"]);
  if (index) return true;
  if (!hasFts5(store)) return false;
  store.exec(SQL["0005-archive-index"]);
  const total = archives ? Number(store.prepare(Q.COUNT_ARCHIVED).get()?.count) : 0;
  let [done, after] = [0, 0];
  while (done < total) {
    const rows = store.prepare(Q.ARCHIVED_AFTER).all(after, BATCH);
    if (rows.length === 0) break;
    for (const { id, message_json, scope } of rows) {
      indexText(store, Number(id), Number(scope), String(message_json));
      after = Number(id);
      yield;
    }
    done += rows.length;
    onProgress?.(done, total);
  }
  return true;
}
