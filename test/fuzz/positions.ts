/**
 * What differs between engines and may: where a message stands. A position becomes its place among all messages that its
 * thread ever had, counted from 1, which must be the same everywhere.
 */
export class Positions {
  readonly #known = new Map<string, number[]>();

  /** Takes note of a thread's log. Positions only grow, so a higher one is of a message that is new. */
  learn(threadId: string, positions: readonly number[]): void {
    const known = this.#of(threadId);
    for (const position of positions) if (position > (known.at(-1) ?? 0)) known.push(position);
  }

  /** The place of a position; 0 for 0, and -1 for one that no message ever had. */
  placeOf(threadId: string, position: number): number {
    return position === 0 ? 0 : this.#of(threadId).indexOf(position) + 1 || -1;
  }

  /** The position of a message, counted from the newest: 0 is the last one that the thread ever had. 0 when it had none. */
  fromEnd(threadId: string, back: number): number {
    return this.#of(threadId).at(-1 - back) ?? 0;
  }

  #of(threadId: string): number[] {
    const known = this.#known.get(threadId) ?? [];
    this.#known.set(threadId, known);
    return known;
  }
}
