/** What a case of the memory history's conformance suite is. As with a checkpointer's, it knows no test runner. */
import type { HistoryCapabilities, MemoryHistory } from "../history/history.ts";

/** A new, empty history that belongs to one case. */
export interface HistoryConformanceStore {
  history: MemoryHistory;
  /**
   * Opens the same data once more, as a second program would. Needed when `durable` or `multiProcess` is true; unless
   * `multiProcess` is, the case has closed the first one before.
   */
  reopen?(): Promise<MemoryHistory>;
  /** Removes the data, after everything was closed. */
  dispose?(): Promise<void>;
}

export type MakeHistory = () => Promise<HistoryConformanceStore>;

export type HistoryNeed = Exclude<keyof HistoryCapabilities, "backend">;

export interface HistoryConformanceCase {
  /** One plain sentence. */
  readonly name: string;
  readonly needs: readonly HistoryNeed[];
  /** Resolves when the backend behaves; rejects with an AssertionError, or with what the backend threw, when not. */
  run(make: MakeHistory): Promise<void>;
}

/** Why a case does not apply to a history, for the runner to print; undefined when it does. */
export function missingHistoryCapability(
  historyCase: HistoryConformanceCase,
  store: HistoryConformanceStore,
): string | undefined {
  for (const need of historyCase.needs) {
    const capability = store.history.capabilities[need];
    if (capability !== true) return `${need}: ${capability.reason}`;
  }
  return undefined;
}

/** What the body of a case works with. Everything opened here is closed when the body ends. */
export interface HistoryBench {
  readonly history: MemoryHistory;
  /** The history as a program started later finds it: closed and opened again if it is durable, else the same one. */
  again(): Promise<MemoryHistory>;
  /** A second one on the same data, at the same time. */
  other(): Promise<MemoryHistory>;
}

/** Makes a case of a body. @param needs what the backend must be able to do (Default: nothing) */
export function historyCase(
  name: string,
  body: (bench: HistoryBench) => Promise<void>,
  needs: readonly HistoryNeed[] = [],
): HistoryConformanceCase {
  return {
    name,
    needs,
    async run(make) {
      const { history, reopen, dispose } = await make();
      const opened = [history];
      const openAgain = async (): Promise<MemoryHistory> => {
        if (!reopen) throw new Error("A history that is durable or for several processes needs reopen() in its case.");
        const next = await reopen();
        opened.push(next);
        return next;
      };
      try {
        await body({
          history,
          async again() {
            if (history.capabilities.durable !== true) return history;
            await history.close();
            return await openAgain();
          },
          other: openAgain,
        });
      } finally {
        for (const item of opened) await item.close();
        await dispose?.();
      }
    },
  };
}
