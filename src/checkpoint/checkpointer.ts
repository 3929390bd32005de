/**
 * The contract of every store. Words: a *thread* is one conversation; a *run* is one prompt from the user's message to a
 * settled end, claimed and then completed; a *revision* is the position of a thread's last message (0 when it has none),
 * which grows with every append and never repeats; *extra* is a thread's JSON state, merged key by key.
 *
 * Promises of every implementation, held by the cases in `everthread/conformance`:
 * - A method that resolves has made its change durable, as far as `capabilities.durable` says; one that rejects has changed nothing.
 * - What goes in passes the same door everywhere (`messages/admit.ts`) and is copied; nothing is written before all of it passed.
 * - Ids are compared by code point. Every method rejects with InvalidIdError for an id that is none.
 * - After `close()` every method rejects with StoreClosedError; work in flight settles first; closing twice is harmless.
 */
import type { JsonObject, JsonValue } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import type { ArchiveStore } from "./archives.ts";
import type { LogEntry } from "./log-entry.ts";
import type { Page, PageOptions } from "./page.ts";
import type { PendingRequest } from "./pending.ts";

export type { LogEntry, Page, PageOptions };

/** What a backend can do: true, or the reason why not. Asking for it all the same throws UnsupportedError. */
export type Capability = true | { readonly reason: string };

export interface Capabilities {
  /** The backend's name, as errors give it: "memory", "sqlite", … */
  readonly backend: string;
  /** What was acknowledged survives the end of the process. */
  readonly durable: Capability;
  /** Several processes may use one store at once. */
  readonly multiProcess: Capability;
  /** Compaction can set messages aside and keep them (`archives`). */
  readonly archives: Capability;
  /** What was set aside can be searched, and fetched page by page. */
  readonly search: Capability;
  /** `backup()` makes a copy of the whole store while it is in use. */
  readonly backup: Capability;
  /** `checkIntegrity()` looks for damage below the level of rows. */
  readonly integrityCheck: Capability;
}

/** A thread as `load` gives it: one consistent snapshot. */
export interface Checkpoint {
  /** The active context, or with `after` and `tail` only what follows that revision. */
  messages: Message[];
  /** What a compaction put in place of the older messages; absent while there was none. */
  summary?: string;
  /** The last position that the last compaction set aside; absent while there was none. */
  compactedUpTo?: number;
  /**
   * How many of `messages`, from the first, were stored before that compaction. What a provider signed in them was signed
   * for a context that is gone: a caller leaves it out of what it sends.
   */
  kept?: number;
  extra: JsonObject;
  revision: number;
  parentThreadId: string | null;
  /**
   * Whether `messages` continues what the caller had at `after`. False when no `after` was given, or when that position
   * is no longer part of the active context (deleted and begun anew, or compacted): then `messages` is all of it.
   */
  tail: boolean;
}

export interface ThreadInfo {
  threadId: string;
  messageCount: number;
  revision: number;
  parentThreadId: string | null;
  /** When the first and the last message were stored; null for a thread without messages. */
  createdAt: Date | null;
  updatedAt: Date | null;
  /** Whether it waits on a person. */
  pending: boolean;
}

export interface RunInfo {
  runId: string;
  claimedAt: Date;
  /** Null while the run has not completed. */
  completedAt: Date | null;
  /** The order of completion within the thread, from 1; null while it has not completed. */
  completionSeq: number | null;
}

/** An answer in the ledger of a run; of none when the question was asked before runs existed. */
export interface RecordedAnswer {
  runId: string | null;
  questionId: string;
  answer: JsonValue;
}

/** A thread as it stands in another store, or a piece of it. What is left out stays as it is here. */
export interface ThreadPart {
  /** Put after the thread's last message. Here those of a completed run are taken too. */
  messages?: readonly { message: Message; createdAt: Date }[] | undefined;
  /** Each is put in place of the run of that id, if there is one. */
  runs?: readonly RunInfo[] | undefined;
  /** Where it was forked from: the id of a thread that need not be here. */
  parentThreadId?: string | undefined;
  /** Merged as by `saveExtra`. */
  extra?: JsonObject | undefined;
  /** Put in place of the question that the thread waits on; null removes that. */
  pending?: { request: PendingRequest; runId: string | null } | null | undefined;
  /** Put in place of the whole ledger of the thread. */
  answers?: readonly RecordedAnswer[] | undefined;
  /** Put in place of all archives of the thread, once the messages are in it; oldest first. Needs `capabilities.archives`. */
  archives?: readonly ArchivePart[] | undefined;
}

/** An archive as it stands in another store. It holds the thread's next `messageCount` messages, from the first on. */
export interface ArchivePart {
  archiveId: string;
  createdAt: Date;
  messageCount: number;
  /** How many messages after it were there when it was made. (Default: 0) */
  kept?: number | undefined;
  summary: string;
  system: string | null;
  extra: JsonObject;
  prunedAt: Date | null;
}

export interface Checkpointer extends AsyncDisposable {
  readonly capabilities: Capabilities;
  /** What compactions set aside; there when `capabilities.archives` is true. */
  readonly archives?: ArchiveStore | undefined;

  /**
   * Reads a thread: one consistent snapshot, without a lock. Undefined when it has neither messages nor extra.
   *
   * @param options.after only what follows this revision (see {@link Checkpoint.tail}) (Default: all)
   * @throws CheckpointCorruptionError when a row of it is damaged
   */
  load(threadId: string, options?: { after?: number | undefined }): Promise<Checkpoint | undefined>;

