/** What people and tools list of a file: messages, threads, runs, a page at a time. Runs inside a read. */
import type { SqliteStore } from "../../db/sqlite.ts";
import { compareCodePoints } from "../../util/ids.ts";
import type { LogEntry, Page, RecordedAnswer, RunInfo, ThreadInfo } from "../checkpointer.ts";
import { logEntry } from "../log-entry.ts";
import type { CheckedPage } from "../page.ts";
import { revisionOf } from "./archive-rows.ts";
import * as Q from "./queries.ts";
import { readAnswer, readMessage, toDate } from "./rows.ts";

export function listMessages(store: SqliteStore, threadId: string, page: CheckedPage<number>): Page<LogEntry, number> {
  const { after, limit } = page;
  const rows = store.prepare(Q.LOG_AFTER).all(threadId, after, limit + 1);
  const items = rows.slice(0, limit).map((row): LogEntry => {
    const position = Number(row.id);
    const about = { position, rowRef: `messages.id=${position}`, createdAt: toDate(row.created_at) };
    return logEntry(about, () => readMessage(threadId, position, row.message_json));
  });
  return { items, next: rows.length > limit ? (items.at(-1)?.position ?? after) : null };
}

export function listThreads(
  store: SqliteStore,
  page: CheckedPage<string | undefined> & { prefix: string },
): Page<ThreadInfo, string> {
  const { after, limit, prefix } = page;
  const items: ThreadInfo[] = [];
  let threadId = firstThread(store, after, prefix);
  while (threadId?.startsWith(prefix) && items.length < limit) {
    items.push(threadInfo(store, threadId));
    threadId = threadAfter(store, threadId);
  }
  const more = threadId?.startsWith(prefix) ?? false;
  return { items, next: more ? (items.at(-1)?.threadId ?? after ?? "") : null };
}

export function listRuns(store: SqliteStore, threadId: string, page: CheckedPage<string>): Page<RunInfo, string> {
  const { after, limit } = page;
  const rows = store.prepare(Q.RUNS_AFTER).all(threadId, after, limit + 1);
  const items = rows.slice(0, limit).map((row) => ({
    runId: String(row.run_id),
    claimedAt: toDate(row.claimed_at),
    completedAt: row.completed_at === null ? null : toDate(row.completed_at),
    completionSeq: row.completion_seq as number | null,
  }));
  return { items, next: rows.length > limit ? (items.at(-1)?.runId ?? after) : null };
}

export function listHitlAnswers(store: SqliteStore, threadId: string): RecordedAnswer[] {
  return store
    .prepare(Q.ANSWERS)
    .all(threadId)
    .map((row) => ({
      // CubeLoop writes "" where there is no run.
      runId: row.run_id === "" ? null : String(row.run_id),
      questionId: String(row.question_id),
      answer: readAnswer(threadId, String(row.question_id), row.answer_json),
    }));
}

function firstThread(store: SqliteStore, after: string | undefined, prefix: string): string | undefined {
  if (after !== undefined && compareCodePoints(after, prefix) >= 0) return threadAfter(store, after);
  // The prefix itself may be a thread's id, and "after" finds only what follows.
  const isThread = prefix !== "" && store.prepare(Q.THREAD_EXISTS).get({ thread: prefix })?.found === 1;
  return isThread ? prefix : threadAfter(store, prefix);
}

function threadAfter(store: SqliteStore, threadId: string): string | undefined {
  return (store.prepare(Q.NEXT_THREAD).get({ after: threadId })?.thread_id as string | null | undefined) ?? undefined;
}

function threadInfo(store: SqliteStore, threadId: string): ThreadInfo {
  const row = store.prepare(Q.THREAD_INFO).get({ thread: threadId }) ?? {};
  const at = (column: string) => (row[column] === null ? null : toDate(row[column]));
  return {
    threadId,
    messageCount: Number(row.count),
    revision: Number(row.count) > 0 ? Number(row.revision) : revisionOf(store, threadId),
    parentThreadId: row.parent_thread_id as string | null,
    createdAt: at("created_at"),
    updatedAt: at("updated_at"),
    pending: row.pending === 1,
  };
}
