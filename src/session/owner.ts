/**
 * Ownership of a session: one worker at a time. What decides is a lock of the kernel on `owner.lock`, which ends with the
 * process that holds it, however that ends; `owner.json` only tells people who holds it, and is never trusted for more.
 *
 * The lock is an open write transaction of SQLite on a file that stays empty: the one portable lock that Node brings. It
 * excludes a second owner in this process as well, in any of its threads, and no child inherits it. `owner.lock` is never
 * removed, since another process may be about to lock the very file that is removed.
 *
 * On Unix a process loses its locks of a file when it closes any other handle to it. So nothing here reads `owner.lock`, and
 * a program must not copy the directory of a session that it has open.
 */
import { closeSync, lstatSync, openSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import { writeFileAtomic } from "../util/atomic-file.ts";
import { SessionOwnedError, SessionPathError } from "./errors.ts";

export interface OwnerInfo {
  pid: number;
  host: string;
  startedAt: Date;
}

/** Primary result codes of SQLite. */
const SQLITE_BUSY = 5;
const SQLITE_NOTADB = 26;

/** How long a loser waits for the winner to say who it is, in steps of so many ms. */
const ASK_TIMES = 40;
const ASK_DELAY_MS = 25;

/** Owners in use stay referenced: a connection that is collected as garbage would give up its lock. */
const owners = new Set<SessionOwner>();

export class SessionOwner implements AsyncDisposable {
  readonly directory: string;
  readonly #lock: DatabaseSync;
  #released: Promise<void> | undefined;

  private constructor(directory: string, lock: DatabaseSync) {
    this.directory = directory;
    this.#lock = lock;
  }

  /**
   * Takes ownership of a session, or fails at once. A dead owner's is free: the kernel released it.
   *
   * @param directory the session's directory, which must exist and be writable
   * @throws SessionOwnedError when another worker, or this process itself, owns it
   * @throws SessionPathError when the directory can't be written, or `owner.lock` is not ours
   */
  static async acquire(directory: string): Promise<SessionOwner> {
    for (let asked = 0; ; asked++) {
      const lock = tryLock(directory);
      if (lock) return await SessionOwner.#begin(directory, lock);
      const owner = await readOwner(directory);
      // A record of a process that is gone is an earlier owner's: the one that has the lock now is about to write its own.
      if (owner && !isGone(owner)) throw new SessionOwnedError(directory, owner);
      if (asked === ASK_TIMES) throw new SessionOwnedError(directory);
      await sleep(ASK_DELAY_MS);
    }
  }

  static async #begin(directory: string, lock: DatabaseSync): Promise<SessionOwner> {
    const owner = new SessionOwner(directory, lock);
    owners.add(owner);
    const record = { pid: process.pid, host: hostname(), started_at: new Date().toISOString() };
    try {
      await writeFileAtomic(recordPath(directory), `${JSON.stringify(record)}\n`);
    } catch (error) {
      await owner.release();
      throw new SessionPathError(directory, `can't be written: ${messageOf(error)}`, { cause: error });
    }
    return owner;
  }

  /** Gives the session up. Again is harmless. */
  release(): Promise<void> {
    this.#released ??= this.#end();
    return this.#released;
  }

  async #end(): Promise<void> {
    try {
      // While the lock is held: afterwards it could be the next owner's. A record that stays is harmless.
      await rm(recordPath(this.directory), { force: true }).catch(() => {});
    } finally {
      this.#lock.close();
      owners.delete(this);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** Who says to own the session, for people: it may have died since. Undefined when nobody does, or it can't be read. */
export async function readOwner(directory: string): Promise<OwnerInfo | undefined> {
  try {
    const { pid, host, started_at } = JSON.parse(await readFile(recordPath(directory), "utf8")) as Record<
      string,
      unknown
    >;
    const startedAt = new Date(typeof started_at === "string" ? started_at : Number.NaN);
    if (!Number.isSafeInteger(pid) || Number(pid) <= 0) return undefined;
    if (typeof host !== "string" || Number.isNaN(startedAt.getTime())) return undefined;
    return { pid: Number(pid), host, startedAt };
  } catch {
    return undefined;
  }
}

const recordPath = (directory: string) => join(directory, "owner.json");

/** The connection that holds the lock; undefined when another has it. @throws SessionPathError */
function tryLock(directory: string): DatabaseSync | undefined {
  const path = join(directory, "owner.lock");
  createLockFile(path);
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path);
    // It must not wait, which would stop the event loop, and needs no journal, since nothing is ever committed. On a file
    // that may only be read SQLite begins without the lock and says nothing; the change in memory makes it refuse.
    lock.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE; PRAGMA user_version = 1");
    return lock;
  } catch (error) {
    lock?.close();
    const code = Number((error as { errcode?: unknown }).errcode) & 0xff;
    if (code === SQLITE_BUSY) return undefined;
    if (code === SQLITE_NOTADB) throw notOurs(path);
    throw new SessionPathError(path, `can't be locked: ${messageOf(error)}. A worker needs to write the directory.`, {
      cause: error,
    });
  }
}

function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      throw new SessionPathError(
        path,
        `can't be created: ${messageOf(error)}. A worker needs to write the directory.`,
        {
          cause: error,
        },
      );
    }
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found && !(found.isFile() && found.size === 0)) throw notOurs(path);
  }
}

function notOurs(path: string): SessionPathError {
  return new SessionPathError(path, "is not a lock of Everthread's, which is an empty file. Move it away.");
}

function isGone(owner: OwnerInfo): boolean {
  if (owner.host !== hostname()) return false;
  try {
    process.kill(owner.pid, 0);
    return false;
  } catch (error) {
    // A process of another user may not be signalled, and is there.
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}
