/**
 * A SQLite file as a store: opening, reading, and writing in groups. It knows no table.
 *
 * Writes asked for at the same time share one transaction, so they pay for one sync of the disk; each has a savepoint of
 * its own, so that one that fails takes no other with it, and each settles after the commit. While another program holds
 * the lock, waiting is done with timers: SQLite's own busy handler would stop the event loop.
 */
import { rmSync } from "node:fs";
import * as sqlite from "node:sqlite";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { StoreError, StoreOpenError, StoreReadOnlyError, wrapCommitFailure, wrapDriverError } from "./errors.ts";
import { LockWait } from "./lock-wait.ts";
import { checkWhole, createBackupFile, explainRefusal, explainUnfinished, type OpenedFile } from "./sqlite-file.ts";
import { runSteps, type Steps } from "./steps.ts";
import { WorkInFlight } from "./work.ts";

export type Row = Record<string, sqlite.SQLOutputValue>;
export type { StatementSync } from "node:sqlite";
export type { Steps } from "./steps.ts";

export interface SqliteOptions {
  /** Open without ever writing. (Default: false) */
  readOnly?: boolean | undefined;
  /** How long another program may hold the lock without writing anything, in ms. Nobody waits over ten times that. (Default: 5000) */
  busyTimeoutMs?: number | undefined;
  /** Switch the file to this journal mode. (Default: as the file has it) */
  journalMode?: "wal" | "delete" | "truncate" | "persist" | undefined;
  /**
   * What an acknowledged write survives: "full" the loss of power, "normal" (with WAL) the end of the process, but the
   * last moments before a loss of power may be lost, "off" the end of the process only. (Default: "full")
   */
  durability?: "full" | "normal" | "off" | undefined;
}

// EXTRA is FULL, and in the rollback journal modes also syncs the directory after the journal is removed: without it a
// loss of power just after a commit can bring the journal back and undo the commit (https://sqlite.org/pragma.html#pragma_synchronous).
const SYNCHRONOUS = { full: "EXTRA", normal: "NORMAL", off: "OFF" } as const;

const SIZE = "SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size";

const SQLITE_BUSY = 5;
const SQLITE_IOERR = 10;
const SQLITE_CANTOPEN = 14;

interface Write {
  run: () => unknown;
  /** In place of `run`. */
  steps?: () => Steps<unknown>;
  /** Since another program was first found to have the lock. */
  wait?: LockWait;
  settle: PromiseWithResolvers<unknown>;
  outcome?: { value: unknown } | { error: unknown };
}

export class SqliteStore {
  readonly readOnly: boolean;
  readonly #db: sqlite.DatabaseSync;
  readonly #path: string;
  readonly #busyTimeoutMs: number;
  readonly #statements = new Map<string, sqlite.StatementSync>();
  #queue: Write[] = [];
  #flushing = false;
  /** Settled when no transaction of ours is waiting to commit: until then a read would see what may yet be undone. */
  #commit: Promise<void> | undefined;
  readonly #work = new WorkInFlight();

