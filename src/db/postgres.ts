/**
 * A Postgres server as a store: a pool of connections, transactions of one round trip, and what is tried again when a
 * connection breaks. It knows no table.
 *
 * Nothing depends on a session: every transaction is one pipeline, locks end with it, and no statement has a name. So it
 * works behind a transaction pooler.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, messageOf } from "../errors.ts";
import { PoolExhaustedError, StoreOpenError } from "./errors.ts";
import { connectError, isServerError, mayRetry, operationError } from "./postgres-errors.ts";
import { Pipeline, type Row, type Statement } from "./postgres-pipeline.ts";
import { WorkInFlight } from "./work.ts";

export type { Row, Statement, Value } from "./postgres-pipeline.ts";

/** What is used of a client of pg. */
export interface PgClient {
  query(query: { submit(connection: never): void }): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** What is used of a pool of pg: `new pg.Pool()` is one, and so are its relatives that keep pg's Client. */
export interface PgPool {
  connect(): Promise<PgClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  readonly totalCount: number;
  readonly options?: { max?: number | undefined };
}

/** Where the server is: any options of pg's Pool. What is left out comes from PGHOST, PGUSER and the like. */
export interface PostgresConfig {
  host?: string | undefined;
  port?: number | undefined;
  user?: string | undefined;
  password?: string | (() => string | Promise<string>) | undefined;
  database?: string | undefined;
  ssl?: boolean | object | undefined;
  [option: string]: unknown;
}

/** A connection string, a configuration, or a pool that the host owns and ends itself. */
export type PostgresTarget = string | PostgresConfig | { pool: PgPool };

export interface PostgresStoreOptions {
  /** Connections that are kept open. (Default: 1) */
  minPoolSize?: number | undefined;
  /** Connections at most. (Default: 10) */
  maxPoolSize?: number | undefined;
  /** How long to wait for a connection, a new one or a free one, in ms. (Default: 10000) */
  connectTimeoutMs?: number | undefined;
  /** How long to wait for another program's lock on a thread, in ms. (Default: 30000) */
  lockTimeoutMs?: number | undefined;
}

const BEGIN: Statement = { text: "BEGIN ISOLATION LEVEL READ COMMITTED" };
const BEGIN_SNAPSHOT: Statement = { text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" };
const COMMIT: Statement = { text: "COMMIT" };
const ROLLBACK: Statement = { text: "ROLLBACK" };
const LOCK_TIMEOUT = "SELECT pg_catalog.set_config('lock_timeout', $1, true)";
const LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext($1))";
/** In the order of their keys, so that two who take the same two locks can't wait for each other. */
const LOCKS = `SELECT pg_catalog.pg_advisory_xact_lock(key) FROM (
  SELECT DISTINCT pg_catalog.hashtext(name) AS key FROM pg_catalog.json_array_elements_text($1::json) AS names (name)
  ORDER BY key) AS keys`;

const ATTEMPTS = 4;

export class PostgresStore {
  readonly #pool: PgPool;
  readonly #ownsPool: boolean;
  readonly #connectTimeoutMs: number;
  readonly #lockTimeoutMs: number;
  readonly #work = new WorkInFlight();

  private constructor(pool: PgPool, ownsPool: boolean, options: PostgresStoreOptions) {
    this.#pool = pool;
    this.#ownsPool = ownsPool;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    this.#lockTimeoutMs = options.lockTimeoutMs ?? 30_000;
    pool.on("error", ignore);
  }

  /** Makes the pool, or takes the host's. Connects to nothing yet. @throws StoreOpenError when pg is not installed */
  static async open(target: PostgresTarget, options: PostgresStoreOptions = {}): Promise<PostgresStore> {
    if (typeof target === "object" && isPool(target.pool)) {
      if ((target.pool.options as { pipeline?: unknown } | undefined)?.pipeline) {
        throw new InvalidArgumentError(
          "The pool has pg's option `pipeline`, with which its clients take no query objects. Hand in a pool without it: Everthread pipelines by itself.",
        );
      }
      return new PostgresStore(target.pool, false, options);
    }
    const { Pool } = await loadDriver();
    const { minPoolSize: min = 1, maxPoolSize: max = 10, connectTimeoutMs = 10_000 } = options;
    const config = typeof target === "string" ? { connectionString: target } : target;
    const defaults = { keepAlive: true, fallback_application_name: "everthread" };
    // A program that forgets close() ends all the same once it has nothing else to do.
    const own = { min, max, connectionTimeoutMillis: connectTimeoutMs, allowExitOnIdle: true };
    return new PostgresStore(new Pool({ ...defaults, ...config, ...own }), true, options);
  }

  /** Connects, so that what is wrong with the address or the credentials is said now. @throws StoreOpenError */
  async connect(): Promise<void> {
    this.#release(await this.#acquire(true), false);
  }

