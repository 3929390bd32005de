/** An unbounded queue with one reader: what is pushed comes out in order, then the end or the failure. */
export class AsyncQueue<T> implements AsyncIterableIterator<T, undefined> {
  #items: T[] = [];
  #waiting: PromiseWithResolvers<IteratorResult<T, undefined>> | undefined;
  #ended = false;
  #failure: { error: unknown } | undefined;

  /** Adds an item; after the end it is ignored. */
  push(item: T): void {
    if (this.#ended) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting.resolve({ done: false, value: item });
    else this.#items.push(item);
  }

  /** Ends the queue; what was pushed before is still read. */
  end(): void {
    this.#finish(undefined);
  }

  /** Ends the queue with an error, which the reader gets after what was pushed before. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  #finish(failure: { error: unknown } | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!waiting) this.#failure = failure;
    else if (failure) waiting.reject(failure.error);
    else waiting.resolve({ done: true, value: undefined });
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#items.length > 0) return { done: false, value: this.#items.shift() as T };
    if (this.#failure) {
      const { error } = this.#failure;
      this.#failure = undefined;
      throw error;
    }
    if (this.#ended) return { done: true, value: undefined };
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
