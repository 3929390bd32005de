/** What people and tools list of a store: messages, threads, runs, a page at a time. */
import type { Session } from "../../db/mysql.ts";
import type { LogEntry, Page, RunInfo, ThreadInfo } from "../checkpointer.ts";
import { logEntry } from "../log-entry.ts";
import type { CheckedPage } from "../page.ts";
import type { Queries } from "./queries.ts";
import { messageRef, readMessage, toDate } from "./rows.ts";

export async function listMessages(
  session: Session,
  { queries, prefix }: { queries: Queries; prefix: string },
  threadId: string,
  { after, limit }: CheckedPage<number>,
): Promise<Page<LogEntry, number>> {
  const found = await session.rows(queries.LOG_AFTER, [threadId, after, limit + 1]);
  const rows = found.filter((row) => row.thread_id === threadId);
  const items = rows.slice(0, limit).map((row): LogEntry => {
    const position = Number(row.base) + Number(row.seq);
    const about = { position, rowRef: messageRef(prefix, threadId, row.seq), createdAt: toDate(row.created_at) };
    return logEntry(about, () => readMessage(prefix, threadId, row));
  });
  return { items, next: rows.length > limit ? (items.at(-1)?.position ?? after) : null };
}

export async function listThreads(
  session: Session,
  { queries, exact }: { queries: Queries; exact: boolean },
  { after, limit, prefix }: CheckedPage<string> & { prefix: string },
): Promise<Page<ThreadInfo, string>> {
  const found = await session.rows(exact ? queries.THREADS_AFTER : queries.THREADS_AFTER_BY_BYTES, [
    after,
    prefix,
    limit + 1,
  ]);
  const ids = found.map((row) => String(row.thread_id));
  // The ids that begin with the prefix follow each other.
  const end = ids.findIndex((id) => !id.startsWith(prefix));
  const rows = end === -1 ? found : found.slice(0, end);
  const at = (seconds: unknown) => (seconds === null ? null : toDate(seconds));
  const items = rows.slice(0, limit).map((row) => ({
    threadId: String(row.thread_id),
    messageCount: Number(row.count),
    revision: Number(row.revision),
    parentThreadId: row.parent_thread_id as string | null,
    createdAt: at(row.created_at),
    updatedAt: at(row.updated_at),
    pending: Number(row.pending) === 1,
  }));
  return { items, next: rows.length > limit ? (items.at(-1)?.threadId ?? after) : null };
}

export async function listRuns(
  session: Session,
  queries: Queries,
  threadId: string,
  { after, limit }: CheckedPage<string>,
): Promise<Page<RunInfo, string>> {
  const found = await session.rows(queries.RUNS_AFTER, [threadId, after, limit + 1]);
  const rows = found.filter((row) => row.thread_id === threadId);
  const items = rows.slice(0, limit).map((row) => ({
    runId: String(row.run_id),
    claimedAt: toDate(row.claimed_at),
    completedAt: row.completed_at === null ? null : toDate(row.completed_at),
    completionSeq: row.completion_seq === null ? null : Number(row.completion_seq),
  }));
  return { items, next: rows.length > limit ? (items.at(-1)?.runId ?? after) : null };
}
