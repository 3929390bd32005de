/** What changes a thread in memory. Each checks first: one that throws has changed nothing. */
import { InvalidArgumentError } from "../errors.ts";
import { messageToJson } from "../messages/codec.ts";
import { type JsonObject, type JsonValue, parseKeepingNumbers, setOwn } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import { checkNewRunId, compareCodePoints, MAX_RUN_ID_LENGTH } from "../util/ids.ts";
import { archiveIdOf, checkArchiveCounts, keptByFork } from "./archive-rules.ts";
import type { RecordedAnswer } from "./checkpointer.ts";
import {
  CompactionConflictError,
  RunAlreadyClaimedError,
  RunAlreadyCompletedError,
  RunNotClaimedError,
  ThreadConflictError,
} from "./errors.ts";
import type { AdmittedPart, admitCompaction } from "./part.ts";
import { admitPending, type PendingRequest } from "./pending.ts";
import {
  type ArchiveMark,
  emptyThread,
  revisionOf,
  type StoredArchive,
  type StoredMessage,
  type Thread,
  taken,
} from "./thread-state.ts";

/** Where the thread stands. @throws ThreadConflictError when that is not where it is expected to */
export function checkExpected(
  threadId: string,
  thread: Thread<ArchiveMark> | undefined,
  expected: number | undefined,
): number {
  const actual = thread ? revisionOf(thread) : 0;
  if (expected !== undefined && actual !== expected) throw new ThreadConflictError(threadId, expected, actual);
  return actual;
}

/** Adds admitted messages; none may belong to a run that has ended. @param nextPosition gives each message its place */
export function addMessages(
  threadId: string,
  thread: Thread<ArchiveMark>,
  messages: readonly Message[],
  nextPosition: () => number,
): void {
  for (const { run_id } of messages) if (typeof run_id === "string") checkOpenRun(threadId, thread, run_id);
  const createdAt = new Date();
  const stored = messages.map((message) => ({
    json: messageToJson(message),
    runId: message.run_id ?? null,
    createdAt,
  }));
  for (const message of stored) thread.messages.push({ position: nextPosition(), ...message });
}

function checkOpenRun(threadId: string, thread: Thread<ArchiveMark>, runId: string): void {
  const run = thread.runs.get(runId);
  if (run?.completedAt) throw new RunAlreadyCompletedError(threadId, runId);
  if (!run && runId.length > MAX_RUN_ID_LENGTH) checkNewRunId(runId);
}

export function claimRun(threadId: string, { runs }: Thread<ArchiveMark>, runId: string): void {
  const run = runs.get(runId);
  if (run?.completedAt) throw new RunAlreadyCompletedError(threadId, runId);
  if (run) throw new RunAlreadyClaimedError(threadId, runId);
  runs.set(runId, { runId, claimedAt: new Date(), completedAt: null, completionSeq: null });
}

export function completeRun(threadId: string, thread: Thread<ArchiveMark> | undefined, runId: string): void {
  const run = thread?.runs.get(runId);
  if (!thread || !run) throw new RunNotClaimedError(threadId, runId);
  if (run.completedAt) return;
  const last = Math.max(0, ...[...thread.runs.values()].map(({ completionSeq }) => completionSeq ?? 0));
  thread.runs.set(runId, { ...run, completedAt: new Date(), completionSeq: last + 1 });
}

/** Merging nothing stores nothing: a thread that has no key is as one without extra, since not every engine tells them apart. */
export function mergeExtra(thread: Thread<ArchiveMark>, changes: JsonObject): void {
  if (Object.keys(changes).length === 0) return;
  const merged = parseKeepingNumbers(thread.extra ?? "{}") as JsonObject;
  for (const [key, value] of Object.entries(changes)) setOwn(merged, key, value);
  thread.extra = JSON.stringify(merged);
}

export function storedPending(request: PendingRequest, runId: string | null) {
  const admitted = admitPending(request);
  return { json: JSON.stringify(admitted), questionId: admitted.question_id, runId };
}

/** Removes the pending request if it is still this one. Gives whether it was. */
export function takePending(
  thread: Thread<ArchiveMark> | undefined,
  questionId: string,
  runId: string | null,
): thread is Thread<ArchiveMark> {
  if (!thread?.pending || thread.pending.questionId !== questionId || thread.pending.runId !== runId) return false;
  thread.pending = undefined;
  return true;
}

