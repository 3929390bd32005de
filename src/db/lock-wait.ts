/**
 * Waiting for a lock that another program holds. What is measured is how long the lock is held without anything being written:
 * where many programs write in turn, each of them waits longer than any of them holds the lock, and none should give up.
 */
import { statSync } from "node:fs";
import { LockTimeoutError } from "./errors.ts";

/** However lively the file is, nobody waits longer than this many timeouts in all. */
const PATIENCE = 10;

export class LockWait {
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #begun = performance.now();
  #quietSince = this.#begun;
  #seen: string;
  #waits = 0;

  /** @param path the database file @param timeoutMs how long the lock may be held without a write */
  constructor(path: string, timeoutMs: number) {
    this.#path = path;
    this.#timeoutMs = timeoutMs;
    this.#seen = lastWrite(path);
  }

  /** The error to give up with; undefined while it is worth going on. */
  expired(cause: unknown): LockTimeoutError | undefined {
    const now = performance.now();
    const seen = lastWrite(this.#path);
    if (seen !== this.#seen) {
      this.#seen = seen;
      this.#quietSince = now;
    }
    const isOver = now - this.#quietSince > this.#timeoutMs || now - this.#begun > PATIENCE * this.#timeoutMs;
    return isOver ? new LockTimeoutError(Math.round(now - this.#begun), { cause }) : undefined;
  }

  /** How long to wait before the next try, in ms: short at first, since most locks are held for a commit; spread, so that waiters don't march in step. */
  nextDelay(): number {
    return Math.min(1 + this.#waits++ * 2, 25) * (0.5 + Math.random());
  }
}

function lastWrite(path: string): string {
  const times = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return times.join();
}
