/** Work that takes long, in steps: the event loop gets a turn whenever one slice of them is over. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** The work; the event loop may get a turn at each `yield`. */
export type Steps<T> = Generator<void, T, void>;

/** How long a slice may hold the event loop, in ms. */
const SLICE_MS = 8;

/** Runs all steps. Never throws: a failure is the outcome. */
export async function runSteps(steps: () => Steps<unknown>): Promise<{ value: unknown } | { error: unknown }> {
  try {
    const work = steps();
    for (let sliceEnd = performance.now() + SLICE_MS; ; ) {
      const step = work.next();
      if (step.done) return { value: step.value };
      if (performance.now() < sliceEnd) continue;
      await nextTurn();
      sliceEnd = performance.now() + SLICE_MS;
    }
  } catch (error) {
    return { error };
  }
}
