/**
 * What a conformance case is, and what it needs of the backend under test. Cases know no test runner: they use
 * node:assert, make their own store and close it, so that any runner, or none, can run them.
 */
import type { Capabilities, Checkpointer } from "../checkpoint/checkpointer.ts";

/** A new, empty store that belongs to one case, and what can be done with it from outside. */
export interface ConformanceStore {
  checkpointer: Checkpointer;
  /**
   * Opens the same data once more, as a second program would. Needed when `durable` or `multiProcess` is true; unless
   * `multiProcess` is, the case has closed the first checkpointer before.
   */
  reopen?(): Promise<Checkpointer>;
  /**
   * Puts text into the store where a message of this thread would stand, past all checks, after those that are there.
   * It may be no JSON, or no message. Leave it out when the store can't hold a damaged row.
   */
  plantRow?(threadId: string, messageJson: string): Promise<void>;
  /** Opens what `backup(path)` wrote. Needed when `backup` is true. */
  openCopy?(path: string): Promise<Checkpointer>;
  /** Removes the data, after everything was closed. */
  dispose?(): Promise<void>;
}

export type MakeStore = () => Promise<ConformanceStore>;

/** A capability that must be true, or that the store has `plantRow`. */
export type Need = Exclude<keyof Capabilities, "backend"> | "plantRow";

export interface ConformanceCase {
  /** One plain sentence. */
  readonly name: string;
  readonly needs: readonly Need[];
  /** Resolves when the backend behaves; rejects with an AssertionError, or with what the backend threw, when not. */
  run(make: MakeStore): Promise<void>;
}

/** Why a case does not apply to a store, for the runner to print; undefined when it does. */
export function missingCapability(conformanceCase: ConformanceCase, store: ConformanceStore): string | undefined {
  for (const need of conformanceCase.needs) {
    if (need === "plantRow") {
      if (!store.plantRow) return "plantRow: nothing can put a damaged row into this store.";
    } else {
      const capability = store.checkpointer.capabilities[need];
      if (capability !== true) return `${need}: ${capability.reason}`;
    }
  }
  return undefined;
}

/** What the body of a case works with. Everything opened here is closed when the body ends. */
export interface Bench {
  readonly store: Checkpointer;
  /** The store as a program started later finds it: closed and opened again if it is durable, else the same one. */
  again(): Promise<Checkpointer>;
  /** A second checkpointer on the same data, at the same time. */
  other(): Promise<Checkpointer>;
  plantRow(threadId: string, messageJson: string): Promise<void>;
  openCopy(path: string): Promise<Checkpointer>;
}

/** Makes a case of a body. @param needs what the backend must be able to do (Default: nothing) */
export function conformanceCase(
  name: string,
  body: (bench: Bench) => Promise<void>,
  needs: readonly Need[] = [],
): ConformanceCase {
  return {
    name,
    needs,
    async run(make) {
      const given = await make();
      const opened = [given.checkpointer];
      const keep = (checkpointer: Checkpointer): Checkpointer => {
        opened.push(checkpointer);
        return checkpointer;
      };
      const store = given.checkpointer;
      try {
        await body({
          store,
          async again() {
            if (store.capabilities.durable !== true) return store;
            await store.close();
            return keep(await provided(given.reopen, "reopen", "durable")());
          },
          other: async () => keep(await provided(given.reopen, "reopen", "multiProcess")()),
          plantRow: (threadId, json) => provided(given.plantRow, "plantRow", "plantRow")(threadId, json),
          openCopy: async (path) => keep(await provided(given.openCopy, "openCopy", "backup")(path)),
        });
      } finally {
        for (const checkpointer of opened) await checkpointer.close();
        await given.dispose?.();
      }
    },
  };
}

function provided<T>(method: T | undefined, name: string, need: Need): T {
  if (method === undefined) throw new Error(`The case needs ${need}, so its ConformanceStore must have ${name}().`);
  return method;
}
