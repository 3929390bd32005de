/** What a checkpointer throws. Each error says what happened, why, and what to do. */
import { EverthreadError, messageOf } from "../errors.ts";

export {
  ConnectionLostError,
  LockTimeoutError,
  PoolExhaustedError,
  SchemaMismatchError,
  SchemaUninitializedError,
  StoreClosedError,
  StoreError,
  StoreOpenError,
  StoreReadOnlyError,
  ValueTooLargeError,
} from "../db/errors.ts";

/** The base of what a checkpointer refuses. A store that fails as a whole throws a StoreError (`db/errors.ts`). */
export class CheckpointerError extends EverthreadError {
  constructor(message: string, options?: { cause?: unknown; code?: string }) {
    super(options?.code ?? "checkpointer_error", message, options);
  }
}

/** The backend can't do what was asked. `capabilities` says so beforehand, with the reason. */
export class UnsupportedError extends CheckpointerError {
  constructor(backend: string, operation: string, reason: string) {
    super(`The ${backend} backend can't do ${operation}: ${reason}`, { code: "unsupported" });
  }
}

/** A stored row can't be read. Nothing is skipped, since a gap could cost a tool call its result; other threads are unaffected. */
export class CheckpointCorruptionError extends CheckpointerError {
  readonly threadId: string;
  readonly backend: string;
  readonly rowRef: string;

  constructor(where: { threadId: string; backend: string; rowRef: string; cause: unknown }) {
    super(
      `The stored row ${where.rowRef} (${where.backend}) of thread ${JSON.stringify(where.threadId)} is damaged: ${messageOf(where.cause)} Inspect or repair that row; nothing was skipped.`,
      { cause: where.cause, code: "checkpoint_corruption" },
    );
    this.threadId = where.threadId;
    this.backend = where.backend;
    this.rowRef = where.rowRef;
  }
}

/** The thread has moved: another writer appended to it, or it was deleted. Nothing was written. */
export class ThreadConflictError extends CheckpointerError {
  readonly threadId: string;
  readonly expected: number;
  readonly actual: number;

  constructor(threadId: string, expected: number, actual: number) {
    super(
      `Thread ${JSON.stringify(threadId)} is at revision ${actual}, not ${expected}: another writer moved it${actual === 0 ? " or deleted it" : ""}. Nothing was written. Load it again and decide.`,
      { code: "thread_conflict" },
    );
    this.threadId = threadId;
    this.expected = expected;
    this.actual = actual;
  }
}

export class ThreadNotFoundError extends CheckpointerError {
  constructor(threadId: string) {
    super(`There is no thread ${JSON.stringify(threadId)} in this store.`, { code: "thread_not_found" });
  }
}

/** The target of a fork or an import is there already. */
export class ThreadAlreadyExistsError extends CheckpointerError {
  constructor(threadId: string) {
    super(`There is a thread ${JSON.stringify(threadId)} already. Choose another id; nothing was changed.`, {
      code: "thread_already_exists",
    });
  }
}

/** A fork or snapshot was asked after a run that never completed, or that the thread does not have. */
export class RunNotCompletedError extends CheckpointerError {
  constructor(threadId: string, runId: string) {
    super(
      `Run ${JSON.stringify(runId)} of thread ${JSON.stringify(threadId)} has not completed, so nothing can be copied up to its end. Choose a completed run.`,
      { code: "run_not_completed" },
    );
  }
}

export class RunNotClaimedError extends CheckpointerError {
  constructor(threadId: string, runId: string) {
    super(
      `Run ${JSON.stringify(runId)} of thread ${JSON.stringify(threadId)} was never claimed, so it can't be completed. Call claimRun first; if the thread was deleted, let the run go.`,
      { code: "run_not_claimed" },
    );
  }
}

/** The run was begun before: it is under way elsewhere, waits on an answer, or was interrupted. */
export class RunAlreadyClaimedError extends CheckpointerError {
  constructor(threadId: string, runId: string) {
    super(
      `Run ${JSON.stringify(runId)} of thread ${JSON.stringify(threadId)} was claimed before and has not completed. If that program is gone, begin again with a new run id.`,
      { code: "run_already_claimed" },
    );
  }
}

/** The run has ended; its messages are final. */
export class RunAlreadyCompletedError extends CheckpointerError {
  constructor(threadId: string, runId: string) {
    super(
      `Run ${JSON.stringify(runId)} of thread ${JSON.stringify(threadId)} has completed: nothing can be added to it. Begin a new run.`,
      { code: "run_already_completed" },
    );
  }
}

/** Another compaction has set aside the messages up to there already; or this one, when it is tried again. */
export class CompactionConflictError extends CheckpointerError {
  readonly threadId: string;
  readonly upTo: number;
  readonly compactedUpTo: number;

  constructor(threadId: string, upTo: number, compactedUpTo: number) {
    super(
      `Thread ${JSON.stringify(threadId)} is compacted up to position ${compactedUpTo} already, so it can't be compacted up to ${upTo}. Nothing was changed. Load it again: if this was a second try, the first one succeeded.`,
      { code: "compaction_conflict" },
    );
    this.threadId = threadId;
    this.upTo = upTo;
    this.compactedUpTo = compactedUpTo;
  }
}

export class ArchiveNotFoundError extends CheckpointerError {
  constructor(threadId: string, archiveId: string) {
    super(
      `Thread ${JSON.stringify(threadId)} has no archive ${JSON.stringify(archiveId)}. List its archives to see which there are.`,
      { code: "archive_not_found" },
    );
  }
}

/** Retention has removed the messages of an archive. Its summary is still there. */
export class ArchivePrunedError extends CheckpointerError {
  constructor(threadId: string, archiveId: string, prunedAt: Date) {
    super(
      `The messages of archive ${JSON.stringify(archiveId)} of thread ${JSON.stringify(threadId)} were removed by retention on ${prunedAt.toISOString()}. Only the archive's summary is left; keep more archives to keep more.`,
      { code: "archive_pruned" },
    );
  }
}

export class SourceNotFoundError extends CheckpointerError {
  constructor(threadId: string, archiveId: string, sourceId: string) {
    super(
      `Archive ${JSON.stringify(archiveId)} of thread ${JSON.stringify(threadId)} has no source ${JSON.stringify(sourceId)}. Take the ids from a search's hit.`,
      { code: "source_not_found" },
    );
  }
}

export class SearchTimeoutError extends CheckpointerError {
  readonly limitMs: number;

  constructor(limitMs: number) {
    super(
      `The search was stopped after its time limit of ${limitMs} ms. Search for a longer text, in one thread only, or allow it more time.`,
      { code: "search_timeout" },
    );
    this.limitMs = limitMs;
  }
}
