/** mysql2: what is used of it, how it is found, and how a target becomes a pool. */
import { InvalidArgumentError } from "../errors.ts";
import { StoreOpenError } from "./errors.ts";

/** What is used of a connection of mysql2/promise. */
export interface MySqlConnection {
  execute(statement: { sql: string; rowsAsArray: boolean }, values: (string | Buffer | null)[]): Promise<unknown[]>;
  query(statement: string | { sql: string; rowsAsArray: boolean }): Promise<unknown[]>;
  release(): void;
  destroy(): void;
  /** The connection beneath: the same object each time the pool hands it out. */
  readonly connection: object;
}

/** What is used of a pool of mysql2/promise. */
export interface MySqlPool {
  getConnection(): Promise<MySqlConnection>;
  end(): Promise<void>;
}

/** A pool of mysql2 without promises: `require("mysql2").createPool()`. */
export interface MySqlCallbackPool {
  promise(): MySqlPool;
}

/** Where the server is: any options of mysql2's createPool, but for the pool's sizes, `charset` and `multipleStatements`, which are Everthread's. */
export interface MySqlConfig {
  host?: string | undefined;
  port?: number | undefined;
  user?: string | undefined;
  password?: string | undefined;
  database?: string | undefined;
  /** The path of a local socket, in place of host and port. */
  socketPath?: string | undefined;
  ssl?: object | undefined;
  [option: string]: unknown;
}

/** A connection string, a configuration, or a pool that the host owns and ends itself. */
export type MySqlTarget = string | MySqlConfig | { pool: MySqlPool | MySqlCallbackPool };

export interface Opened {
  pool: MySqlPool;
  ownsPool: boolean;
  /** The server as errors name it: host and port, never the credentials. */
  server: string;
}

/** Makes the pool, or takes the host's. Connects to nothing yet. @throws InvalidArgumentError, StoreOpenError */
export async function openPool(
  target: MySqlTarget,
  options: { maxPoolSize: number; connectTimeoutMs: number },
): Promise<Opened> {
  if (typeof target === "object" && target !== null && "pool" in target) {
    const { pool } = target as { pool: MySqlPool | MySqlCallbackPool };
    if (isCallbackPool(pool)) return { pool: pool.promise(), ownsPool: false, server: "of the pool" };
    if (typeof pool?.getConnection !== "function") {
      throw new InvalidArgumentError("The pool must be one of mysql2 or mysql2/promise: createPool({ … }).");
    }
    return { pool, ownsPool: false, server: "of the pool" };
  }
  const config = typeof target === "string" ? parseUrl(target) : target;
  if (typeof config !== "object" || config === null) {
    throw new InvalidArgumentError("Give a mysql:// URL, an object with host, user and so on, or { pool }.");
  }
  const { createPool } = await loadDriver();
  const own = {
    // Names four-byte UTF-8; left to the driver's default, another program's choice of it would decide what is kept.
    charset: "utf8mb4",
    connectionLimit: options.maxPoolSize,
    connectTimeout: options.connectTimeoutMs,
    waitForConnections: true,
    queueLimit: 0,
    enableKeepAlive: true,
    // For what need not wait for an answer (see mysql-session.ts).
    multipleStatements: true,
  };
  const server = config.socketPath ?? `${config.host ?? "localhost"}:${config.port ?? 3306}`;
  return { pool: createPool({ ...config, ...own }) as MySqlPool, ownsPool: true, server };
}

function isCallbackPool(pool: MySqlPool | MySqlCallbackPool): pool is MySqlCallbackPool {
  return typeof (pool as Partial<MySqlCallbackPool> | undefined)?.promise === "function";
}

async function loadDriver(): Promise<{ createPool(config: object): unknown }> {
  try {
    return await import("mysql2/promise");
  } catch (error) {
    throw new StoreOpenError("MySQL needs the package mysql2, which is not installed: npm install mysql2", {
      cause: error,
    });
  }
}

/** The errors name no part of the URL: it may hold a password. */
function parseUrl(text: string): MySqlConfig {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidArgumentError(
      "The connection string is not a URL. It reads mysql://user:password@host:3306/database",
    );
  }
  if (url.protocol !== "mysql:" && url.protocol !== "mariadb:") {
    throw new InvalidArgumentError(`The connection string must begin with mysql://, not with ${url.protocol}//`);
  }
  const config: MySqlConfig = {
    host: decodeURIComponent(url.hostname.replace(/^\[(.*)\]$/, "$1")) || "localhost",
    port: url.port === "" ? 3306 : Number(url.port),
    user: decode(url.username),
    password: decode(url.password),
    database: decode(url.pathname.slice(1)),
  };
  for (const [name, value] of url.searchParams) {
    if (name === "socketPath") config.socketPath = value;
    else if (name === "ssl" && value === "true") config.ssl = {};
    else
      throw new InvalidArgumentError(
        `The connection string has the parameter ${name}: only ssl=true and socketPath are understood. For more, give an object.`,
      );
  }
  return config;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new InvalidArgumentError("The connection string is not encoded as a URL: a % in it must be written %25.");
  }
}