export function answerKey(runId: string | null, questionId: string): string {
  return JSON.stringify([runId ?? "", questionId]);
}

/** The ledger of a thread, by run and question in code point order. */
export function answersOf(thread: Thread<ArchiveMark> | undefined): RecordedAnswer[] {
  return [...(thread?.answers ?? [])]
    .map(([key, json]) => {
      const [runId, questionId] = JSON.parse(key) as [string, string];
      return { runId: runId === "" ? null : runId, questionId, answer: JSON.parse(json) as JsonValue };
    })
    .sort((a, b) => compareCodePoints(a.runId ?? "", b.runId ?? "") || compareCodePoints(a.questionId, b.questionId));
}

/** @param questionIds which (Default: all of the run) */
export function clearAnswers(
  { answers }: Thread<ArchiveMark>,
  runId: string | null,
  questionIds: readonly string[] | undefined,
): void {
  const keys = questionIds?.map((id) => answerKey(runId, id));
  const ofRun = () => [...answers.keys()].filter((key) => JSON.parse(key)[0] === (runId ?? ""));
  for (const key of keys ?? ofRun()) answers.delete(key);
}

/** Puts a part of another store's thread into this one, whose archived messages are at hand. @param nextPosition as above */
export function putPart(thread: Thread, part: AdmittedPart, nextPosition: () => number): void {
  checkArchiveCounts(part.archives ?? [], thread.messages.length + part.messages.length);
  putPieces(thread, part, nextPosition);
  if (part.archives) thread.archives = placed(thread.messages, part.archives);
}

/** As {@link putPart}, of a part without archives. */
export function putPieces(
  thread: Thread<ArchiveMark>,
  part: Omit<AdmittedPart, "archives">,
  nextPosition: () => number,
): void {
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

/** The archive that a compaction makes. @throws CompactionConflictError, InvalidArgumentError */
export function newArchive(
  threadId: string,
  thread: Thread<ArchiveMark>,
  { upTo, summary, system }: ReturnType<typeof admitCompaction>,
): StoredArchive {
  const compactedUpTo = thread.archives.at(-1)?.upTo ?? 0;
  if (upTo <= compactedUpTo) throw new CompactionConflictError(threadId, upTo, compactedUpTo);
  if (!thread.messages.some(({ position }) => position === upTo)) {
    throw new InvalidArgumentError(`upTo must be the position of an active message; none stands at ${upTo}.`);
  }
  return {
    archiveId: archiveIdOf(thread.archives.length + 1),
    createdAt: new Date(),
    upTo,
    atRevision: revisionOf(thread),
    summary,
    system,
    extra: thread.extra ?? "{}",
    prunedAt: null,
  };
}

/**
 * A fork of a thread whose archived messages are at hand.
 *
 * @param options.metadata stored under `extra.fork` (Default: nothing) @param nextPosition gives each message its place
 * @throws ThreadNotFoundError, RunNotCompletedError, ArchivePrunedError
 */
export function forkOf(
  sourceThreadId: string,
  source: Thread | undefined,
  options: { afterRunId: string; metadata: JsonObject | undefined },
  nextPosition: () => number,
): Thread {
  const { thread, messages, runs, cut } = taken(source, sourceThreadId, options.afterRunId);
  const kept = keptByFork(sourceThreadId, thread.archives, cut);
  const extra = parseKeepingNumbers(thread.extra ?? "{}") as JsonObject;
  if (options.metadata) extra.fork = options.metadata;
  const copies = messages.map((message) => ({ ...message, position: nextPosition() }));
  const moved = (position: number) => copies[messages.findLastIndex((one) => one.position <= position)]?.position ?? 0;
  return {
    ...emptyThread(),
    messages: copies,
    archives: kept.map((archive) => ({
      ...archive,
      upTo: moved(archive.upTo),
      atRevision: moved(archive.atRevision),
    })),
    extra: JSON.stringify(extra),
    parentThreadId: sourceThreadId,
    runs: new Map(runs.map((run) => [run.runId, run])),
  };
}
