/** Whether two stores are one: on a server, two URLs may name the same tables, and only the server knows. */
import type { Checkpointer } from "../checkpoint/checkpointer.ts";

/**
 * What a store that others can reach as well may have as its property `place`. It asks the server, needs no rights beyond those
 * for the tables, and writes nothing.
 */
export interface Place {
  /** Gives `work` a mark, which any other store on the same tables recognises while the work lasts. */
  withMark<T>(work: (mark: string) => Promise<T>): Promise<T>;
  recognises(mark: string): Promise<boolean>;
}

export async function isSameStore(a: Checkpointer, b: Checkpointer): Promise<boolean> {
  if (a === b) return true;
  const [here, there] = [placeOf(a), placeOf(b)];
  if (!here || !there || a.capabilities.backend !== b.capabilities.backend) return false;
  return await here.withMark((mark) => there.recognises(mark));
}

function placeOf(store: Checkpointer & { place?: unknown }): Place | undefined {
  const place = store.place as Partial<Place> | undefined;
  return typeof place?.withMark === "function" && typeof place.recognises === "function" ? (place as Place) : undefined;
}
