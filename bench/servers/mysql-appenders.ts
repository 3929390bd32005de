/** Who appends to MySQL in the measures: Everthread, its statements sent bare, and plain statements of one's own. */
import { encode } from "@msgpack/msgpack";
import { createPool, type RowDataPacket } from "mysql2/promise";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { queriesFor } from "../../src/checkpoint/mysql/queries.ts";
import { type Appender, POOL } from "./append.ts";

const Q = queriesFor("cubepi_");

export async function everthread(url: string): Promise<Appender> {
  const store = await MySQLCheckpointer.open(url, { maxPoolSize: POOL });
  return {
    append: (threadId, message, expectedRevision) => store.append(threadId, [message], { expectedRevision }),
    close: () => store.close(),
  };
}

/** The statements of Everthread, without its checks, its errors and its retries, in two round trips: the seq comes with the first. */
export function sameStatements(url: string): Appender {
  const { run, close } = transactions(url);
  return {
    async append(threadId, message) {
      const { role, metadata, run_id } = message;
      const row = [threadId, role, JSON.stringify(metadata), Buffer.from(encode(message)), run_id];
      return await run(async (query) => {
        const results = await query(`START TRANSACTION; ${Q.ENSURE_THREAD}; ${Q.STATE}`, [threadId, run_id, threadId]);
        const state = results[2]?.[0];
        const seq = Number(state?.last) + 1;
        await query(`${Q.INSERT_MESSAGES} (?, ${seq}, ?, ?, ?, ?, DEFAULT); COMMIT`, row);
        return Number(state?.base) + seq;
      });
    },
    close,
  };
}

/** The least that does the same, in one round trip: the thread's row as its lock, whether the run is open, the message. */
export function plainStatements(url: string): Appender {
  const { run, close } = transactions(url);
  const all = `START TRANSACTION;
    INSERT INTO cubepi_threads (thread_id) VALUES (?) ON DUPLICATE KEY UPDATE thread_id = thread_id;
    SELECT 1 FROM cubepi_runs WHERE thread_id = ? AND run_id = ? AND completed_at IS NOT NULL;
    INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id)
      SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ?, ? FROM cubepi_messages WHERE thread_id = ?;
    COMMIT`;
  return {
    async append(threadId, message, expected) {
      const { role, metadata, run_id } = message;
      const row = [threadId, role, JSON.stringify(metadata), Buffer.from(encode(message)), run_id, threadId];
      await run((query) => query(all, [threadId, threadId, run_id, ...row]));
      return expected + 1;
    },
    close,
  };
}

type Query = (sql: string, values: unknown[]) => Promise<RowDataPacket[][]>;

function transactions(url: string) {
  const pool = createPool({ uri: url, connectionLimit: POOL, multipleStatements: true, charset: "utf8mb4" });
  const run = async <T>(work: (query: Query) => Promise<T>): Promise<T> => {
    const connection = await pool.getConnection();
    try {
      return await work(async (sql, values) => (await connection.query(sql, values))[0] as RowDataPacket[][]);
    } finally {
      connection.release();
    }
  };
  // As Everthread's own connections are.
  pool.on("connection", (connection) => connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"));
  return { run, close: () => pool.end() };
}