  /**
   * Reads: all statements see one snapshot. Gives the rows of each.
   *
   * @param operation the method, for errors
   */
  async read(operation: string, statements: readonly Statement[]): Promise<Row[][]> {
    this.assertOpen(operation);
    // One statement is a snapshot by itself.
    if (statements.length === 1) return await this.#work.track(this.#run(statements, true));
    const results = await this.#work.track(this.#run([BEGIN_SNAPSHOT, ...statements, COMMIT], true));
    return results.slice(1, -1);
  }

  /**
   * Writes in one transaction that holds the locks of the given names, and gives the rows of each statement. Each sees
   * what was committed before the locks were held.
   *
   * What certainly did not commit is tried again a few times. What may have is not: then a ConnectionLostError says that
   * the outcome is unknown.
   *
   * @throws ConnectionLostError, PoolExhaustedError, LockTimeoutError, StoreError
   */
  async write(
    operation: string,
    locks: readonly [string, ...string[]],
    statements: readonly Statement[],
  ): Promise<Row[][]> {
    this.assertOpen(operation);
    const timeout = { text: LOCK_TIMEOUT, values: [`${this.#lockTimeoutMs}ms`] };
    const [name = "", ...others] = locks;
    const lock =
      others.length === 0 ? { text: LOCK, values: [name] } : { text: LOCKS, values: [JSON.stringify(locks)] };
    const results = await this.#work.track(this.#run([BEGIN, timeout, lock, ...statements, COMMIT], false));
    return results.slice(3, -1);
  }

  /** Waits for work in flight; ends the pool if it is ours. */
  close(): Promise<void> {
    return this.#work.close(async () => {
      if (this.#ownsPool) await this.#pool.end();
      else this.#pool.removeListener("error", ignore);
    });
  }

  /** @throws StoreClosedError naming the method that was called too late */
  assertOpen(operation: string): void {
    this.#work.assertOpen(operation);
  }

  async #run(statements: readonly Statement[], readOnly: boolean): Promise<Row[][]> {
    for (let attempt = 1; ; attempt++) {
      const client = await this.#acquire();
      const pipeline = new Pipeline(statements);
      try {
        client.query(pipeline);
        await pipeline.done;
        this.#release(client, false);
        return pipeline.results;
      } catch (error) {
        const broken = !(isServerError(error) && (await rolledBack(client, statements)));
        this.#release(client, broken);
        // The connection broke after the answer to COMMIT: what matters has come.
        if (pipeline.complete) return pipeline.results;
        const again = mayRetry(error) || (readOnly && broken);
        if (!again || attempt === ATTEMPTS) throw operationError(error, this.#lockTimeoutMs);
      }
      await sleep(attempt * 10 * Math.random());
    }
  }

  async #acquire(opening = false): Promise<PgClient> {
    const timedOut = Promise.withResolvers<never>();
    const timer = setTimeout(() => timedOut.reject(this.#timeoutError()), this.#connectTimeoutMs);
    let late = false;
    const connecting = (async () => await this.#pool.connect())();
    connecting.then((client) => late && client.release(), ignore);
    try {
      const client = await Promise.race([connecting, timedOut.promise]);
      client.on("error", ignore);
      return client;
    } catch (error) {
      late = true;
      // pg's own timer may have come first; its error says nothing about the cause.
      throw connectError(/timeout/i.test(messageOf(error)) ? this.#timeoutError() : error, opening);
    } finally {
      clearTimeout(timer);
    }
  }

  #timeoutError(): Error {
    const { totalCount, options } = this.#pool;
    return totalCount >= (options?.max ?? Number.POSITIVE_INFINITY)
      ? new PoolExhaustedError(this.#connectTimeoutMs, totalCount)
      : new Error(`it did not answer within ${this.#connectTimeoutMs} ms`);
  }

  #release(client: PgClient, destroy: boolean): void {
    // The pool's own listener comes first, so that there is one at every moment.
    client.release(destroy);
    client.removeListener("error", ignore);
  }
}

/** Ends the transaction that an error has left behind. False when the connection is of no more use. */
async function rolledBack(client: PgClient, statements: readonly Statement[]): Promise<boolean> {
  if (statements.length === 1) return true;
  const rollback = new Pipeline([ROLLBACK]);
  try {
    client.query(rollback);
    await rollback.done;
    return true;
  } catch {
    return false;
  }
}

/** An idle connection that breaks leaves the pool; the next operation takes another. Without a listener it would end the process. */
function ignore(): void {}

function isPool(value: unknown): value is PgPool {
  return typeof value === "object" && value !== null && "connect" in value && "totalCount" in value;
}

async function loadDriver(): Promise<{ Pool: new (config: object) => PgPool }> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw new StoreOpenError("Postgres needs the package pg. Install it: npm install pg", { cause: error });
  }
}
