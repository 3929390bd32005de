/** Who appends to Postgres in the measures: Everthread, its statements sent bare, and plain statements of one's own. */
import { encode } from "@msgpack/msgpack";
import pg from "pg";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { APPEND } from "../../src/checkpoint/postgres/queries.ts";
import type { Appender } from "./append.ts";
import { POOL } from "./append.ts";

type Statements = readonly [sql: string, values?: unknown[]][];

export async function everthread(url: string): Promise<Appender> {
  const store = await PostgresCheckpointer.open(url, { maxPoolSize: POOL });
  return {
    append: (threadId, message, expectedRevision) => store.append(threadId, [message], { expectedRevision }),
    close: () => store.close(),
  };
}

const LOCK = "SELECT pg_advisory_xact_lock(hashtext($1))";

/** The statements of Everthread, without its checks, its errors and its retries. */
export function sameStatements(url: string): Appender {
  const { run, close } = transactions(url);
  return {
    async append(threadId, message, expected) {
      const payload = encode(message);
      const { role, metadata, run_id } = message;
      const row = { n: 1, start: 1, length: payload.byteLength, role, run_id, metadata };
      const [, , rows] = await run([
        ["SELECT set_config('lock_timeout', $1, true)", ["30000ms"]],
        [LOCK, [threadId]],
        [APPEND, [threadId, expected, [run_id], payload, JSON.stringify([row]), []]],
      ]);
      return Number(rows?.[0]?.revision);
    },
    close,
  };
}

/** The least that does the same: the lock, the thread, whether the run is open, the message. */
export function plainStatements(url: string): Appender {
  const { run, close } = transactions(url);
  return {
    async append(threadId, message) {
      const { role, metadata, run_id } = message;
      const ended = "SELECT 1 FROM cubepi_runs WHERE thread_id = $1 AND run_id = $2 AND completed_at IS NOT NULL";
      const insert = `INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id)
        SELECT $1, coalesce(max(seq), 0) + 1, $2, $3, $4, $5 FROM cubepi_messages WHERE thread_id = $1 RETURNING seq`;
      const [, , , rows] = await run([
        [LOCK, [threadId]],
        ["INSERT INTO cubepi_threads (thread_id) VALUES ($1) ON CONFLICT DO NOTHING", [threadId]],
        [ended, [threadId, run_id]],
        [insert, [threadId, role, metadata, encode(message), run_id]],
      ]);
      return Number(rows?.[0]?.seq);
    },
    close,
  };
}

/** Transactions of pg, each sent whole before the first answer: one round trip. */
function transactions(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: POOL, pipeline: true });
  const run = async (statements: Statements): Promise<Record<string, unknown>[][]> => {
    const client = await pool.connect();
    try {
      const all: Statements = [["BEGIN"], ...statements, ["COMMIT"]];
      const results = await Promise.all(all.map(([sql, values]) => client.query(sql, values)));
      return results.slice(1, -1).map(({ rows }) => rows);
    } finally {
      client.release();
    }
  };
  return { run, close: () => pool.end() };
}
