/** What a store is in the middle of: closing waits for it, and after closing nothing is taken. */
import { StoreClosedError } from "./errors.ts";

export class WorkInFlight {
  readonly #work = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** @throws StoreClosedError naming the method that was called too late */
  assertOpen(operation: string): void {
    if (this.#closing) throw new StoreClosedError(operation);
  }

  /** Gives the work back; closing waits until it has settled. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    const done = () => this.#work.delete(work);
    work.then(done, done);
    return work;
  }

  /** Waits for work in flight, then ends what the store holds. Once, however often it is called. */
  close(end: () => unknown): Promise<void> {
    this.#closing ??= (async () => {
      while (this.#work.size > 0) await Promise.allSettled(this.#work);
      await end();
    })();
    return this.#closing;
  }
}
