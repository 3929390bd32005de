/** The paths of a session, and what is found at a path. */
import type { Stats } from "node:fs";
import { lstat, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import { makeDirectories } from "../util/atomic-file.ts";
import type { SessionBackend, StoredSessionConfig } from "./config.ts";
import { SessionNotFoundError, SessionPathError } from "./errors.ts";

/** The file of a backend's store: <directory>/<state>/state.sqlite3 or <directory>/<state>/state.json. */
export function storePath(config: Pick<StoredSessionConfig, "state">, backend: SessionBackend): string {
  return join(config.state, backend === "sqlite" ? "state.sqlite3" : "state.json");
}

/** <directory>/events.jsonl */
export const eventsPath = (config: Pick<StoredSessionConfig, "directory">): string =>
  join(config.directory, "events.jsonl");

/** <directory>/readable.md */
export const readablePath = (config: Pick<StoredSessionConfig, "directory">): string =>
  join(config.directory, "readable.md");

/**
 * Makes a directory, and those above it that are not there, for their owner only (mode 0700) and durably. One that is there stays
 * as it is; it may be a symbolic link. Only a writer calls this.
 *
 * @throws SessionPathError
 */
export async function makeDirectory(path: string): Promise<void> {
  await isDirectory(path);
  try {
    await makeDirectories(path);
  } catch (error) {
    throw new SessionPathError(path, `can't be created: ${messageOf(error)}.`, { cause: error });
  }
}

/** What a reader finds in place of a directory. @throws SessionNotFoundError when it is not there, SessionPathError */
export async function requireDirectory(path: string): Promise<void> {
  if (!(await isDirectory(path))) throw new SessionNotFoundError(`There is no session directory ${path}.`);
}

/** @throws SessionPathError when something else is there, or it can't be looked at */
export async function isDirectory(path: string): Promise<boolean> {
  const found = await lookAt(path);
  if (found && !found.isDirectory()) throw new SessionPathError(path, "is there, and is not a directory.");
  return found !== undefined;
}

/** The size of a regular file in bytes; undefined when nothing is there. @throws SessionPathError when something else is */
export async function fileSize(path: string): Promise<number | undefined> {
  const found = await lookAt(path);
  if (found && !found.isFile()) {
    throw new SessionPathError(path, `is ${found.isDirectory() ? "a directory" : "no regular file"}, not a store.`);
  }
  return found?.size;
}

/** What is at a path, symbolic links followed. @throws SessionPathError for a link to nothing, or what can't be looked at */
async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
      throw new SessionPathError(path, `can't be looked at: ${messageOf(error)}.`, { cause: error });
    }
    const link = await lstat(path).catch(() => undefined);
    if (link)
      throw new SessionPathError(path, "is a symbolic link to nothing. Mend it or remove it.", { cause: error });
    return undefined;
  }
}
