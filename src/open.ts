/** A URL to a store: names the engines, and loads the one that is asked for. */
import type { Checkpointer } from "./checkpoint/checkpointer.ts";
import { StoreOpenError } from "./checkpoint/errors.ts";
import { readOnlyView } from "./checkpoint/read-only.ts";
import type { MemoryHistory } from "./history/history.ts";
import type { HistoryContent } from "./history/transfer.ts";
import { withoutPassword } from "./util/urls.ts";

export interface OpenOptions {
  /** Open without ever writing. (Default: false) */
  readOnly?: boolean | undefined;
  /** Told how far an older SQLite file has come that opening brings up to date. (Default: nobody) */
  onUpgrade?: ((done: number, total: number) => void) | undefined;
}

/**
 * Opens a store by URL:
 *
 * - `sqlite:<path>` (`sqlite:./agent.db`, `sqlite:/var/lib/agent.db`), a bare path or a file: URL
 * - `postgres://user:password@host:5432/database`, also `postgresql:`; needs the package pg
 * - `mysql://user:password@host:3306/database`, also `mariadb:`; needs the package mysql2
 * - `memory:`, lost with the process
 *
 * The query of a server's URL may hold that engine's own options: `schema` (Postgres), `tablePrefix`, `minPoolSize`,
 * `maxPoolSize`, `connectTimeoutMs`, `lockTimeoutMs`. The rest of the query is the driver's. Who has a pool of their own, or a
 * password that is a function, opens the engine itself.
 *
 * @throws StoreOpenError for a kind that this version does not know, and whatever the engine throws
 */
export async function openCheckpointer(url: string, options: OpenOptions = {}): Promise<Checkpointer> {
  const { kind, path } = kindOf(url);
  if (kind === "sqlite") {
    const { SqliteCheckpointer } = await import("./checkpoint/sqlite/checkpointer.ts");
    return await SqliteCheckpointer.open(path, options);
  }
  const store = await openOther(kind, url);
  return options.readOnly ? readOnlyView(store) : store;
}

async function openOther(kind: Exclude<Kind, "sqlite">, url: string): Promise<Checkpointer> {
  switch (kind) {
    case "postgres": {
      const { PostgresCheckpointer } = await import("./checkpoint/postgres/checkpointer.ts");
      return await PostgresCheckpointer.open(...serverOf(url));
    }
    case "mysql": {
      const { MySQLCheckpointer } = await import("./checkpoint/mysql/checkpointer.ts");
      return await MySQLCheckpointer.open(...serverOf(url));
    }
    case "memory": {
      const { MemoryCheckpointer } = await import("./checkpoint/memory/checkpointer.ts");
      return new MemoryCheckpointer();
    }
  }
}

/** What brings the tables of a server up to date: from version 0, which is none, or from an older one. */
export interface StoreMigration {
  backend: string;
  from: number;
  to: number;
  /** Empty when nothing is to be done. */
  sql: string;
}

/**
 * Says what brings the tables of a server up to date, and does it where that is asked. Undefined for a store that has no
 * migrations for people to run: SQLite files are brought up to date when they are opened.
 *
 * @param options.apply whether to do it: under a lock, in one transaction (MySQL: in steps that may be run again) (Default:
 *   false)
 * @throws SchemaMismatchError when the tables are newer, or are not whole
 */
export async function migrateStore(
  url: string,
  options: { apply?: boolean | undefined } = {},
): Promise<StoreMigration | undefined> {
  const { kind } = kindOf(url);
  if (kind !== "postgres" && kind !== "mysql") return undefined;
  const { migrate, planMigration } =
    kind === "postgres"
      ? await import("./checkpoint/postgres/checkpointer.ts")
      : await import("./checkpoint/mysql/checkpointer.ts");
  const done = await (options.apply ? migrate : planMigration)(...serverOf(url));
  return { backend: kind, ...done };
}

/**
 * As {@link migrateStore}, for the tables of a memory history on Postgres. Undefined for a file.
 *
 * @throws SchemaMismatchError when the tables are of another version
 */
