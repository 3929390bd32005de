/** The stores that the soak is run on. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { MySQLCheckpointer } from "../../../src/checkpoint/mysql/checkpointer.ts";
import { PostgresCheckpointer } from "../../../src/checkpoint/postgres/checkpointer.ts";
import type { TestDatabase } from "../../support/mysql.ts";
import type { StoreAt } from "./ops.ts";

export interface OpenedStore {
  at: StoreAt;
  /** Whether it keeps archives. */
  archives: boolean;
  /** Waits until nothing of a writer that was killed is still under way in the server. */
  settled?: () => Promise<void>;
  dispose?: () => Promise<void>;
}

export interface Backend {
  name: string;
  kind: StoreAt["kind"];
  /** Lanes of each writer, which run at the same time. */
  lanes: number;
  /** Writers at once; one of them is killed. */
  writers: number;
  /** Whether it can be looked at without the right to write. */
  readOnly: boolean;
  /** Whether a fork still knows its parent when that was deleted. */
  keepsParents: boolean;
  /** Makes a new store. @param dir an empty directory of its own */
  make(dir: string): Promise<OpenedStore>;
}

const MODES = ["delete", "truncate", "persist", "wal"] as const;
const local = { lanes: 2, writers: 1, readOnly: true, keepsParents: true };

/** The stores that need no server. */
export const localBackends: Backend[] = [
  ...MODES.map(
    (journalMode): Backend => ({
      ...local,
      name: `sqlite ${journalMode}`,
      kind: "sqlite",
      make: async (dir) => ({ at: { kind: "sqlite", path: join(dir, "state.db"), journalMode }, archives: true }),
    }),
  ),
  ...(["delete", "wal"] as const).map(
    (journalMode): Backend => ({
      ...local,
      name: `sqlite ${journalMode}, 3 writers`,
      kind: "sqlite",
      lanes: 1,
      writers: 3,
      make: async (dir) => ({ at: { kind: "sqlite", path: join(dir, "state.db"), journalMode }, archives: true }),
    }),
  ),
  ...(["json", "sqlite"] as const).map(
    (backend): Backend => ({
      ...local,
      name: `${backend} session`,
      kind: "session",
      make: async (dir) => {
        const directory = join(dir, "session");
        mkdirSync(directory);
        return { at: { kind: "session", directory, backend }, archives: true };
      },
    }),
  ),
  {
    ...local,
    name: "memory history",
    kind: "history",
    // The lanes of a history would share its one log.
    lanes: 1,
    make: async (dir) => ({ at: { kind: "history", path: join(dir, "history.db") }, archives: false }),
  },
];

/** @param makeDatabase gives a new database with the tables */
export function postgresBackend(
  makeDatabase: () => Promise<{ url: string; drop(): Promise<void> }>,
  sql: (url: string, text: string) => Promise<Record<string, unknown>[]>,
): Backend {
  const others =
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
  return {
    ...local,
    name: "postgres",
    kind: "postgres",
    readOnly: false,
    keepsParents: false,
    make: async () => {
      const { url, drop } = await makeDatabase();
      const settled = async () => {
        while ((await sql(url, others)).length > 0);
      };
      await using store = await PostgresCheckpointer.open(url);
      const archives = store.capabilities.archives === true;
      return { at: { kind: "postgres", url }, archives, settled, dispose: drop };
    },
  };
}

/** @param makeDatabase gives a new database with the tables */
export function mysqlBackend(makeDatabase: () => Promise<TestDatabase>): Backend {
  const others = "SELECT 1 FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()";
  return {
    ...local,
    name: "mysql",
    kind: "mysql",
    readOnly: false,
    keepsParents: false,
    make: async () => {
      const database = await makeDatabase();
      const settled = async () => {
        while ((await database.sql(others)).length > 0);
      };
      const { url } = database;
      await using store = await MySQLCheckpointer.open(url);
      const archives = store.capabilities.archives === true;
      return { at: { kind: "mysql", url }, archives, settled, dispose: () => database[Symbol.asyncDispose]() };
    },
  };
}
