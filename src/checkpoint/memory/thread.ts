/** A thread as the in-memory engine holds it. */
import { messageFromJson, messageToJson } from "../../messages/codec.ts";
import { type JsonObject, setOwn } from "../../messages/json.ts";
import type { LogEntry, RunInfo } from "../checkpointer.ts";
import { RunNotCompletedError, ThreadNotFoundError } from "../errors.ts";
import type { AdmittedPart } from "../part.ts";
import { admitPending, type PendingRequest } from "../pending.ts";

// Values are kept as JSON text: what goes in and what comes out are copies, as with any other store.
export interface StoredMessage {
  position: number;
  json: string;
  runId: string | null;
  createdAt: Date;
}

export interface StoredArchive {
  archiveId: string;
  createdAt: Date;
  /** The last position that it holds. */
  upTo: number;
  /** Where the thread stood when it was made. */
  atRevision: number;
  summary: string;
  system: string | null;
  /** The thread's extra at that moment, as JSON text. */
  extra: string;
  prunedAt: Date | null;
}

export interface Thread {
  messages: StoredMessage[];
  /** Oldest first. Their messages are in `messages`, in front of the active ones. */
  archives: StoredArchive[];
  extra: string | undefined;
  parentThreadId: string | null;
  runs: Map<string, RunInfo>;
  pending: { json: string; questionId: string; runId: string | null } | undefined;
  /** Keyed by run and question, as one JSON text. */
  answers: Map<string, string>;
}

export function emptyThread(): Thread {
  return {
    messages: [],
    archives: [],
    extra: undefined,
    parentThreadId: null,
    runs: new Map(),
    pending: undefined,
    answers: new Map(),
  };
}

/** Whether anything is stored of a thread: then it is listed, and no fork may take its id. */
export function hasAnything(thread: Thread | undefined): boolean {
  if (!thread) return false;
  const { messages, extra, runs, pending, answers } = thread;
  return messages.length > 0 || extra !== undefined || runs.size > 0 || pending !== undefined || answers.size > 0;
}

/**
 * What a fork or snapshot takes: the messages of completed runs up to the given one, and those written before runs existed.
 * `cut` is the position of the last message of those runs; 0 when there is none.
 */
export function taken(thread: Thread | undefined, threadId: string, afterRunId: string) {
  if (!thread || !hasAnything(thread)) throw new ThreadNotFoundError(threadId);
  const last = thread.runs.get(afterRunId)?.completionSeq;
  if (!last) throw new RunNotCompletedError(threadId, afterRunId);
  const runs = [...thread.runs.values()].filter(({ completionSeq }) => completionSeq !== null && completionSeq <= last);
  const ids = new Set<string | null>(runs.map(({ runId }) => runId));
  const messages = thread.messages.filter(({ runId }) => runId === null || ids.has(runId));
  const cut = messages.findLast(({ runId }) => runId !== null)?.position ?? 0;
  return { thread, messages, runs, cut };
}

export function revisionOf(thread: Thread): number {
  return thread.messages.at(-1)?.position ?? 0;
}

export function logEntry({ position, json, createdAt }: StoredMessage): LogEntry {
  const rowRef = `messages[${position}]`;
  return { position, rowRef, createdAt: new Date(createdAt), message: messageFromJson(json) };
}

export function copyDate(date: Date | undefined): Date | null {
  return date ? new Date(date) : null;
}

export function storedPending(request: PendingRequest, runId: string | null) {
  const admitted = admitPending(request);
  return { json: JSON.stringify(admitted), questionId: admitted.question_id, runId };
}

export function answerKey(runId: string | null, questionId: string): string {
  return JSON.stringify([runId ?? "", questionId]);
}

export function mergeExtra(thread: Thread, changes: JsonObject): void {
  const merged: JsonObject = JSON.parse(thread.extra ?? "{}");
  for (const [key, value] of Object.entries(changes)) setOwn(merged, key, value);
  thread.extra = JSON.stringify(merged);
}

/** Puts a part of another store's thread into this one. @param nextPosition gives each message its place */
export function putPart(thread: Thread, part: AdmittedPart, nextPosition: () => number): void {
  for (const { message, createdAt } of part.messages) {
    const runId = message.run_id ?? null;
    thread.messages.push({ position: nextPosition(), json: messageToJson(message), runId, createdAt });
  }
  for (const run of part.runs) thread.runs.set(run.runId, run);
  if (part.parentThreadId !== undefined) {
    thread.parentThreadId = part.parentThreadId;
    thread.extra ??= "{}";
  }
  if (part.extra) mergeExtra(thread, part.extra);
  if (part.pending === null) thread.pending = undefined;
  else if (part.pending) thread.pending = storedPending(part.pending.request, part.pending.runId);
  if (part.answers) {
    thread.answers = new Map(
      part.answers.map(({ runId, questionId, answer }) => [answerKey(runId, questionId), JSON.stringify(answer)]),
    );
  }
  if (part.archives) thread.archives = placed(thread.messages, part.archives);
}

/** Archives of another store, with the positions that their messages have here. */
function placed(messages: readonly StoredMessage[], archives: NonNullable<AdmittedPart["archives"]>): StoredArchive[] {
  const positionOf = (count: number) => messages[Math.min(count, messages.length) - 1]?.position ?? 0;
  let count = 0;
  return archives.map(({ archiveId, createdAt, messageCount, kept = 0, summary, system, extra, prunedAt }) => {
    count += messageCount;
    const place = { upTo: positionOf(count), atRevision: positionOf(count + kept) };
    return { archiveId, createdAt, ...place, summary, system, extra: JSON.stringify(extra), prunedAt };
  });
}
