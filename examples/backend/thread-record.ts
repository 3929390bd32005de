/** What the example backend keeps of one thread, and the rules that need nothing but this record. */
import {
  type AdmittedPart,
  CheckpointCorruptionError,
  checkNewRunId,
  type JsonObject,
  type JsonValue,
  type LogEntry,
  type Message,
  messageFromJson,
  messageToJson,
  type PendingRequest,
  RunAlreadyCompletedError,
  RunNotCompletedError,
  ThreadConflictError,
  type ThreadInfo,
} from "everthread";

export const BACKEND = "file";

/** A message stays the text it was stored as, so that a damaged one damages nothing beside it. */
export interface StoredMessage {
  position: number;
  runId: string | null;
  createdAt: string;
  message: string;
}

export interface StoredRun {
  runId: string;
  claimedAt: string;
  completedAt: string | null;
  completionSeq: number | null;
}

export interface ThreadRecord {
  threadId: string;
  /** The last position that was ever given: a thread that is deleted and begun anew goes on from there. */
  lastPosition: number;
  parentThreadId: string | null;
  messages: StoredMessage[];
  extra: JsonObject | null;
  runs: StoredRun[];
  pending: { request: PendingRequest; runId: string | null } | null;
  answers: (QuestionOfRun & { answer: JsonValue })[];
}

export interface QuestionOfRun {
  questionId: string;
  runId: string | null;
}

export function emptyRecord(threadId: string, lastPosition = 0): ThreadRecord {
  return {
    threadId,
    lastPosition,
    parentThreadId: null,
    messages: [],
    extra: null,
    runs: [],
    pending: null,
    answers: [],
  };
}

/** Whether anything is stored of the thread: then it can be listed and deleted, and no fork may take its id. */
export function hasAnything(record: ThreadRecord): boolean {
  const { messages, extra, runs, pending, answers } = record;
  return messages.length + runs.length + answers.length > 0 || extra !== null || pending !== null;
}

export const revisionOf = (record: ThreadRecord): number => record.messages.at(-1)?.position ?? 0;

/** @throws ThreadConflictError when the thread stands elsewhere */
export function expectRevision(record: ThreadRecord, expected: number | undefined): void {
  const actual = revisionOf(record);
  if (expected !== undefined && expected !== actual) throw new ThreadConflictError(record.threadId, expected, actual);
}

/** @throws RunAlreadyCompletedError, InvalidIdError when a run that was never claimed has too long an id */
export function expectOpenRun(record: ThreadRecord, runId: string): void {
  const run = record.runs.find((one) => one.runId === runId);
  if (!run) checkNewRunId(runId);
  else if (run.completedAt !== null) throw new RunAlreadyCompletedError(record.threadId, runId);
}

/** @throws CheckpointCorruptionError when the stored text is no message */
export function readMessage(record: ThreadRecord, stored: StoredMessage): Message {
  try {
    return messageFromJson(stored.message);
  } catch (cause) {
    const where = { threadId: record.threadId, backend: BACKEND, rowRef: rowRefOf(stored) };
    throw new CheckpointCorruptionError({ ...where, cause });
  }
}

/** A message as it is listed: a damaged one with its error. */
export function entryOf(record: ThreadRecord, stored: StoredMessage): LogEntry {
  const { position } = stored;
  const where = { position, rowRef: rowRefOf(stored), createdAt: new Date(stored.createdAt) };
  try {
    return { ...where, message: readMessage(record, stored) };
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return { ...where, error };
    throw error;
  }
}

const rowRefOf = (stored: StoredMessage): string => `messages.position=${stored.position}`;

/** What a fork after the given run takes: completed runs up to it, their messages, and the messages of no run. */
export function upToRun(record: ThreadRecord, runId: string): { messages: StoredMessage[]; runs: StoredRun[] } {
  const last = record.runs.find((run) => run.runId === runId)?.completionSeq;
  if (last === undefined || last === null) throw new RunNotCompletedError(record.threadId, runId);
  const runs = record.runs.filter((run) => run.completionSeq !== null && run.completionSeq <= last);
  const taken = new Set(runs.map((run) => run.runId));
  const messages = record.messages.filter((stored) => stored.runId === null || taken.has(stored.runId));
  return { messages, runs };
}

export function infoOf(record: ThreadRecord): ThreadInfo {
  const [first] = record.messages;
  const last = record.messages.at(-1);
  return {
    threadId: record.threadId,
    messageCount: record.messages.length,
    revision: revisionOf(record),
    parentThreadId: record.parentThreadId,
    createdAt: first ? new Date(first.createdAt) : null,
    updatedAt: last ? new Date(last.createdAt) : null,
    pending: record.pending !== null,
  };
}

export const isTo = (one: QuestionOfRun, asked: QuestionOfRun): boolean =>
  one.questionId === asked.questionId && one.runId === asked.runId;

/** Whether the thread waits on this question of this run. */
export function isPending({ pending }: ThreadRecord, asked: QuestionOfRun): boolean {
  return pending !== null && isTo({ questionId: pending.request.question_id, runId: pending.runId }, asked);
}

export function putAnswer(record: ThreadRecord, asked: QuestionOfRun, answer: JsonValue): void {
  record.answers = [...record.answers.filter((one) => !isTo(one, asked)), { ...asked, answer }];
}

/** Puts a part of another store's thread into this one. */
export function putPart(record: ThreadRecord, part: AdmittedPart): void {
  for (const { message, createdAt } of part.messages) {
    const position = ++record.lastPosition;
    const [at, text] = [createdAt.toISOString(), messageToJson(message)];
    record.messages.push({ position, runId: message.run_id ?? null, createdAt: at, message: text });
  }
  for (const run of part.runs) {
    const [claimedAt, completedAt] = [run.claimedAt.toISOString(), run.completedAt?.toISOString() ?? null];
    record.runs = record.runs.filter(({ runId }) => runId !== run.runId);
    record.runs.push({ ...run, claimedAt, completedAt });
  }
  record.parentThreadId = part.parentThreadId ?? record.parentThreadId;
  const extra = part.extra ?? {};
  if (Object.keys(extra).length > 0 || part.parentThreadId !== undefined) record.extra = { ...record.extra, ...extra };
  if (part.pending !== undefined) record.pending = part.pending;
  if (part.answers) record.answers = [];
  for (const { answer, ...asked } of part.answers ?? []) putAnswer(record, asked, answer);
}
