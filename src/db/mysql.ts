/**
 * A MySQL or MariaDB server as a store: connections, transactions, and what is tried again when one is lost. It knows no
 * table.
 *
 * A write runs at READ COMMITTED: without gap locks, writers to different new rows don't wait for each other. Values are
 * bound to prepared statements, or written in hexadecimal, so no escaping depends on the server's sql_mode.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { EverthreadError } from "../errors.ts";
import { ConnectionLostError, LockTimeoutError, PoolExhaustedError, StoreError, StoreOpenError } from "./errors.ts";
import { type MySqlConnection, type MySqlTarget, type Opened, openPool } from "./mysql-driver.ts";
import { explain, explainOpen, isLockFailure, isLost, isReadOnly, isTooLarge, unreachable } from "./mysql-errors.ts";
import { ConnectionSession, type Row, type Session } from "./mysql-session.ts";
import { WorkInFlight } from "./work.ts";

export type { MySqlConfig, MySqlPool, MySqlTarget } from "./mysql-driver.ts";
export type { Row, Session, Statement, Value } from "./mysql-session.ts";

export interface MySqlStoreOptions {
  /** Connections that are opened at once. (Default: 1) */
  minPoolSize?: number | undefined;
  /** Connections at most; of a pool that the host owns, how many it has. (Default: 10) */
  maxPoolSize?: number | undefined;
  /** How long to wait for a connection, a new one or a free one, in ms. (Default: 10000) */
  connectTimeoutMs?: number | undefined;
  /** How long to wait for another program's lock, in ms; the server counts whole seconds. (Default: 30000) */
  lockTimeoutMs?: number | undefined;
}

const BEGIN = ["START TRANSACTION"];
// For one transaction of a connection whose session belongs to the host.
const BEGIN_SHARED = ["SET TRANSACTION ISOLATION LEVEL READ COMMITTED", ...BEGIN];
const BEGIN_SNAPSHOT = [
  "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
  "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
];

export class MySqlStore {
  readonly #opened: Opened;
  readonly #maxPoolSize: number;
  readonly #connectTimeoutMs: number;
  readonly #lockTimeoutMs: number;
  /** Connections of our own pool whose session is set. */
  readonly #ready = new WeakSet<object>();
  readonly #work = new WorkInFlight();
  #database = "";
  #maxPacket = 0;
  /** Whether the pool's connections take several statements at once. */
  #several = false;

  private constructor(opened: Opened, options: MySqlStoreOptions) {
    this.#opened = opened;
    this.#maxPoolSize = options.maxPoolSize ?? 10;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    this.#lockTimeoutMs = options.lockTimeoutMs ?? 30_000;
  }

  /**
   * Makes the pool, or takes the host's, and connects, so that what is wrong with the address or the credentials is said now.
   *
   * @throws StoreOpenError, InvalidArgumentError
   */
  static async open(target: MySqlTarget, options: MySqlStoreOptions = {}): Promise<MySqlStore> {
    const { minPoolSize = 1, maxPoolSize = 10, connectTimeoutMs = 10_000 } = options;
    const opened = await openPool(target, { maxPoolSize, connectTimeoutMs });
    const store = new MySqlStore(opened, options);
    try {
      await store.#readSettings();
      if (opened.ownsPool) await store.#warm(minPoolSize);
    } catch (error) {
      await store.close();
      throw explainOpen(error, opened.server);
    }
    return store;
  }

  /** The largest packet that the server takes, in bytes. */
  get maxPacket(): number {
    return this.#maxPacket;
  }

