/**
 * Which store a session has, and which it may have. This looks and never creates, changes or removes: a writer looks while it
 * owns the session (`owner.ts`), a reader at any time.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import type { SessionBackend, StoredSessionConfig } from "./config.ts";
import {
  SessionAmbiguousError,
  SessionBackendMismatchError,
  SessionExistsError,
  SessionLeftoverError,
  SessionNotFoundError,
  SessionPathError,
} from "./errors.ts";
import { fileSize, isDirectory, requireDirectory, storePath } from "./paths.ts";

export interface DetectedStore {
  backend: SessionBackend;
  /** The store's file, absolute; symbolic links are not resolved. */
  path: string;
  /** Whether it is there. An empty file is: an engine may have been killed just after creating it. */
  exists: boolean;
}

type Places = Pick<StoredSessionConfig, "directory" | "state" | "memory" | "backend">;

/**
 * Decides which backend a session has, by what is there and by the setting:
 *
 * - both stores: refused under every setting, as either choice would abandon a history
 * - one store: that one, and a setting that names the other is refused
 * - none: the setting, else sqlite
 *
 * What is left of a store whose own file is gone is refused too. A -wal holds committed messages and a -journal what a
 * half-done write would undo: SQLite would delete the one and apply the other to a new file. Archives under `memory` belong
 * to a JSON snapshot, and retention would remove them. A lone -shm holds nothing, and temporary files of snapshots are never
 * read: both are passed over.
 *
 * @throws SessionAmbiguousError, SessionBackendMismatchError, SessionLeftoverError
 * @throws SessionPathError when a path holds something else, or can't be looked at
 */
export async function detectStore(config: Places): Promise<DetectedStore> {
  const path = { sqlite: storePath(config, "sqlite"), json: storePath(config, "json") };
  const inState = await isDirectory(config.state);
  const hasSqlite = inState && (await fileSize(path.sqlite)) !== undefined;
  const hasJson = inState && (await fileSize(path.json)) !== undefined;
  if (hasSqlite && hasJson) throw new SessionAmbiguousError(path.sqlite, path.json);
  if (inState && !hasSqlite) await refuseLeftovers(path.sqlite);
  const found = hasSqlite ? "sqlite" : hasJson ? "json" : undefined;
  if (found === undefined) await refuseArchives(config.memory, path.json);
  else if (config.backend !== undefined && config.backend !== found) {
    throw new SessionBackendMismatchError(config.backend, found, path[found]);
  }
  const backend = found ?? config.backend ?? "sqlite";
  return { backend, path: path[backend], exists: found !== undefined };
}

/**
 * As {@link detectStore}, for a reader: a session that is not there is an error.
 *
 * @throws SessionNotFoundError too
 */
export async function requireStore(config: Places): Promise<DetectedStore> {
  await requireDirectory(config.directory);
  const store = await detectStore(config);
  if (!store.exists) {
    throw new SessionNotFoundError(
      `There is no session in ${config.directory}: neither ${storePath(config, "sqlite")} nor ${storePath(config, "json")}.`,
    );
  }
  return store;
}

/**
 * What `restore: never` refuses. It means that a stored conversation is not to be restored; since it must not be lost either,
 * the session is not opened. A store that was never written to is no conversation.
 *
 * @param isEmpty whether the store, now that it is open, holds neither messages nor extra
 * @throws SessionExistsError
 */
export function checkRestore(
  config: Pick<StoredSessionConfig, "restore">,
  store: DetectedStore,
  isEmpty: boolean,
): void {
  if (config.restore === "never" && store.exists && !isEmpty) throw new SessionExistsError(store.path);
}

async function refuseLeftovers(sqlite: string): Promise<void> {
  for (const suffix of ["-wal", "-journal"]) {
    if ((await fileSize(sqlite + suffix)) !== undefined) throw new SessionLeftoverError(sqlite + suffix, sqlite);
  }
}

async function refuseArchives(memory: string, json: string): Promise<void> {
  if (!(await isDirectory(memory))) return;
  let names: string[];
  try {
    names = await readdir(memory);
  } catch (error) {
    throw new SessionPathError(memory, `can't be read: ${messageOf(error)}.`, { cause: error });
  }
  for (const name of names) {
    const archive = join(memory, name);
    if (await holdsState(archive)) throw new SessionLeftoverError(archive, json);
  }
}

/** Whether a directory within `memory` is an archive. Other things may lie there too. */
async function holdsState(directory: string): Promise<boolean> {
  try {
    return (await fileSize(join(directory, "state.json"))) !== undefined;
  } catch {
    return false;
  }
}
