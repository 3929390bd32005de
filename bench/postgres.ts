/**
 * The Postgres engine on a server that is started here with the settings it comes with: append, load and fork against bare
 * statements; one conversation against LangGraph's checkpointer and CubeLoop's.
 *
 * LangGraph's packages are those of bench/servers (npm ci there); CubeLoop's Python is EVERTHREAD_PYTHON or .venv/bin/python.
 * What is not there is left out.
 */
import { decode } from "@msgpack/msgpack";
import pg from "pg";
import { migrate, PostgresCheckpointer } from "../src/checkpoint/postgres/checkpointer.ts";
import { type Figure, report } from "./measure.ts";
import { measureAppend } from "./servers/append.ts";
import { everthread, plainStatements, sameStatements } from "./servers/postgres-appenders.ts";
import { measurePeers } from "./servers/postgres-peers.ts";
import { measureFork, measureLoad } from "./servers/read.ts";
import { startServer } from "./servers/server.ts";

const SELECT = "SELECT seq, role, metadata, payload FROM cubepi_messages WHERE thread_id = $1 ORDER BY seq";
const COPY = `INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
  SELECT $2, seq, role, metadata, payload, run_id, created_at FROM cubepi_messages WHERE thread_id = $1`;

const COPY_RUNS = `INSERT INTO cubepi_runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
  SELECT $2, run_id, claimed_at, completed_at, completion_seq FROM cubepi_runs WHERE thread_id = $1`;

const server = await startServer();
const figures: Figure[] = [];

// Where a commit waits for no disk, it is seen what the work itself costs.
for (const [name, settings, how] of [
  ["durable", {}, ""],
  ["hasty", { synchronous_commit: "off" }, "; no wait for the disk"],
] as const) {
  const url = await server.database(name, settings);
  await migrate(url);
  const appenders = { ours: await everthread(url), same: sameStatements(url), plain: plainStatements(url) };
  figures.push(...(await measureAppend(appenders, how)));
}

const url = await server.database("reading");
await migrate(url);
const store = await PostgresCheckpointer.open(url);
const pool = new pg.Pool({ connectionString: url });
const bareLoad = async (threadId: string) => {
  const { rows } = await pool.query(SELECT, [threadId]);
  return rows.map((row) => ({ ...row, message: decode(row.payload) }));
};
figures.push(...(await measureLoad(store, bareLoad)));
const bareFork = {
  begin: (target: string) => pool.query("INSERT INTO cubepi_threads (thread_id) VALUES ($1)", [target]),
  copy: (source: string, target: string) => pool.query(COPY, [source, target]),
  async copyBoth(source: string, target: string) {
    const connection = await pool.connect();
    await connection.query("START TRANSACTION");
    await connection.query(COPY, [source, target]);
    await connection.query(COPY_RUNS, [source, target]);
    await connection.query("COMMIT");
    connection.release();
  },
  analyze: () => pool.query("VACUUM ANALYZE"),
};
figures.push(...(await measureFork(store, bareFork)));
await store.close();
await pool.end();

figures.push(...(await measurePeers(server)));
report(figures);
await server.stop();
process.exit();
