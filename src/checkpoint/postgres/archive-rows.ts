/** Rows of archives as values. A text with U+0000 is stored as `db/postgres-text.ts` says. */
import type { Row } from "../../db/postgres.ts";
import { escapeText, unescapeText } from "../../db/postgres-text.ts";
import { checkJsonObject, type JsonObject } from "../../messages/json.ts";
import { archiveIdOf, archiveNumberOf } from "../archive-rules.ts";
import type { ArchiveInfo } from "../archives.ts";
import type { ArchivePart, Checkpoint } from "../checkpointer.ts";
import { ArchivePrunedError } from "../errors.ts";
import { readRow } from "../server-rows.ts";
import { fromJsonb, toJsonb } from "./jsonb.ts";
import { BACKEND, toDate } from "./rows.ts";

type Column = string | null | undefined;

export function infoOf(row: Row): ArchiveInfo {
  return {
    archiveId: archiveIdOf(Number(row.archive_no)),
    createdAt: toDate(row.created_at),
    upTo: positionOf(row.base, row.up_to_seq),
    atRevision: positionOf(row.base, row.at_seq),
    messageCount: Number(row.messages),
    summary: unescapeText(row.summary ?? ""),
    prunedAt: dateOf(row.pruned_at),
  };
}

/** What a load says of the last compaction. @param thread the row of the thread @param messages those that are loaded */
export function compactionOf(thread: Row, messages: readonly Row[]): Partial<Checkpoint> {
  if (typeof thread.up_to_seq !== "string") return {};
  return {
    summary: unescapeText(thread.summary ?? ""),
    compactedUpTo: positionOf(thread.base, thread.up_to_seq),
    kept: messages.filter(({ seq }) => Number(seq) <= Number(thread.at_seq)).length,
  };
}

/** A position in a thread's log; 0 for the place before the first message. */
export function positionOf(base: Column, seq: Column): number {
  return Number(seq ?? 0) === 0 ? 0 : Number(base) + Number(seq);
}

/** A text that may be NULL, as it was before it was stored. */
export function textOrNull(column: Column): string | null {
  return typeof column === "string" ? unescapeText(column) : null;
}

export function dateOf(milliseconds: Column): Date | null {
  return typeof milliseconds === "string" ? toDate(milliseconds) : null;
}

/** The column `extra` of an archive. @throws CheckpointCorruptionError */
export function readArchiveExtra(prefix: string, threadId: string, row: Row): JsonObject {
  const rowRef = `${prefix}archives(thread_id=${JSON.stringify(threadId)}, archive_no=${String(row.archive_no)}).extra`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => checkJsonObject(fromJsonb(row.extra ?? "")));
}

/** @throws ArchivePrunedError when the row, of a query of what a fork keeps, says that something of it is lost */
export function checkNothingLost(threadId: string, row: Row | undefined): void {
  const prunedAt = dateOf(row?.pruned_at);
  if (prunedAt) throw new ArchivePrunedError(threadId, archiveIdOf(Number(row?.lost)), prunedAt);
}

/** Archives of another store as the query that imports them takes them. */
export function archivesJson(archives: readonly ArchivePart[]): string {
  let ends = 0;
  const rows = archives.map(({ archiveId, createdAt, messageCount, kept = 0, summary, system, extra, prunedAt }) => {
    ends += messageCount;
    const row = {
      archive_no: archiveNumberOf(archiveId),
      ends,
      stands: ends + kept,
      summary: escapeText(summary),
      system_prompt: system === null ? null : escapeText(system),
      created_at: createdAt,
      pruned_at: prunedAt,
    };
    return `${JSON.stringify(row).slice(0, -1)},"extra":${toJsonb(extra)}}`;
  });
  return `[${rows.join(",")}]`;
}
