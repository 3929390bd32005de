/** MySQL for tests: the server of MYSQL_URL, else a private one that the first test which needs it starts. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { archiveSchemaSql, schemaSql } from "../../src/checkpoint/mysql/checkpointer.ts";
import { statementsOf } from "../../src/checkpoint/mysql/migrate.ts";
import { serverProgram, startServer, stopServer } from "./mysql-server.ts";

const given = process.env.MYSQL_URL;

/** Whether there is a server to test with. */
export const hasMysql = given !== undefined || serverProgram !== undefined;
/** What to add to the name of a suite that needs one. */
export const mysqlLabel = hasMysql
  ? `${given ? "MYSQL_URL" : serverProgram}`
  : "skipped: no mariadbd or mysqld on PATH, and no MYSQL_URL";
/** Some tests set up a server of their own, or restart it. */
export const hasOwnServer = serverProgram !== undefined;

export class TestDatabase implements AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly admin: Connection;

  constructor(name: string, url: string, admin: Connection) {
    this.name = name;
    this.url = url;
    this.admin = admin;
  }

  /** Runs SQL as the administrator, within the database, and gives the rows. */
  async sql(text: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await this.admin.query(text, values);
    return rows as RowDataPacket[];
  }

  /** Runs all statements of a script. */
  async script(text: string): Promise<void> {
    for (const statement of statementsOf(text)) await this.admin.query(statement);
  }

  /** Removes all rows of the tables. */
  async empty(): Promise<void> {
    await this.admin.query("SET foreign_key_checks = 0");
    for (const table of ["threads", "messages", "runs", "hitl_answers"])
      await this.admin.query(`DELETE FROM cubepi_${table}`);
    if ((await this.sql("SHOW TABLES LIKE 'everthread_archives'")).length > 0) {
      await this.admin.query("DELETE FROM everthread_archives");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin.query(`DROP DATABASE IF EXISTS \`${this.name}\``);
    await this.admin.end();
  }
}

/**
 * Makes a database of a test's own on the shared server.
 *
 * @param options.tables whether the tables are made in it; "shared" are those that CubeLoop knows (Default: true)
 * @param options.create what to add to CREATE DATABASE (Default: nothing)
 */
export async function testDatabase(
  options: { tables?: boolean | "shared"; create?: string; name?: string; server?: string } = {},
): Promise<TestDatabase> {
  const server = options.server ?? given ?? (await sharedServer());
  const name = options.name ?? `everthread_${randomBytes(6).toString("hex")}`;
  const admin = await createConnection({ uri: server, charset: "utf8mb4" });
  await admin.query(`CREATE DATABASE \`${name}\` ${options.create ?? ""}`);
  await admin.query(`USE \`${name}\``);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const database = new TestDatabase(name, url.href, admin);
  const { tables = true } = options;
  if (tables) await database.script(schemaSql());
  if (tables === true) await database.script(archiveSchemaSql());
  return database;
}

/** A server of a test's own, which it may restart. Gives the URL without a database. */
export class OwnServer implements AsyncDisposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "everthread-mysql-own-"));
  readonly #flags: readonly string[];
  #port: number | undefined;

  constructor(flags: readonly string[] = []) {
    this.#flags = flags;
  }

  get url(): string {
    return `mysql://root@127.0.0.1:${this.#port}/`;
  }

  async start(): Promise<void> {
    this.#port = await startServer(this.#directory, this.#flags, this.#port);
  }

  async stop(signal?: NodeJS.Signals): Promise<void> {
    await stopServer(this.#directory, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Test files run at once: the first makes the directory and starts the server, the others wait for its address. */
async function sharedServer(): Promise<string> {
  const place = process.env.EVERTHREAD_TEST_MYSQL;
  if (!place) throw new Error("test/setup/mysql.ts has not run: it is a globalSetup of vitest.config.ts.");
  const directory = join(place, "shared");
  const ready = join(place, "url");
  const failed = join(place, "failed");
  if (claim(directory)) {
    try {
      const url = `mysql://root@127.0.0.1:${await startServer(directory)}/`;
      writeFileSync(`${ready}.part`, url);
      renameSync(`${ready}.part`, ready);
    } catch (error) {
      writeFileSync(failed, String(error));
      throw error;
    }
  }
  while (!existsSync(ready)) {
    if (existsSync(failed)) throw new Error(readFileSync(failed, "utf8"));
    await sleep(50);
  }
  return readFileSync(ready, "utf8");
}

function claim(directory: string): boolean {
  try {
    mkdirSync(directory);
    return true;
  } catch {
    return false;
  }
}
