/** The lines of an export: one JSON object each, in the form that docs/cli.md describes and `import` reads. */
import type { ArchivePart, LogEntry, RecordedAnswer, RunInfo, ThreadInfo } from "../checkpoint/checkpointer.ts";
import type { CheckpointCorruptionError } from "../checkpoint/errors.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import type { Rest } from "./log.ts";

/** The format's version: 1 for a thread without archives, which the first version reads too. A reader refuses a higher one. */
export const FORMAT = 2;

export function threadRecord(info: ThreadInfo, { extra }: Rest, archives: readonly ArchivePart[]) {
  const { threadId, parentThreadId } = info;
  const format = archives.length > 0 ? FORMAT : 1;
  return { type: "thread", format, thread_id: threadId, parent_thread_id: parentThreadId, extra };
}

export function archiveRecord({ archiveId, createdAt, messageCount, kept, prunedAt, ...rest }: ArchivePart) {
  const { summary, system, extra } = rest;
  return {
    type: "archive",
    archive_id: archiveId,
    created_at: createdAt,
    messages: messageCount,
    kept,
    summary,
    system,
    extra,
    pruned_at: prunedAt,
  };
}

export function runRecord({ runId, claimedAt, completedAt, completionSeq }: RunInfo) {
  return {
    type: "run",
    run_id: runId,
    claimed_at: claimedAt,
    completed_at: completedAt,
    completion_seq: completionSeq,
  };
}

export function entryRecord(entry: LogEntry) {
  if (entry.error) return damageRecord(entry.error, entry.position);
  return { type: "message", position: entry.position, created_at: entry.createdAt, message: entry.message };
}

export function damageRecord({ rowRef, message }: CheckpointCorruptionError, position?: number) {
  return { type: "damaged", ...(position === undefined ? {} : { position }), row_ref: rowRef, problem: message };
}

export function pendingRecord({ request, runId }: { request: PendingRequest; runId: string | null }) {
  return { type: "pending", run_id: runId, request };
}

export function answerRecord({ runId, questionId, answer }: RecordedAnswer) {
  return { type: "answer", run_id: runId, question_id: questionId, answer };
}

/** The last line of a thread: without it the thread was cut short. */
export function endRecord(threadId: string, messages: number, runs: number) {
  return { type: "end", thread_id: threadId, messages, runs };
}
