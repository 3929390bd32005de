/** What a JSON store is opened with, checked; and what is at its paths, so that each mistake has an error of its own. */
import * as fs from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { StoreOpenError } from "../../db/errors.ts";
import { InvalidArgumentError, messageOf } from "../../errors.ts";
import { checkThreadId } from "../../util/ids.ts";
import type { StorePlace } from "./store.ts";

export interface JsonOptions {
  /** The path or file: URL of the state.json. Its directory must exist. */
  state: string | URL;
  /** The path or file: URL of the directory of archives, which is made by the first compaction. */
  memory: string | URL;
  /** Open without ever writing. (Default: false) */
  readOnly?: boolean | undefined;
  /** The thread whose archives have plain names: `a1` in place of `a1.<thread>`. (Default: "session") */
  threadId?: string | undefined;
  /** How long another program may be in the middle of a write, in ms. (Default: 5000) */
  busyTimeoutMs?: number | undefined;
}

const OPTIONS: readonly string[] = [
  "state",
  "memory",
  "readOnly",
  "threadId",
  "busyTimeoutMs",
] satisfies (keyof JsonOptions)[];

/** @throws InvalidArgumentError, InvalidIdError, StoreOpenError */
export function checkJsonOptions(options: JsonOptions): StorePlace {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) {
      throw new InvalidArgumentError(`JsonCheckpointer has no option ${key}. It has ${OPTIONS.join(", ")}.`);
    }
  }
  const { threadId = "session", readOnly = false, busyTimeoutMs = 5000 } = options;
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new InvalidArgumentError(`busyTimeoutMs must be 0 or more milliseconds, not ${String(busyTimeoutMs)}.`);
  }
  const path = toPath(options.state, "state");
  const memory = toPath(options.memory, "memory");
  checkFile(path, readOnly);
  return { path, memory, ownThreadId: checkThreadId(threadId), readOnly, busyTimeoutMs };
}

/** An absolute path. @throws InvalidArgumentError */
export function toPath(value: unknown, name: string): string {
  const given = value instanceof URL ? value.href : value;
  if (typeof given !== "string" || given === "" || given.includes("\0")) {
    throw new InvalidArgumentError(`${name} must be a path or a file: URL.`);
  }
  if (!given.startsWith("file:")) return resolve(given);
  try {
    return fileURLToPath(new URL(given));
  } catch (error) {
    throw new InvalidArgumentError(`${name} is not a file: URL of this machine: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

function checkFile(path: string, readOnly: boolean): void {
  let stat: fs.Stats | undefined;
  try {
    stat = fs.statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new StoreOpenError(`${path} can't be looked at: ${messageOf(error)}.`, { cause: error });
  }
  const directory = dirname(path);
  if (!stat) {
    if (readOnly) throw new StoreOpenError(`There is no file ${path}, and reading creates none.`);
    if (fs.lstatSync(path, { throwIfNoEntry: false })) {
      throw new StoreOpenError(`${path} is a symbolic link to nothing. Mend or remove it.`);
    }
    if (!fs.statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
      throw new StoreOpenError(`There is no directory ${directory}. Create it first: a store is never put elsewhere.`);
    }
  } else if (!stat.isFile()) throw new StoreOpenError(`${path} is not a regular file.`);
  else if (!isAllowed(path, fs.constants.R_OK)) throw new StoreOpenError(`${path} may not be read by this user.`);
  if (readOnly) return;
  const target = stat ? fs.realpathSync(path) : path;
  if (!isAllowed(dirname(target), fs.constants.W_OK) || (stat && !isAllowed(target, fs.constants.W_OK))) {
    throw new StoreOpenError(
      `${path} or its directory may not be written by this user or on this file system. Open it with readOnly to read it.`,
    );
  }
}

function isAllowed(path: string, mode: number): boolean {
  try {
    fs.accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
