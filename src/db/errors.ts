/** What goes wrong with a store as a whole, whatever it keeps. Drivers' errors are wrapped in these, as `cause`. */
import { EverthreadError, messageOf } from "../errors.ts";

/** The base of a store's errors: the database failed in a way that has no class of its own (disk full, I/O error, …). */
export class StoreError extends EverthreadError {
  constructor(message: string, options?: { cause?: unknown; code?: string }) {
    super(options?.code ?? "store_error", message, options);
  }
}

/** The store can't be opened: its path, its kind or its permissions are wrong. */
export class StoreOpenError extends StoreError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { ...options, code: "store_open_failed" });
  }
}

/** The store was written by a version of Everthread that this one does not understand. Nothing was changed. */
export class SchemaMismatchError extends StoreError {
  readonly expected: number;
  readonly actual: number;
  readonly hint: string;

  constructor(expected: number, actual: number, hint: string) {
    super(`The store has schema version ${actual}; this Everthread understands version ${expected}. ${hint}`, {
      code: "schema_mismatch",
    });
    this.expected = expected;
    this.actual = actual;
    this.hint = hint;
  }
}

/** The server has no tables of ours, or not all of them. Nothing was created: migrations belong to the host. */
export class SchemaUninitializedError extends StoreError {
  readonly hint: string;

  constructor(problem: string, hint: string) {
    super(`${problem} ${hint}`, { code: "schema_uninitialized" });
    this.hint = hint;
  }
}

/** A method was called after `close()`. */
export class StoreClosedError extends StoreError {
  constructor(operation: string) {
    super(`${operation}() was called after close(). Open the store again.`, { code: "store_closed" });
  }
}

/** A write was asked of a store that was opened with `readOnly`. */
export class StoreReadOnlyError extends StoreError {
  constructor(operation: string) {
    super(`${operation}() writes, and this store was opened read-only. Open it without readOnly.`, {
      code: "store_read_only",
    });
  }
}

/** Another program held the lock for longer than the wait allows. Nothing was written; try again. */
export class LockTimeoutError extends StoreError {
  /** @param options.option the option that sets the wait (Default: "busyTimeoutMs") */
  constructor(waitedMs: number, options: { cause?: unknown; option?: string } = {}) {
    const { option = "busyTimeoutMs", cause } = options;
    super(
      `Another program holds the store's lock; gave up after ${waitedMs} ms. Nothing was written. Try again, or allow a longer ${option}.`,
      { cause, code: "lock_timeout" },
    );
  }
}

/** Every connection of the pool was in use for longer than the wait allows. Nothing was written; try again. */
export class PoolExhaustedError extends StoreError {
  constructor(waitedMs: number, size: number) {
    super(
      `All ${size} connections of the pool were in use for ${waitedMs} ms. Nothing was written. Try again, or allow a larger maxPoolSize.`,
      { code: "pool_exhausted" },
    );
  }
}

/**
 * The server can't be reached, or the connection to it broke. `outcome` says what became of the operation: "not_written",
 * so it may be tried again; or "unknown", when the server may have done it before its answer was lost: read, then decide.
 */
export class ConnectionLostError extends StoreError {
  readonly outcome: "not_written" | "unknown";

  constructor(problem: string, outcome: "not_written" | "unknown", options?: { cause?: unknown }) {
    const advice =
      outcome === "unknown"
        ? "Whether the operation was done is unknown: read what is stored, and decide."
        : "Nothing of this operation was written. Try again.";
    super(`${problem} ${advice}`, { ...options, code: "connection_lost" });
    this.outcome = outcome;
  }
}

/** A value takes more bytes than the server accepts at once. Nothing of the operation was written. */
export class ValueTooLargeError extends StoreError {
  /** The size in bytes, where it is known. */
  readonly bytes: number | undefined;
  /** The most that the server takes, in bytes. */
  readonly limit: number;

  constructor(what: string, bytes: number | undefined, limit: number, options?: { cause?: unknown }) {
    super(
      `${what} ${bytes === undefined ? "is too large:" : `takes ${bytes} bytes:`} the server takes at most ${limit} at once. Nothing was written. Store less, or raise the server's limit.`,
      { ...options, code: "value_too_large" },
    );
    this.bytes = bytes;
    this.limit = limit;
  }
}

/** Wraps what a driver threw; an error of ours passes through. */
export function wrapDriverError(error: unknown): unknown {
  if (error instanceof EverthreadError) return error;
  return new StoreError(`The database failed: ${messageOf(error)}. Nothing of this operation was written.`, {
    cause: error,
  });
}

/** Wraps what a database said when it was to commit, and whose disk failed then: it may have written all the same. */
export function wrapCommitFailure(error: unknown): StoreError {
  return new StoreError(
    `The database failed while it committed: ${messageOf(error)}. This may have been written all the same: look at what is there before you write it again.`,
    { cause: error },
  );
}
