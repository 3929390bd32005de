/** A URL to a store: names the engines, and loads the one that is asked for. */
import type { Checkpointer } from "./checkpoint/checkpointer.ts";
import { StoreOpenError } from "./checkpoint/errors.ts";
import type { MemoryHistory } from "./history/history.ts";
import type { HistoryContent } from "./history/transfer.ts";

export interface OpenOptions {
  /** Open without ever writing. (Default: false) */
  readOnly?: boolean | undefined;
}

/**
 * Opens a store by URL: `sqlite:<path>` (`sqlite:./agent.db`, `sqlite:/var/lib/agent.db`), a bare path or file: URL (also
 * SQLite), or `memory:` (lost with the process).
 *
 * @throws StoreOpenError for a kind that this version does not know, and whatever the engine throws
 */
export async function openCheckpointer(url: string, options: OpenOptions = {}): Promise<Checkpointer> {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
    case "file":
      return await openSqlite(url, options);
    case "sqlite": {
      const path = url.slice("sqlite:".length);
      if (/^\/\/[^/]/.test(path)) {
        throw new StoreOpenError(
          `${url} names a host. Write sqlite:${path.slice(2)} for a path from here, or sqlite:/${path}.`,
        );
      }
      return await openSqlite(path, options);
    }
    case "memory": {
      const { MemoryCheckpointer } = await import("./checkpoint/memory/checkpointer.ts");
      return new MemoryCheckpointer();
    }
    default:
      // A Windows path has a one-letter "scheme", which the pattern leaves out.
      throw new StoreOpenError(`This Everthread knows no ${scheme}: stores. It knows sqlite: and memory:.`);
  }
}

async function openSqlite(path: string, options: OpenOptions): Promise<Checkpointer> {
  const { SqliteCheckpointer } = await import("./checkpoint/sqlite/checkpointer.ts");
  return await SqliteCheckpointer.open(path, options);
}

/**
 * Opens a memory history: a SQLite file, by its path or file: URL, or the tables of a Postgres database, by its postgres: URL.
 *
 * @throws whatever the engine throws
 */
export async function openMemoryHistory(url: string, options: OpenOptions = {}): Promise<MemoryHistory> {
  if (/^postgres(?:ql)?:/i.test(url)) {
    const { PostgresMemoryHistory } = await import("./history/postgres/history.ts");
    return await PostgresMemoryHistory.open(url, options);
  }
  const { SqliteMemoryHistory } = await import("./history/sqlite/history.ts");
  return await SqliteMemoryHistory.open(url, options);
}

/** What a file of Mem0's TypeScript package holds, ready to be imported. @throws StoreOpenError when it is none */
export async function readMem0File(path: string): Promise<HistoryContent> {
  const file = await import("./history/sqlite/mem0-file.ts");
  return await file.readMem0File(path);
}
