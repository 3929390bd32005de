/** A store that refuses writes, for engines whose server takes no word for that. */
import type { ArchiveStore } from "./archives.ts";
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

const ARCHIVE_READS: readonly PropertyKey[] = [
  "list",
  "read",
  "contextAfter",
  "search",
  "fetch",
] satisfies (keyof ArchiveStore)[];

/** The store as one that only reads: every other method rejects with a StoreReadOnlyError. */
export function readOnlyView(store: Checkpointer): Checkpointer {
  const archives = store.archives && reading(store.archives, ARCHIVE_READS, "archives.");
  return reading(store, READS, "", { archives });
}

function reading<T extends object>(store: T, reads: readonly PropertyKey[], path: string, parts: object = {}): T {
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(parts, name)) return Reflect.get(parts, name);
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (reads.includes(name)) return value.bind(target);
      return () => Promise.reject(new StoreReadOnlyError(`${path}${String(name)}`));
    },
  });
}
