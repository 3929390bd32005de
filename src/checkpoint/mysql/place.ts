/** Where a store is, for a copy, which must know whether two stores are one. */
import { StoreError } from "../../db/errors.ts";
import type { MySqlStore } from "../../db/mysql.ts";
import { newId } from "../../util/ids.ts";

export interface Place {
  /** Gives `work` a mark, which any other store on the same tables recognises while the work lasts. Writes nothing. */
  withMark<T>(work: (mark: string) => Promise<T>): Promise<T>;
  recognises(mark: string): Promise<boolean>;
}

/** The mark is a lock of the database: one connection holds it, and another sees that it is held. */
export function placeOf(store: MySqlStore, prefix: string): Place {
  const lockOf = (mark: string) => `${prefix}mark ${mark}`;
  return {
    async withMark(work) {
      const mark = newId();
      const held = await store.locked("copy", lockOf(mark), 0, () => work(mark));
      if (!held) throw new StoreError("The server gave a new lock to somebody else. Nothing was done. Try again.");
      return held.value;
    },
    recognises: (mark) => store.isLocked("copy", lockOf(mark)),
  };
}