export async function migrateHistoryStore(
  url: string,
  options: { apply?: boolean | undefined } = {},
): Promise<StoreMigration | undefined> {
  if (kindOf(url).kind !== "postgres") return undefined;
  const { migrateHistory } = await import("./history/postgres/history.ts");
  const [target, named] = serverOf(url);
  return { backend: "postgres", ...(await migrateHistory(target, { ...named, ...options })) };
}

type Kind = "sqlite" | "postgres" | "mysql" | "memory";

const KINDS: Record<string, Kind> = {
  file: "sqlite",
  sqlite: "sqlite",
  postgres: "postgres",
  postgresql: "postgres",
  mysql: "mysql",
  mariadb: "mysql",
  memory: "memory",
};

/** @throws StoreOpenError, which names no more of the URL than its kind: the rest may hold a password */
function kindOf(url: string): { kind: Kind; path: string } {
  // A Windows path has a one-letter "scheme", which the pattern leaves out.
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    if (/\/\/[^/]*@/.test(url)) {
      throw new StoreOpenError(
        "The store looks like a URL of no kind. Write postgres://…, mysql://… or sqlite:<path>.",
      );
    }
    return { kind: "sqlite", path: url };
  }
  const kind = KINDS[scheme];
  if (kind === undefined) {
    throw new StoreOpenError(
      `This Everthread knows no ${scheme}: stores. It knows sqlite:, postgres:, mysql: and memory:.`,
    );
  }
  const path = scheme === "sqlite" ? url.slice("sqlite:".length) : url;
  if (scheme === "sqlite" && /^\/\/[^/]/.test(path)) {
    throw new StoreOpenError(
      `${withoutPassword(url)} names a host. Write sqlite:${withoutPassword(path).slice(2)} for a path from here, or sqlite:/${withoutPassword(path)}.`,
    );
  }
  return { kind, path };
}

/** What an engine's own options are; it says itself which of them it lacks. */
interface ServerOptions {
  schema?: string;
  tablePrefix?: string;
  minPoolSize?: number;
  maxPoolSize?: number;
  connectTimeoutMs?: number;
  lockTimeoutMs?: number;
}

const TEXTS = ["schema", "tablePrefix"] as const satisfies (keyof ServerOptions)[];
const NUMBERS = ["minPoolSize", "maxPoolSize", "connectTimeoutMs", "lockTimeoutMs"] as const;

/** The URL for the driver, and what its query says to the engine. */
function serverOf(url: string): [target: string, options: ServerOptions] {
  const start = url.indexOf("?");
  if (start === -1) return [url, {}];
  const query = new URLSearchParams(url.slice(start + 1));
  if (![...query.keys()].every((name) => /^[\w.-]+$/.test(name))) {
    throw new StoreOpenError(
      "The URL's query can't be read. In a user or password, ?, # and @ are written %3F, %23 and %40.",
    );
  }
  const options: ServerOptions = {};
  for (const name of TEXTS) take(name, (text) => (options[name] = text));
  for (const name of NUMBERS) take(name, (text) => (options[name] = Number(text)));
  const rest = query.size === 0 ? "" : `?${query}`;
  return [url.slice(0, start) + rest, options];

  function take(name: string, use: (text: string) => void): void {
    const text = query.get(name);
    if (text !== null) use(text);
    query.delete(name);
  }
}

/**
 * Opens a memory history: a SQLite file, by its path or file: URL, or the tables of a Postgres database, by its postgres: URL.
 *
 * @throws whatever the engine throws
 */
export async function openMemoryHistory(
  url: string,
  options: Pick<OpenOptions, "readOnly"> = {},
): Promise<MemoryHistory> {
  if (/^postgres(?:ql)?:/i.test(url)) {
    const { PostgresMemoryHistory } = await import("./history/postgres/history.ts");
    const [target, named] = serverOf(url);
    return await PostgresMemoryHistory.open(target, { ...named, ...options });
  }
  const { SqliteMemoryHistory } = await import("./history/sqlite/history.ts");
  return await SqliteMemoryHistory.open(url, options);
}

/** What a file of Mem0's TypeScript package holds, ready to be imported. @throws StoreOpenError when it is none */
export async function readMem0File(path: string): Promise<HistoryContent> {
  const file = await import("./history/sqlite/mem0-file.ts");
  return await file.readMem0File(path);
}