  async #readSettings(): Promise<void> {
    const [settings = {}] = await this.read("open", (session) =>
      session.rows(`SELECT DATABASE() AS name, @@max_allowed_packet AS packet, @@character_set_client AS client,
        @@character_set_connection AS connection, @@character_set_results AS results, @@autocommit AS autocommit`),
    );
    if (settings.name === null) {
      throw new StoreOpenError("The connection names no database. Add it: mysql://user:password@host/database");
    }
    const wrong = [settings.client, settings.connection, settings.results].find((charset) => charset !== "utf8mb4");
    if (wrong !== undefined) {
      throw new StoreOpenError(
        `The pool's connections speak ${String(wrong)}, in which not every text can be written. Create it with charset: "utf8mb4".`,
      );
    }
    if (Number(settings.autocommit) !== 1) {
      throw new StoreOpenError(
        "The pool's connections have autocommit off, so a read would see the same old state for ever. Create it with autocommit on.",
      );
    }
    this.#database = String(settings.name);
    this.#maxPacket = Number(settings.packet);
    // Our own pool asks for it and a host's may; whether the server, or what is before it, does it is seen by trying.
    this.#several = await this.read("open", (session) =>
      session.text("SELECT 1; SELECT 1").then(
        () => true,
        (error) => {
          if (isLost(error)) throw error;
          return false;
        },
      ),
    );
  }

  /** Opens so many connections that the first works need not wait for them. */
  async #warm(count: number): Promise<void> {
    const taken = await Promise.allSettled(Array.from({ length: count }, () => this.#acquire()));
    for (const result of taken) if (result.status === "fulfilled") this.#release(result.value, false);
    for (const result of taken) if (result.status === "rejected") throw result.reason;
  }

  /**
   * Reads with a connection of its own, outside of a transaction: each statement sees a snapshot of its own.
   *
   * @param operation the method, for errors
   */
  async read<T>(operation: string, run: (session: Session) => Promise<T>): Promise<T> {
    this.assertOpen(operation);
    return await this.#work.track(this.#attempt({ begin: [], commit: false, run }));
  }

  /** Reads: all statements see one snapshot. */
  async snapshot<T>(operation: string, run: (session: Session) => Promise<T>): Promise<T> {
    this.assertOpen(operation);
    return await this.#work.track(this.#attempt({ begin: BEGIN_SNAPSHOT, commit: true, run }));
  }

  /**
   * Writes in one transaction, undone when `run` throws, and committed when it ends or calls `finish`. `run` may be called again: after a deadlock, a lock that was not
   * to be had, or a connection that broke before the commit was asked for, when the server has undone it all. What broke
   * while committing is not tried again: then a ConnectionLostError says that the outcome is unknown.
   *
   * @throws ConnectionLostError, PoolExhaustedError, LockTimeoutError, ValueTooLargeError, StoreError
   */
  async write<T>(operation: string, run: (session: Session) => Promise<T>): Promise<T> {
    this.assertOpen(operation);
    const begin = this.#opened.ownsPool ? BEGIN : BEGIN_SHARED;
    return await this.#work.track(this.#attempt({ begin, commit: true, run }));
  }

  /**
   * Works under a lock of the database, by one program at a time. Undefined when the lock was not to be had in time.
   *
   * The server knows such locks by a name of at most 64 characters, for all its databases, so the name is a hash of both.
   * It belongs to the connection: it is given back on the same one, or ends with it.
   */
  async locked<T>(
    operation: string,
    name: string,
    timeoutMs: number,
    run: (session: Session) => Promise<T>,
  ): Promise<{ value: T } | undefined> {
    this.assertOpen(operation);
    return await this.#work.track(this.#locked(name, timeoutMs, run));
  }

  /** Whether some program holds such a lock. */
  async isLocked(operation: string, name: string): Promise<boolean> {
    const [row] = await this.read(operation, (session) =>
      session.rows("SELECT IS_USED_LOCK(?) AS holder", [this.#lockKey(name)]),
    );
    return row?.holder != null;
  }

  #lockKey(name: string): string {
    return createHash("sha256").update(`${this.#database}\0${name}`).digest("hex");
  }

  async #locked<T>(name: string, timeoutMs: number, run: (session: Session) => Promise<T>) {
    const key = this.#lockKey(name);
    const connection = await this.#acquire();
    const session = this.#sessionOf(connection, []);
    let held = false;
    try {
      const [row] = await session.rows("SELECT GET_LOCK(?, ?) AS got", [key, Math.ceil(timeoutMs / 1000)]);
      // 0 says that the wait was too long, NULL that the server failed.
      if (row?.got === null)
        throw new StoreError("The server gave no lock: GET_LOCK failed. Nothing was done. Try again.");
      held = Number(row?.got) === 1;
      return held ? { value: await run(session) } : undefined;
    } catch (error) {
      throw isLost(error) ? lost(error, "unknown") : explain(error, this.#maxPacket);
    } finally {
      const [row] = await session.rows("SELECT RELEASE_LOCK(?) AS freed", [key]).catch((): Row[] => []);
      // A lock that is not known to be free goes with its connection.
      this.#release(connection, held ? Number(row?.freed) !== 1 : row === undefined);
    }
  }

  async #attempt<T>(work: { begin: readonly string[]; commit: boolean; run: (session: Session) => Promise<T> }) {
    const deadline = performance.now() + this.#lockTimeoutMs;
    for (let waits = 0, losses = 0; ; ) {
      const connection = await this.#acquire();
      const session = this.#sessionOf(connection, work.begin);
      try {
        const value = await work.run(session);
        if (work.commit && !session.committing) await session.finish([]);
        this.#release(connection, false);
        return value;
      } catch (error) {
        await this.#abandon(connection, error, work.commit);
        if (isLockFailure(error)) {
          if (performance.now() > deadline) {
            throw new LockTimeoutError(this.#lockTimeoutMs, { cause: error, option: "lockTimeoutMs" });
          }
          await sleep(backoff(waits++));
        } else if (isLost(error) && !isTooLarge(error)) {
          const committing = session.committing && work.begin !== BEGIN_SNAPSHOT;
          // After a restart every idle connection may be dead: each is found so once, and then a new one is made.
          if (committing || losses++ > this.#maxPoolSize) throw lost(error, committing ? "unknown" : "not_written");
        } else throw explain(error, this.#maxPacket);
      }
    }
  }

  #sessionOf(connection: MySqlConnection, begin: readonly string[]): ConnectionSession {
    return new ConnectionSession(connection, { begin, several: this.#several, maxPacket: this.#maxPacket });
  }

  /** Takes a connection whose session is as it must be. */
  async #acquire(): Promise<MySqlConnection> {
    const wanted = this.#opened.pool.getConnection();
    const timer = Promise.withResolvers<undefined>();
    const timeout = setTimeout(timer.resolve, this.#connectTimeoutMs, undefined);
    let connection: MySqlConnection | undefined;
    try {
      connection = await Promise.race([wanted, timer.promise]);
    } catch (error) {
      throw unreachable(error, this.#opened.server) ?? explain(error, this.#maxPacket);
    } finally {
      clearTimeout(timeout);
    }
    if (!connection) {
      // The pool has no way to take the wish back: what comes late goes back to it.
      wanted.then(
        (late) => late.release(),
        () => undefined,
      );
      throw new PoolExhaustedError(this.#connectTimeoutMs, this.#maxPoolSize);
    }

    if (this.#opened.ownsPool && !this.#ready.has(connection.connection)) await this.#prepare(connection);
    return connection;
  }

  async #prepare(connection: MySqlConnection): Promise<void> {
    const seconds = Math.max(1, Math.ceil(this.#lockTimeoutMs / 1000));
    try {
      await connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
      // Strict: what does not fit is an error and never cut. UTC: no instant is written twice in a year.
      await connection.query(
        `SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00', innodb_lock_wait_timeout = ${seconds}`,
      );
      this.#ready.add(connection.connection);
    } catch (error) {
      this.#release(connection, true);
      throw unreachable(error, this.#opened.server) ?? explain(error, this.#maxPacket);
    }
  }

  #release(connection: MySqlConnection, broken: boolean): void {
    if (broken) connection.destroy();
    else connection.release();
  }

  /** Gives back a connection whose work failed: undone, or destroyed when it can't be used any more. */
  async #abandon(connection: MySqlConnection, error: unknown, inTransaction: boolean): Promise<void> {
    let broken = isLost(error) || isReadOnly(error);
    if (!broken && inTransaction) {
      try {
        await connection.query("ROLLBACK");
      } catch {
        broken = true;
      }
    }
    this.#release(connection, broken);
  }

  /** Waits for work in flight; ends the pool if it is ours. */
  close(): Promise<void> {
    return this.#work.close(async () => {
      if (this.#opened.ownsPool) await this.#opened.pool.end();
    });
  }

  /** @throws StoreClosedError naming the method that was called too late */
  assertOpen(operation: string): void {
    this.#work.assertOpen(operation);
  }
}

function lost(error: unknown, outcome: "not_written" | "unknown"): unknown {
  if (error instanceof EverthreadError) return error;
  return new ConnectionLostError("The connection to the server broke.", outcome, { cause: error });
}

/** Short waits first, since most deadlocks are over at once; spread, so that the parties don't meet again. */
function backoff(waits: number): number {
  return Math.min(2 + waits * 4, 100) * (0.5 + Math.random());
}
