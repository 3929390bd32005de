/** A store that refuses writes, for engines whose server takes no word for that. */
import type { Checkpointer } from "./checkpointer.ts";
import { StoreReadOnlyError } from "./errors.ts";

/** What changes nothing. A method that is not listed here is taken for a write. */
const READS: readonly PropertyKey[] = [
  "load",
  "snapshot",
  "loadPending",
  "loadHitlAnswer",
  "listHitlAnswers",
  "listMessages",
  "listThreads",
  "listRuns",
  "backup",
  "checkIntegrity",
  "close",
  Symbol.asyncDispose,
] satisfies (keyof Checkpointer)[];

/** The store as one that only reads: every other method rejects with a StoreReadOnlyError. */
export function readOnlyView(store: Checkpointer): Checkpointer {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (READS.includes(name)) return value.bind(target);
      return () => Promise.reject(new StoreReadOnlyError(String(name)));
    },
  });
}
