/** A thread as the engines hold it that keep threads in memory: its shape, and what is read from it. */
import type { Message } from "../messages/schema.ts";
import { keptByFork } from "./archive-rules.ts";
import type { ContextAfter } from "./archives.ts";
import type { Checkpoint, RunInfo, ThreadInfo } from "./checkpointer.ts";
import { RunNotCompletedError, ThreadNotFoundError } from "./errors.ts";

// Values are kept as JSON text: what goes in and what comes out are copies, as with any other store.
export interface StoredMessage {
  position: number;
  json: string;
  runId: string | null;
  createdAt: Date;
}

/** What a thread must know of an archive, whether or not what is in it is at hand. */
export interface ArchiveMark {
  archiveId: string;
  createdAt: Date;
  /** The last position that it holds. */
  upTo: number;
  /** Where the thread stood when it was made. */
  atRevision: number;
  summary: string;
  prunedAt: Date | null;
}

export interface StoredArchive extends ArchiveMark {
  system: string | null;
  /** The thread's extra at that moment, as JSON text. */
  extra: string;
}

export interface Thread<A extends ArchiveMark = StoredArchive> {
  /** In the order of their positions. Where they are at hand, archived ones are in front of the active ones. */
  messages: StoredMessage[];
  /** Oldest first. */
  archives: A[];
  extra: string | undefined;
  parentThreadId: string | null;
  runs: Map<string, RunInfo>;
  pending: { json: string; questionId: string; runId: string | null } | undefined;
  /** Keyed by run and question, as one JSON text. */
  answers: Map<string, string>;
}

/** Gives a message's value, or throws what says that it is damaged. */
export type ReadMessage = (stored: StoredMessage) => Message;

export function emptyThread(): Thread<never> {
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
export function hasAnything(thread: Thread<ArchiveMark> | undefined): boolean {
  if (!thread) return false;
  const { extra, runs, pending, answers } = thread;
  return hasMessages(thread) || extra !== undefined || runs.size > 0 || pending !== undefined || answers.size > 0;
}

function hasMessages({ messages, archives }: Thread<ArchiveMark>): boolean {
  return messages.length > 0 || archives.length > 0;
}

export function revisionOf({ messages, archives }: Thread<ArchiveMark>): number {
  return messages.at(-1)?.position ?? archives.at(-1)?.upTo ?? 0;
}

/** What `load` gives of a thread. */
export function checkpointOf(
  thread: Thread<ArchiveMark> | undefined,
  after: number | undefined,
  read: ReadMessage,
): Checkpoint | undefined {
  if (!thread || !(hasMessages(thread) || thread.extra !== undefined)) return undefined;
  const { last, active } = activeContext(thread.messages, thread.archives);
  const begins = after === 0 && !last;
  const tail = after !== undefined && (begins || active.some(({ position }) => position === after));
  const messages = tail ? active.filter(({ position }) => position > after) : active;
  return {
    messages: messages.map(read),
    ...(last && {
      summary: last.summary,
      compactedUpTo: last.upTo,
      kept: messages.filter(({ position }) => position <= last.atRevision).length,
    }),
    extra: JSON.parse(thread.extra ?? "{}"),
    revision: revisionOf(thread),
    parentThreadId: thread.parentThreadId,
    tail,
  };
}

/** What a thread's load gives of its last compaction. @param archives those that count, oldest first */
export function activeContext<A extends ArchiveMark>(messages: readonly StoredMessage[], archives: readonly A[]) {
  const last = archives.at(-1);
  const start = last?.upTo ?? 0;
  return { last, active: messages.filter(({ position }) => position > start) };
}

/** The messages of a thread that are in one of its archives. */
export function archivedIn<A extends ArchiveMark>(thread: Thread<A>, archive: A): StoredMessage[] {
  const before = thread.archives[thread.archives.indexOf(archive) - 1]?.upTo ?? 0;
  return thread.messages.filter(({ position }) => position > before && position <= archive.upTo);
}

/**
 * What a fork or snapshot takes: the messages of completed runs up to the given one, and those written before runs existed.
 * `cut` is the position of the last message of those runs; 0 when there is none.
 */
export function taken<A extends ArchiveMark>(thread: Thread<A> | undefined, threadId: string, afterRunId: string) {
  if (!thread || !hasAnything(thread)) throw new ThreadNotFoundError(threadId);
  const last = thread.runs.get(afterRunId)?.completionSeq;
  if (!last) throw new RunNotCompletedError(threadId, afterRunId);
  const runs = [...thread.runs.values()].filter(({ completionSeq }) => completionSeq !== null && completionSeq <= last);
  const ids = new Set<string | null>(runs.map(({ runId }) => runId));
  const messages = thread.messages.filter(({ runId }) => runId === null || ids.has(runId));
  const cut = messages.findLast(({ runId }) => runId !== null)?.position ?? 0;
  return { thread, messages, runs, cut };
}

/** What a fork of the thread would load. @throws ThreadNotFoundError, RunNotCompletedError, ArchivePrunedError */
export function contextAfter(
  source: Thread<ArchiveMark> | undefined,
  threadId: string,
  afterRunId: string,
  read: ReadMessage,
): ContextAfter {
  const { thread, messages, cut } = taken(source, threadId, afterRunId);
  const { last, active } = activeContext(messages, keptByFork(threadId, thread.archives, cut));
  return { messages: active.map(read), ...(last && { summary: last.summary }) };
}

/** A thread without archives, as a listing tells of it. */
export function threadInfo(threadId: string, thread: Thread<ArchiveMark>): ThreadInfo {
  return {
    threadId,
    messageCount: thread.messages.length,
    revision: revisionOf(thread),
    parentThreadId: thread.parentThreadId,
    createdAt: copyDate(thread.messages[0]?.createdAt),
    updatedAt: copyDate(thread.messages.at(-1)?.createdAt),
    pending: thread.pending !== undefined,
  };
}

export function copyDate(date: Date | undefined): Date | null {
  return date ? new Date(date) : null;
}