  /**
   * Adds messages to the end of a thread, all or none, and gives the new revision. An empty list changes nothing.
   *
   * @param options.expectedRevision append only if the thread stands there (Default: append whatever it holds)
   * @throws ThreadConflictError when it stands elsewhere
   * @throws RunAlreadyCompletedError when a message belongs to a run that has ended
   * @throws InvalidMessageError, InvalidIdError (also for a run id of over 64 characters that was never claimed)
   */
  append(
    threadId: string,
    messages: readonly Message[],
    options?: { expectedRevision?: number | undefined },
  ): Promise<number>;

  /**
   * Merges top-level keys into the thread's extra, atomically. No keys change nothing, and begin no thread.
   *
   * @param options.expectedRevision as for append: a late write never revives a deleted thread (Default: none)
   */
  saveExtra(threadId: string, extra: JsonObject, options?: { expectedRevision?: number | undefined }): Promise<void>;

  /** Begins a run. @throws RunAlreadyClaimedError, RunAlreadyCompletedError */
  claimRun(threadId: string, runId: string): Promise<void>;
  /** Ends a run and gives it the thread's next completion number; again is harmless. @throws RunNotClaimedError */
  markRunComplete(threadId: string, runId: string): Promise<void>;

  /**
   * The messages of completed runs up to and including `afterRunId`, in log order, and those written before runs existed
   * (run_id null). An unfinished run never leaks. Of a compacted thread: what a fork's active context would hold; its summary
   * comes with `archives.contextAfter`.
   *
   * @throws ThreadNotFoundError, RunNotCompletedError, CheckpointCorruptionError, ArchivePrunedError
   */
  snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]>;

  /**
   * Makes a new thread of what {@link Checkpointer.snapshot} would give, with the completed runs, the extra, and the archives
   * that end before that run does. Atomic.
   *
   * @param options.metadata stored under `extra.fork` (Default: nothing)
   * @throws ThreadNotFoundError, RunNotCompletedError, ThreadAlreadyExistsError, ArchivePrunedError
   */
  fork(
    sourceThreadId: string,
    newThreadId: string,
    options: { afterRunId: string; metadata?: JsonObject | undefined },
  ): Promise<void>;

  /**
   * Stores the one question that a thread waits on, in place of any other; null removes it.
   *
   * @param options.runId the run that asks (Default: none)
   * @param options.expectedRevision as for append (Default: none)
   */
  savePendingRequest(
    threadId: string,
    request: PendingRequest | null,
    options?: { runId?: string | null | undefined; expectedRevision?: number | undefined },
  ): Promise<void>;
  loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined>;
  /** Removes the pending request if it is still this one of this run. Resolves to whether it was. */
  clearPendingRequestIfMatches(threadId: string, match: { questionId: string; runId: string | null }): Promise<boolean>;

  /**
   * The one atomic step of an answer: if this question of this run still pends, records the answer in the ledger and puts
   * `next` in its place (or nothing). Of two simultaneous answers one wins; the other resolves to false and changed nothing.
   */
  answerPending(
    threadId: string,
    answer: { questionId: string; runId: string | null; answer: JsonValue; next?: PendingRequest | null | undefined },
  ): Promise<boolean>;

  /** Records an answer in the run's ledger, replacing an earlier one to the same question. */
  saveHitlAnswer(
    threadId: string,
    questionId: string,
    answer: JsonValue,
    options?: { runId?: string | null | undefined },
  ): Promise<void>;
  /** The recorded answer, or undefined when there is none: false, null, "" and 0 are answers. */
  loadHitlAnswer(
    threadId: string,
    questionId: string,
    options?: { runId?: string | null | undefined },
  ): Promise<JsonValue | undefined>;
  /** Every recorded answer of the thread, by run and question in code point order. For people and tools. */
  listHitlAnswers(threadId: string): Promise<RecordedAnswer[]>;
  /** Removes the run's recorded answers, or those to the given questions. (Default: all of the run) */
  clearHitlAnswers(
    threadId: string,
    options?: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined },
  ): Promise<void>;

  /** The log in order, damaged rows included; the cursor is a position. For people and tools. */
  listMessages(threadId: string, page?: PageOptions<number>): Promise<Page<LogEntry, number>>;
  /** Threads by id, in code point order; the cursor is a thread id. @param page.prefix only ids that begin so (Default: all) */
  listThreads(page?: PageOptions<string> & { prefix?: string | undefined }): Promise<Page<ThreadInfo, string>>;
  /** The runs of a thread, in the order of their ids; the cursor is a run id. */
  listRuns(threadId: string, page?: PageOptions<string>): Promise<Page<RunInfo, string>>;

  /**
   * Puts a thread of another store here, or a piece of it, as it stood there: with its times and its order of completion. All
   * or nothing, and it gives the new revision. For copies (`copyThreads`); an agent's program appends.
   *
   * @param options.expectedRevision as for append (Default: none)
   * @throws ThreadConflictError
   * @throws InvalidMessageError, InvalidArgumentError, InvalidIdError (also for a run id of over 64 characters)
   */
  importThread(
    threadId: string,
    part: ThreadPart,
    options?: { expectedRevision?: number | undefined },
  ): Promise<number>;

  /**
   * Erases a thread: messages, extra, runs, pending request, answers and archives go together. Its forks stay whole.
   * Resolves to whether there was anything.
   */
  deleteThread(threadId: string): Promise<boolean>;

  /** Copies the whole store to a new file while it is in use. @throws UnsupportedError, StoreOpenError when `path` exists */
  backup(path: string): Promise<void>;
  /** Problems below the level of rows, as the engine words them; empty when sound. @throws UnsupportedError */
  checkIntegrity(): Promise<string[]>;

  /** Waits for work in flight and closes. Closing twice is harmless. */
  close(): Promise<void>;
}
