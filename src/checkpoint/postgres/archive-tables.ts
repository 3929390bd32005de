/** How the archives reach the tables: through the checkpointer that they belong to. */
import type { Row, Value } from "../../db/postgres.ts";

export type Query = readonly [sql: string, values: readonly Value[]];

export interface Tables {
  prefix: string;
  archivePrefix: string;
  /** Whether search has an index. */
  indexed: boolean;
  assertOpen(operation: string): void;
  /** Gives the rows of each query, all of one snapshot. */
  read(operation: string, queries: readonly Query[]): Promise<Row[][]>;
  /** The same in one transaction that holds the threads' locks. */
  write(operation: string, threadIds: [string, ...string[]], queries: readonly Query[]): Promise<Row[][]>;
}
