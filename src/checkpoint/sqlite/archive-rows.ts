/** Archives as rows: what a thread has of them, and what one holds. Runs inside a read or a write. */
import type { Row, SqliteStore } from "../../db/sqlite.ts";
import { archiveIdOf } from "../archive-rules.ts";
import type { ArchiveInfo } from "../archives.ts";
import * as Q from "./archive-queries.ts";
import { archiveTables } from "./archive-tables.ts";
import { REVISION } from "./queries.ts";
import { readJson, toDate } from "./rows.ts";

/** An archive without what is in it. */
export interface ArchiveRow extends Omit<ArchiveInfo, "messageCount"> {
  number: number;
  scope: number;
}

export function archiveRow(threadId: string, row: Row): ArchiveRow {
  const number = Number(row.archive_no);
  return {
    number,
    archiveId: archiveIdOf(number),
    createdAt: toDate(row.created_at),
    upTo: Number(row.up_to),
    atRevision: Number(row.at_revision),
    summary: readText(threadId, number, row.summary_json) ?? "",
    prunedAt: row.pruned_at === null ? null : toDate(row.pruned_at),
    scope: Number(row.scope),
  };
}

/** A text or null. @throws CheckpointCorruptionError */
export function readText(threadId: string, number: number, json: unknown): string | null {
  const rowRef = `everthread_archives.archive_no=${number}`;
  return readJson(threadId, rowRef, json, (value) => {
    if (typeof value === "string" || value === null) return value;
    throw new TypeError("The value must be a string.");
  });
}

/** The thread's last archive; undefined when it was never compacted. */
export function lastArchive(store: SqliteStore, threadId: string): ArchiveRow | undefined {
  if (!archiveTables(store).archives) return undefined;
  const row = store.prepare(Q.LAST).get(threadId);
  return row && archiveRow(threadId, row);
}

/** Where a thread stands, also when retention has removed all of its messages. */
export function revisionOf(store: SqliteStore, threadId: string): number {
  return Number(store.prepare(REVISION).get(threadId)?.revision ?? lastArchive(store, threadId)?.upTo ?? 0);
}

/** Oldest first. */
export function archivesOf(store: SqliteStore, threadId: string): ArchiveRow[] {
  return store
    .prepare(Q.ALL)
    .all(threadId)
    .map((row) => archiveRow(threadId, row));
}

/** What stood before an archive: the position that it begins after, and the summary until then. */
export function before(store: SqliteStore, threadId: string, number: number): { upTo: number; summary: string | null } {
  const row = store.prepare(Q.BEFORE).get(threadId, number);
  return { upTo: Number(row?.up_to ?? 0), summary: row ? readText(threadId, number, row.summary_json) : null };
}

export function infoOf(store: SqliteStore, threadId: string, archive: ArchiveRow): ArchiveInfo {
  const { number, scope: _, ...info } = archive;
  const { upTo: start } = before(store, threadId, number);
  const counted = store.prepare(Q.COUNT_BETWEEN).get(threadId, start, archive.upTo);
  return { ...info, messageCount: Number(counted?.count) };
}
