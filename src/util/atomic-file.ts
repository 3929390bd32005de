/** A file replaced whole: whoever reads it, at any time and after any crash, finds the old content or the new. */
import * as fs from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EverthreadError, messageOf } from "../errors.ts";
import { newId } from "./ids.ts";

/** A file could not be replaced. */
export class FileWriteError extends EverthreadError {
  readonly path: string;
  /** Whether the new content is in place all the same, and only its survival of a loss of power is in doubt. */
  readonly replaced: boolean;

  constructor(path: string, problem: string, options: { cause?: unknown; replaced?: boolean } = {}) {
    const { replaced = false } = options;
    const state = replaced ? "It has the new content, but may lose it with the power." : "What was there is intact.";
    super("file_write_failed", `${path} can't be written: ${problem}. ${state}`, options);
    this.path = path;
    this.replaced = replaced;
  }
}

/** What of the file system is used here, so that a test can make it fail. */
export type AtomicFileSystem = Pick<typeof fs, "lstat" | "open" | "realpath" | "rename" | "rm">;

/** Waits between the tries of a rename, in ms: a scanner or a backup may hold the file for a moment. */
const RENAME_DELAYS = [10, 20, 40, 80, 160, 320];
const HELD = ["EPERM", "EBUSY", "EACCES"];
/** How file systems say that they don't sync directories; also of one that may be written but not read, and of Windows. */
const NO_DIRECTORY_SYNC = ["EINVAL", "ENOTSUP", "ENOSYS", "EPERM", "EACCES", "EISDIR", "EBADF"];

/**
 * Writes a file whole or not at all, durably: a temporary file beside it, fsync, rename, fsync of the directory.
 *
 * Symbolic links are followed, and the file they lead to is replaced. A new file has mode 0600; one that replaces another
 * keeps its mode and, where this user may set it, its owner. Two writers of one file don't mix: the later one wins.
 *
 * @param path the file; its directory must exist
 * @param data the content; text is written as UTF-8
 * @param system the file system (Default: the real one)
 * @throws FileWriteError when something fails; unless it says `replaced`, the old file is as it was. No temporary file is
 *   left behind, unless the process is killed meanwhile
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  system: AtomicFileSystem = fs,
): Promise<void> {
  let replaced = false;
  try {
    const { target, old } = await lookAt(path, system);
    // Nobody can plant a file or a link at a name that can't be guessed, and "wx" follows none.
    const temporary = join(dirname(target), `.everthread-${newId()}.tmp`);
    const file = await system.open(temporary, "wx", 0o600);
    try {
      try {
        if (old) await takeAfter(file, old);
        await file.writeFile(data);
        await file.sync();
      } finally {
        await file.close();
      }
      await renameHeld(temporary, target, system);
    } catch (error) {
      // The first failure is the one to tell of.
      await system.rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    replaced = true;
    await syncDirectory(dirname(target), system);
  } catch (error) {
    throw new FileWriteError(path, messageOf(error), { cause: error, replaced });
  }
}

interface Existing {
  mode: number;
  uid: number;
  gid: number;
}

/** Where the file really is, and what is there. */
async function lookAt(path: string, system: AtomicFileSystem): Promise<{ target: string; old?: Existing }> {
  const found = await system.lstat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (!found) return { target: join(await system.realpath(dirname(path)), basename(path)) };
  const target = await system.realpath(path).catch((error: unknown) => {
    throw codeOf(error) === "ENOENT" ? new Error("it is a symbolic link to nothing", { cause: error }) : error;
  });
  const old = await system.lstat(target);
  if (!old.isFile()) throw new Error("it is not a regular file");
  return { target, old };
}

/** Gives the new file the mode of the old one, and its owner: root's command must not lock a worker out of its own file. */
async function takeAfter(file: fs.FileHandle, old: Existing): Promise<void> {
  const own = await file.stat();
  if (own.uid !== old.uid || own.gid !== old.gid) {
    await file.chown(old.uid, old.gid).catch((error: unknown) => {
      if (codeOf(error) !== "EPERM") throw error;
    });
  }
  await file.chmod(old.mode & 0o777);
}

async function renameHeld(from: string, to: string, system: AtomicFileSystem): Promise<void> {
  for (const delay of RENAME_DELAYS) {
    try {
      await system.rename(from, to);
      return;
    } catch (error) {
      if (!HELD.includes(codeOf(error) ?? "")) throw error;
      await sleep(delay);
    }
  }
  await system.rename(from, to);
}

/**
 * Makes a directory, and those above it that are not there, for their owner only (mode 0700) and durably: each new name is synced
 * in the directory that it is in. Without that a loss of power takes the directory, and every file in it, however well synced.
 *
 * @throws what the file system says
 */
export async function makeDirectories(path: string): Promise<void> {
  const last = resolve(path);
  // One that is there may have been made a moment ago, by a process that was killed before it had synced it.
  const first = resolve((await fs.mkdir(last, { recursive: true, mode: 0o700 })) ?? last);
  for (let made = last; ; made = dirname(made)) {
    await syncDirectory(dirname(made));
    if (made === first || made === dirname(made)) return;
  }
}

/** Makes the names in a directory durable, as far as its file system can. */
export async function syncDirectory(path: string, system: AtomicFileSystem = fs): Promise<void> {
  try {
    const directory = await system.open(path, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  } catch (error) {
    // Then the rename is as durable as that file system makes it.
    if (!NO_DIRECTORY_SYNC.includes(codeOf(error) ?? "")) throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}
