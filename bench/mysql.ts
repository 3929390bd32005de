/**
 * The MySQL engine on a MariaDB or MySQL that is found on PATH and started here: append, load and fork against bare
 * statements.
 */
import { chmodSync } from "node:fs";
import { decode } from "@msgpack/msgpack";
import { createPool, type RowDataPacket } from "mysql2/promise";
import { MySQLCheckpointer } from "../src/checkpoint/mysql/checkpointer.ts";
import { OwnServer, testDatabase } from "../test/support/mysql.ts";
import { benchDir, type Figure, report } from "./measure.ts";
import { measureAppend } from "./servers/append.ts";
import { everthread, plainStatements, sameStatements } from "./servers/mysql-appenders.ts";
import { measureFork, measureLoad } from "./servers/read.ts";

const SELECT = "SELECT seq, role, metadata, payload FROM cubepi_messages WHERE thread_id = ? ORDER BY seq";
const COPY = `INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
  SELECT ?, seq, role, metadata, payload, run_id, created_at FROM cubepi_messages WHERE thread_id = ?`;

const COPY_RUNS = `INSERT INTO cubepi_runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
  SELECT ?, run_id, claimed_at, completed_at, completion_seq FROM cubepi_runs WHERE thread_id = ?`;

const figures: Figure[] = [];
// A server that starts clears away what others have in a directory that they share.
const tmp = benchDir();
chmodSync(tmp, 0o777);
// A commit waits for the disk, which is the server's default, and the tables fit into memory.
const FLAGS = [
  `--tmpdir=${tmp}`,
  "--innodb-flush-log-at-trx-commit=1",
  "--innodb-file-per-table=1",
  "--innodb-buffer-pool-size=512M",
];
await using server = new OwnServer(FLAGS);
await server.start();

for (const [flush, how] of [
  [1, ""],
  [2, "; no wait for the disk"],
] as const) {
  await using database = await testDatabase({ server: server.url });
  await database.sql(`SET GLOBAL innodb_flush_log_at_trx_commit = ${flush}`);
  const { url } = database;
  const appenders = { ours: await everthread(url), same: sameStatements(url), plain: plainStatements(url) };
  figures.push(...(await measureAppend(appenders, how)));
  await database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
}

await using database = await testDatabase({ server: server.url });
const store = await MySQLCheckpointer.open(database.url);
const pool = createPool({ uri: database.url, charset: "utf8mb4" });
const bareLoad = async (threadId: string) => {
  const [rows] = await pool.query<RowDataPacket[]>(SELECT, [threadId]);
  return rows.map((row) => ({ ...row, message: decode(row.payload) }));
};
figures.push(...(await measureLoad(store, bareLoad)));
const bareFork = {
  begin: (target: string) => pool.query("INSERT INTO cubepi_threads (thread_id) VALUES (?)", [target]),
  copy: (source: string, target: string) => pool.query(COPY, [target, source]),
  async copyBoth(source: string, target: string) {
    const connection = await pool.getConnection();
    await connection.query("START TRANSACTION");
    await connection.query(COPY, [target, source]);
    await connection.query(COPY_RUNS, [target, source]);
    await connection.query("COMMIT");
    connection.release();
  },
  analyze: () => pool.query("ANALYZE TABLE cubepi_threads, cubepi_messages, cubepi_runs"),
};
figures.push(...(await measureFork(store, bareFork)));
await store.close();
await pool.end();
report(figures);
