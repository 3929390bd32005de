/**
 * A path that is to be a SQLite file: where it is, whether it can be one, and who may read it.
 *
 * A file that SQLite may have open in this process must not be opened in any other way: on Unix, closing any handle to a
 * file ends all locks that the process holds on it, and another process could then take the store for unused and remove its
 * WAL (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_). So the file's
 * header is read only once SQLite has refused the file.
 */
import * as fs from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { InvalidArgumentError, messageOf } from "../errors.ts";
import { StoreOpenError } from "./errors.ts";

export interface OpenedFile {
  /** The absolute path, or ":memory:". */
  path: string;
  /** What SQLite is given. */
  location: string | URL;
  /** To be opened through a connection that could write, should it turn out to be in WAL mode. */
  couldWrite?: true;
  /** What SQLite is given where the file is in WAL mode and nothing beside it can be made. */
  immutable?: URL;
}

/**
 * Looks at a path before SQLite does, so that each mistake has an error of its own, and creates the file for its owner
 * only when it is not there. SQLite gives its journal and WAL the permissions of the file.
 *
 * @param path a path, a file: URL, or ":memory:"
 * @throws StoreOpenError, InvalidArgumentError
 */
export function openSqliteFile(path: unknown, readOnly: boolean): OpenedFile {
  if (path === ":memory:") return { path, location: path };
  const absolute = toPath(path);
  const parent = dirname(absolute);
  let stat: fs.Stats | undefined;
  try {
    stat = fs.statSync(absolute, { throwIfNoEntry: false });
  } catch (error) {
    throw new StoreOpenError(`${absolute} can't be looked at: ${messageOf(error)}.`, { cause: error });
  }
  if (!stat) {
    checkDirectory(parent);
    if (readOnly) throw new StoreOpenError(`There is no file ${absolute}, and reading creates none.`);
    createPrivateFile(absolute, { mayExist: true });
    return { path: absolute, location: absolute };
  }
  if (stat.isDirectory()) throw new StoreOpenError(`${absolute} is a directory. Name a file in it.`);
  if (!stat.isFile()) throw new StoreOpenError(`${absolute} is not a regular file.`);
  if (!isAllowed(absolute, fs.constants.R_OK)) throw new StoreOpenError(`${absolute} may not be read by this user.`);
  if (!readOnly && !(isAllowed(absolute, fs.constants.W_OK) && isAllowed(parent, fs.constants.W_OK))) {
    throw new StoreOpenError(
      `${absolute} or its directory may not be written by this user or on this file system. Open it with readOnly to read it.`,
    );
  }
  if (!readOnly) return { path: absolute, location: absolute };
  if (stat.size === 0) throw new StoreOpenError(`${absolute} is empty: it holds no store yet.`);
  return openToRead(absolute, parent);
}

/** A file in WAL mode can't be read without its -shm, and a reader that makes one can't remove it. */
function openToRead(absolute: string, parent: string): OpenedFile {
  const file = { path: absolute, location: absolute };
  const mayWrite = isAllowed(parent, fs.constants.W_OK) && isAllowed(absolute, fs.constants.W_OK);
  if (fs.existsSync(`${absolute}-wal`)) {
    if (!mayWrite && !fs.existsSync(`${absolute}-shm`)) {
      throw new StoreOpenError(
        `${absolute} has a -wal file that can't be read in a read-only directory. Copy ${absolute} and ${absolute}-wal to a writable one.`,
      );
    }
    return file;
  }
  // A connection that could write removes what it made when it closes. With no -wal and no -journal there is nothing it
  // would write.
  if (mayWrite) return fs.existsSync(`${absolute}-journal`) ? file : { ...file, couldWrite: true };
  const immutable = pathToFileURL(absolute);
  immutable.searchParams.set("immutable", "1");
  return { ...file, immutable };
}

/** Creates the file that a backup goes to, and gives its absolute path. @throws StoreOpenError, InvalidArgumentError */
export function createBackupFile(path: unknown): string {
  const absolute = toPath(path);
  checkDirectory(dirname(absolute));
  createPrivateFile(absolute);
  return absolute;
}

