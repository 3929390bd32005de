/** What people and tools list of a store: messages, threads, runs, a page at a time. Rows come with one more than the page. */
import type { Row } from "../../db/postgres.ts";
import type { LogEntry, Page, RecordedAnswer, RunInfo, ThreadInfo } from "../checkpointer.ts";
import { logEntry } from "../log-entry.ts";
import type { CheckedPage } from "../page.ts";
import { messageRef, readAnswer, readMessage, toDate } from "./rows.ts";

export function messagePage(
  rows: Row[],
  { after, limit }: CheckedPage<number>,
  threadId: string,
  prefix: string,
): Page<LogEntry, number> {
  const items = rows.slice(0, limit).map((row): LogEntry => {
    const about = {
      position: Number(row.position),
      rowRef: messageRef(prefix, threadId, row.seq),
      createdAt: toDate(row.created_at),
    };
    return logEntry(about, () => readMessage(prefix, threadId, row));
  });
  return { items, next: rows.length > limit ? (items.at(-1)?.position ?? after) : null };
}

export function threadPage(rows: Row[], { after, limit }: CheckedPage<string>): Page<ThreadInfo, string> {
  const items = rows.slice(0, limit).map((row) => ({
    threadId: String(row.thread_id),
    messageCount: Number(row.count),
    revision: Number(row.revision),
    parentThreadId: row.parent_thread_id ?? null,
    createdAt: dateOrNull(row.created_at),
    updatedAt: dateOrNull(row.updated_at),
    pending: row.pending === "t",
  }));
  return { items, next: rows.length > limit ? (items.at(-1)?.threadId ?? after) : null };
}

export function runPage(rows: Row[], { after, limit }: CheckedPage<string>): Page<RunInfo, string> {
  const items = rows.slice(0, limit).map((row) => ({
    runId: String(row.run_id),
    claimedAt: toDate(row.claimed_at),
    completedAt: dateOrNull(row.completed_at),
    completionSeq: typeof row.completion_seq === "string" ? Number(row.completion_seq) : null,
  }));
  return { items, next: rows.length > limit ? (items.at(-1)?.runId ?? after) : null };
}

export function answerList(rows: Row[], threadId: string, prefix: string): RecordedAnswer[] {
  return rows.map(({ run_id, question_id, answer }) => ({
    // CubeLoop writes "" where there is no run.
    runId: run_id || null,
    questionId: String(question_id),
    answer: readAnswer(prefix, threadId, String(question_id), answer),
  }));
}

/** A cursor as Postgres takes it: no id holds U+0000, so nothing stands between the text before it and the text with it. */
export function cursorText(after: string): string {
  return (after.split("\0", 1)[0] ?? "").toWellFormed();
}

function dateOrNull(milliseconds: string | null | undefined): Date | null {
  return typeof milliseconds === "string" ? toDate(milliseconds) : null;
}
