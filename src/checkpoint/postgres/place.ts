/** Where a store is, for a copy, which must know whether two stores are one. */
import type { Row } from "../../db/postgres.ts";
import { SERVER } from "./queries.ts";

export interface Place {
  /** Gives `work` a mark, which any other store on the same tables recognises while the work lasts. Writes nothing. */
  withMark<T>(work: (mark: string) => Promise<T>): Promise<T>;
  recognises(mark: string): Promise<boolean>;
}

/**
 * The mark is the server as it runs now, its database and the tables' names. A copy of the server's files, which says that it
 * is the same system, was started at another instant.
 */
export function placeOf(
  read: (sql: string) => Promise<Row | undefined>,
  names: { schema: string; prefix: string },
): Place {
  const mark = async () => {
    const row = await read(SERVER);
    return JSON.stringify([row?.started, row?.database, names.schema, names.prefix]);
  };
  return {
    withMark: async (work) => await work(await mark()),
    recognises: async (other) => other === (await mark()),
  };
}