  private constructor(db: sqlite.DatabaseSync, path: string, readOnly: boolean, busyTimeoutMs: number) {
    this.#path = path;
    this.#db = db;
    this.readOnly = readOnly;
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  /**
   * Opens a file that `sqlite-file.ts` has looked at.
   *
   * @throws StoreOpenError, LockTimeoutError, StoreError
   */
  static async open(file: OpenedFile, options: SqliteOptions = {}): Promise<SqliteStore> {
    const { path, location, couldWrite = false, immutable } = file;
    const asReader = (options.readOnly ?? false) && !couldWrite;
    let store: SqliteStore;
    try {
      store = await SqliteStore.#connect(path, location, asReader, options);
    } catch (error) {
      if (!immutable || codeOf(error) !== SQLITE_CANTOPEN) throw wrapDriverError(explainRefusal(path, error));
      return await SqliteStore.#connect(path, immutable, true, options);
    }
    if (!couldWrite || store.#db.prepare("PRAGMA journal_mode").get()?.journal_mode === "wal") return store;
    store.#db.close();
    return await SqliteStore.#connect(path, location, true, options);
  }

  static async #connect(path: string, location: string | URL, asReader: boolean, options: SqliteOptions) {
    const { readOnly = false, busyTimeoutMs = 5000, durability = "full" } = options;
    let db: sqlite.DatabaseSync;
    try {
      db = new sqlite.DatabaseSync(location, { readOnly: asReader });
    } catch (error) {
      // Node takes a URL since 22.15.
      if (error instanceof TypeError && location instanceof URL) {
        throw new StoreOpenError(
          `${path} is in WAL mode and its directory may not be written: reading it there needs Node 22.15 or later. Copy it to a writable directory.`,
          { cause: error },
        );
      }
      throw error;
    }
    const store = new SqliteStore(db, path, readOnly, busyTimeoutMs);
    try {
      db.exec("PRAGMA busy_timeout = 0; PRAGMA temp_store = MEMORY");
      // The first read takes a lock, meets damage, and finishes what a crashed writer left behind.
      await store.#read(() => checkWhole(path, Number(db.prepare(SIZE).get()?.bytes)));
      // Setting this reads the file too.
      await store.#retryWhileBusy(() => db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`));
    } catch (error) {
      db.close();
      throw error;
    }
    return store;
  }

  /** Switches the file to a journal mode, for good. Only once it is known to be a store of ours. @throws StoreError */
  async setJournalMode(mode: NonNullable<SqliteOptions["journalMode"]>): Promise<void> {
    await this.#work.track(this.#retryWhileBusy(() => setJournalMode(this.#db, mode)));
  }

  /** A prepared statement, made once for each text. */
  prepare(sql: string): sqlite.StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** Runs statements that take no parameters. Only inside `read` or `write`. */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** Reads one consistent snapshot: `run` must not wait. `operation` names the method for errors. */
  async read<T>(operation: string, run: () => T): Promise<T> {
    this.assertOpen(operation);
    return this.#work.track(this.#read(run));
  }

  async #read<T>(run: () => T): Promise<T> {
    return await this.#retryWhileBusy(
      () => {
        this.#db.exec("BEGIN");
        try {
          return run();
        } finally {
          this.#rollback();
        }
      },
      () => this.#commit,
    );
  }

  /** Writes: `run` must not wait, and is undone when it throws. Resolves once what it did is durable. */
  async write<T>(operation: string, run: () => T): Promise<T> {
    this.assertOpen(operation);
    if (this.readOnly) throw new StoreReadOnlyError(operation);
    const settle = Promise.withResolvers<unknown>();
    this.#queue.push({ run, settle });
    if (!this.#flushing) void this.#flush();
    return (await this.#work.track(settle.promise)) as T;
  }

  /**
   * As {@link SqliteStore.write}, for what takes long: a transaction of its own, which gives the event loop turns. Until it has
   * committed, other writes and the reads of this store wait.
   */
  async writeInSteps<T>(operation: string, steps: () => Steps<T>): Promise<T> {
    this.assertOpen(operation);
    if (this.readOnly) throw new StoreReadOnlyError(operation);
    const settle = Promise.withResolvers<unknown>();
    this.#queue.push({ run: () => undefined, steps, settle });
    if (!this.#flushing) void this.#flush();
    return (await this.#work.track(settle.promise)) as T;
  }

  /** Waits for work in flight, then closes. */
  close(): Promise<void> {
    return this.#work.close(() => {
      this.#statements.clear();
      this.#db.close();
    });
  }

  /** Copies the database to a new file of mode 0600 while it is in use. @throws StoreOpenError when the path is taken */
  async backup(path: string): Promise<void> {
    this.assertOpen("backup");
    const target = createBackupFile(path);
    try {
      await this.#work.track(this.#copyTo(target));
    } catch (error) {
      rmSync(target, { force: true });
      throw wrapDriverError(error);
    }
  }

  async #copyTo(path: string): Promise<void> {
    // Node has the step-wise online backup since 22.16. Before, VACUUM INTO copies in one go and blocks meanwhile.
    if (!sqlite.backup) {
      await this.#read(() => undefined);
      this.#db.prepare("VACUUM INTO ?").run(path);
      return;
    }
    for (const wait = this.#newWait(); ; ) {
      try {
        await sqlite.backup(this.#db, path);
        return;
      } catch (error) {
        // Node reports a write under way at the first step, ours or another program's, with SQLite's code for success.
        const expired = (error as { errcode?: unknown }).errcode === 0 ? wait.expired(error) : error;
        if (expired) throw expired;
      }
      await sleep(wait.nextDelay());
    }
  }

  /** What SQLite's own check finds wrong, or nothing. */
  async checkIntegrity(): Promise<string[]> {
    const rows = await this.read("checkIntegrity", () => this.#db.prepare("PRAGMA integrity_check").all());
    const found = rows.map((row) => String(row.integrity_check));
    return found.length === 1 && found[0] === "ok" ? [] : found;
  }

  /** Commits what is queued until nothing is. Every failure goes to the writes it concerns; this never throws. */
  async #flush(): Promise<void> {
    this.#flushing = true;
    await nextTurn();
    while (this.#queue.length > 0) {
      const busy = this.#begin();
      if (busy) await sleep(this.#waitOrExpire(busy));
      else await this.#commitTogether(this.#nextBatch());
    }
    this.#flushing = false;
  }

  /** What goes into one transaction: all that is queued, up to work in steps, which has its own. */
  #nextBatch(): Write[] {
    const slow = this.#queue.findIndex(({ steps }) => steps !== undefined);
    return this.#queue.splice(0, slow === -1 ? this.#queue.length : Math.max(1, slow));
  }

  /** Takes the write lock. Gives SQLite's error while another program has it; any other failure ends what is queued. */
  #begin(): unknown {
    try {
      this.#db.exec("BEGIN IMMEDIATE");
    } catch (error) {
      if (isBusy(error)) return error;
      for (const write of this.#queue.splice(0)) write.settle.reject(wrapDriverError(error));
    }
    return undefined;
  }

  /** Ends the writes that have waited too long, and gives how long the others wait until the next try. */
  #waitOrExpire(busy: unknown): number {
    let delay = 0;
    this.#queue = this.#queue.filter((write) => {
      write.wait ??= this.#newWait();
      const expired = write.wait.expired(busy);
      if (expired) write.settle.reject(expired);
      else delay = Math.max(delay, write.wait.nextDelay());
      return !expired;
    });
    return delay;
  }

  async #commitTogether(batch: Write[]): Promise<void> {
    const commit = Promise.withResolvers<void>();
    try {
      const alone = batch.length === 1;
      for (const write of batch) {
        if (write.steps) {
          this.#commit = commit.promise;
          write.outcome = await runSteps(write.steps);
        } else this.#attempt(write, alone);
      }
      if (alone && batch[0]?.outcome && "error" in batch[0].outcome) this.#rollback();
      else {
        let wait: LockWait | undefined;
        for (let busy = this.#tryCommit(); busy; busy = this.#tryCommit()) {
          this.#commit = commit.promise;
          wait ??= this.#newWait();
          const expired = wait.expired(busy);
          if (expired) throw expired;
          await sleep(wait.nextDelay());
        }
      }
    } catch (error) {
      this.#rollback();
      for (const write of batch) write.settle.reject(wrapDriverError(error));
      return;
    } finally {
      this.#commit = undefined;
      commit.resolve();
    }
    for (const { settle, outcome } of batch) {
      if (outcome && "value" in outcome) settle.resolve(outcome.value);
      else settle.reject(wrapDriverError(outcome?.error));
    }
  }

  /** Runs one write of a batch. Throws only when the whole transaction is lost. */
  #attempt(write: Write, alone: boolean): void {
    if (!alone) this.#db.exec("SAVEPOINT one_write");
    try {
      write.outcome = { value: write.run() };
    } catch (error) {
      write.outcome = { error };
      if (alone) return;
      // After a full disk or an I/O error SQLite may have ended the transaction: then this fails, and all of it failed.
      try {
        this.#db.exec("ROLLBACK TO one_write");
      } catch {
        throw error;
      }
    }
    if (!alone) this.#db.exec("RELEASE one_write");
  }

  /** Gives SQLite's error while readers of another program are in the way. */
  #tryCommit(): unknown {
    try {
      this.#db.exec("COMMIT");
      return undefined;
    } catch (error) {
      if (isBusy(error)) return error;
      // The last step may be what failed, such as the sync of the directory when the journal is gone from it already.
      throw codeOf(error) === SQLITE_IOERR ? wrapCommitFailure(error) : error;
    }
  }

  #rollback(): void {
    try {
      this.#db.exec("ROLLBACK");
    } catch {
      // No transaction is open any more: SQLite ended it itself, or BEGIN failed.
    }
  }

  async #retryWhileBusy<T>(run: () => T, ready?: () => Promise<void> | undefined): Promise<T> {
    for (let wait: LockWait | undefined; ; ) {
      for (let other = ready?.(); other; other = ready?.()) await other;
      try {
        return run();
      } catch (error) {
        if (!isBusy(error)) throw wrapDriverError(explainUnfinished(this.#path, error));
        wait ??= this.#newWait();
        const expired = wait.expired(error);
        if (expired) throw expired;
      }
      await sleep(wait.nextDelay());
    }
  }

  #newWait(): LockWait {
    return new LockWait(this.#path, this.#busyTimeoutMs);
  }

  /** @throws StoreClosedError naming the method that was called too late */
  assertOpen(operation: string): void {
    this.#work.assertOpen(operation);
  }
}

function setJournalMode(db: sqlite.DatabaseSync, mode: string): void {
  const got = db.prepare(`PRAGMA journal_mode = ${mode}`).get()?.journal_mode;
  if (got !== mode && got !== "memory") {
    throw new StoreError(`The file stays in journal mode ${String(got)}: SQLite can't switch it to ${mode} here.`);
  }
}

/** Whether SQLite says that another program holds a lock. */
function isBusy(error: unknown): boolean {
  return codeOf(error) === SQLITE_BUSY;
}

/** SQLite's code; the low byte of an extended one is the plain code. */
function codeOf(error: unknown): number | undefined {
  const wrapped = error instanceof StoreError ? error.cause : error;
  const code = (wrapped as { errcode?: unknown } | undefined)?.errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}
