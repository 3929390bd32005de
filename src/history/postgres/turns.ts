/** Work of one key runs one after the other, in the order in which it was asked for; work of different keys at once. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs work when all before it of the same key has settled, and settles as it does. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const result = before ? before.then(work) : work();
    const settled = result.then(ignore, ignore).then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    this.#last.set(key, settled);
    return result;
  }

  /** Resolves when everything that was asked for until now has settled. */
  async settled(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}

function ignore(): void {}