function checkDirectory(path: string): void {
  if (fs.statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new StoreOpenError(`There is no directory ${path}. Create it first: a store is never put elsewhere.`);
}

/** Creates an empty file that only its owner may read. @throws StoreOpenError when it is there already, unless it may be */
function createPrivateFile(path: string, options: { mayExist?: boolean } = {}): void {
  try {
    fs.closeSync(fs.openSync(path, "wx", 0o600));
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === "EEXIST";
    if (exists && options.mayExist) return;
    throw new StoreOpenError(
      exists ? `${path} is there already; nothing was overwritten.` : `${path} can't be created: ${messageOf(error)}.`,
      { cause: error },
    );
  }
}

function toPath(path: unknown): string {
  const given = path instanceof URL ? path.href : path;
  if (typeof given !== "string" || given === "" || given.includes("\0")) {
    throw new InvalidArgumentError('A store\'s path must be a file name, a file: URL, or ":memory:".');
  }
  if (!given.startsWith("file:")) return resolve(given);
  // A URL has no current directory: "file:./a.db" would be a file of the root directory.
  if (!given.startsWith("file:/")) {
    throw new StoreOpenError(`${given} is a relative file: URL. Give the path alone, or file:// and an absolute path.`);
  }
  try {
    return fileURLToPath(new URL(given));
  } catch (error) {
    throw new StoreOpenError(`${given} is not a file: URL of this machine: ${messageOf(error)}.`, { cause: error });
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

const NOT_A_DATABASE = 26;
const CORRUPT = 11;
/** SQLite's extended code, SQLITE_READONLY_ROLLBACK. */
const UNFINISHED = 776;

/** Says what is wrong with a file that SQLite has refused, where that can be said better. Gives back any other error. */
export function explainRefusal(path: string, given: unknown): unknown {
  const error = explainUnfinished(path, given);
  if (error !== given) return error;
  const { errcode, cause } = error as { errcode?: unknown; cause?: { errcode?: unknown } };
  const code = Number(errcode ?? cause?.errcode) & 0xff;
  if (code === NOT_A_DATABASE) {
    return new StoreOpenError(`${path} is not a SQLite file. Nothing was changed.`, { cause: error });
  }
  return (code === CORRUPT && path !== ":memory:" && cutByPages(path, error)) || error;
}

/** Says so where a writer was killed in the middle of a write, and the reader may not undo it. Gives back any other error. */
export function explainUnfinished(path: string, error: unknown): unknown {
  const { errcode, cause } = error as { errcode?: unknown; cause?: { errcode?: unknown } };
  if ((errcode ?? cause?.errcode) !== UNFINISHED) return error;
  return new StoreOpenError(
    `${path} was left in the middle of a write, which ${path}-journal undoes. Nothing is lost, but reading changes no file: open it once to write.`,
    { cause: error },
  );
}

/**
 * Refuses a file whose last page is not whole, which SQLite would not notice.
 *
 * @param bytes how many SQLite says that the file has
 * @throws StoreOpenError
 */
export function checkWhole(path: string, bytes: number): void {
  // A WAL may hold what the file lacks.
  const size = (name: string) => fs.statSync(name, { throwIfNoEntry: false })?.size ?? 0;
  if (path === ":memory:" || size(`${path}-wal`) > 0 || size(path) >= bytes) return;
  throw cutShort(path, size(path), bytes);
}

/** https://sqlite.org/fileformat.html#the_database_header */
function cutByPages(path: string, cause: unknown): StoreOpenError | undefined {
  const header = Buffer.alloc(100);
  const fd = fs.openSync(path, "r");
  let size = 0;
  try {
    fs.readSync(fd, header, 0, 100, 0);
    size = fs.fstatSync(fd).size;
  } finally {
    fs.closeSync(fd);
  }
  const stored = header.readUInt16BE(16);
  const whole = header.readUInt32BE(28) * (stored === 1 ? 65_536 : stored);
  return size < whole ? cutShort(path, size, whole, cause) : undefined;
}

function cutShort(path: string, size: number, whole: number, cause?: unknown): StoreOpenError {
  return new StoreOpenError(
    `${path} was cut short: it has ${size} bytes of ${whole}. Restore a backup, or recover what is left with sqlite3's ".recover".`,
    { cause },
  );
}
