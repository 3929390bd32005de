/**
 * The queries, named, on CubeLoop's table names; the host's prefix is put in their place. Every value is bound. Times are
 * read as seconds since 1970, which no time zone changes, and JSON as text, whatever the driver would make of it.
 *
 * A position in a thread's log, which is what a revision is, is the `seq` of the row added to the time at which the thread
 * was begun (BASE). CubeLoop numbers from 1 again when a thread is deleted and begun anew; time does not. The column knows
 * whole seconds only, so the highest position that was ever erased is kept as well, in the row of the empty id, which no
 * thread can have: what would begin at or below it, within the same second, numbers on from there.
 */
export const BASE = "UNIX_TIMESTAMP(t.created_at) * 1000000";

// What a fork takes of messages m: rows of completed runs up to the cut, and rows written before runs existed. The run is
// looked up by its key, and then compared by its bytes. Parameters: the thread, the thread again, the cut.
export const TAKEN = `m.thread_id = ? AND (m.run_id IS NULL OR EXISTS (SELECT 1 FROM cubepi_runs r
    WHERE r.thread_id = ? AND r.run_id = m.run_id AND CAST(r.run_id AS BINARY) = CAST(m.run_id AS BINARY)
      AND r.completion_seq <= ?))`;
// Whether a row of threads is more than what a cleared request or an emptied thread leaves behind.
const IS_USED = `(JSON_LENGTH(t.extra) > 0 OR t.pending_request IS NOT NULL OR t.parent_thread_id IS NOT NULL
    OR EXISTS (SELECT 1 FROM cubepi_messages m WHERE m.thread_id = t.thread_id)
    OR EXISTS (SELECT 1 FROM cubepi_runs r WHERE r.thread_id = t.thread_id)
    OR EXISTS (SELECT 1 FROM cubepi_hitl_answers a WHERE a.thread_id = t.thread_id))`;

const THREAD_INFO = `SELECT t.thread_id AS thread_id, t.parent_thread_id AS parent_thread_id,
    t.pending_request IS NOT NULL AS pending,
    (SELECT COUNT(*) FROM cubepi_messages m WHERE m.thread_id = t.thread_id) AS count,
    COALESCE((SELECT MAX(seq) FROM cubepi_messages m WHERE m.thread_id = t.thread_id) + ${BASE}, 0) AS revision,
    (SELECT UNIX_TIMESTAMP(m.created_at) FROM cubepi_messages m WHERE m.thread_id = t.thread_id ORDER BY seq LIMIT 1) AS created_at,
    (SELECT UNIX_TIMESTAMP(m.created_at) FROM cubepi_messages m WHERE m.thread_id = t.thread_id ORDER BY seq DESC LIMIT 1) AS updated_at
  FROM cubepi_threads t WHERE ${IS_USED}`;

const QUERIES = {
  // Takes the thread's lock: the row's, which CubeLoop takes as well, whether it was there or not.
  ENSURE_THREAD: "INSERT INTO cubepi_threads (thread_id) VALUES (?) ON DUPLICATE KEY UPDATE thread_id = thread_id",
  LOCK_THREAD: "SELECT thread_id FROM cubepi_threads WHERE thread_id = ? FOR UPDATE",
  /** Parameters: a run id or null, the thread. Says of that run whether it is there, and has completed. */
  STATE: `SELECT t.thread_id AS thread_id, ${BASE} AS base,
      COALESCE((SELECT MAX(seq) FROM cubepi_messages m WHERE m.thread_id = t.thread_id), 0) AS last,
      COALESCE((SELECT forked_at_seq FROM cubepi_threads e WHERE e.thread_id = ''), 0) AS erased,
      r.run_id AS run_id, r.completed_at IS NOT NULL AS done, r.completion_seq AS completion_seq
    FROM cubepi_threads t LEFT JOIN cubepi_runs r ON r.thread_id = t.thread_id AND r.run_id = ?
    WHERE t.thread_id = ?`,
  USED: `SELECT t.thread_id AS thread_id, ${IS_USED} AS used FROM cubepi_threads t WHERE t.thread_id = ?`,
  RAISE_ERASED: `INSERT INTO cubepi_threads (thread_id, forked_at_seq) VALUES ('', ?)
    ON DUPLICATE KEY UPDATE forked_at_seq = GREATEST(COALESCE(forked_at_seq, 0), VALUES(forked_at_seq))`,

  LOAD: `SELECT ${BASE} AS base, thread_id, parent_thread_id, 0 AS seq, NULL AS role, CAST(extra AS CHAR) AS json,
      NULL AS payload
    FROM cubepi_threads t WHERE thread_id = ?
    UNION ALL SELECT NULL, NULL, NULL, m.seq, m.role, CAST(m.metadata AS CHAR), m.payload
    FROM cubepi_threads t JOIN cubepi_messages m ON m.thread_id = t.thread_id
    WHERE t.thread_id = ? AND m.seq >= CAST(? AS SIGNED) - ${BASE}`,
  LOG_AFTER: `SELECT t.thread_id AS thread_id, ${BASE} AS base, m.seq AS seq, m.role AS role,
      CAST(m.metadata AS CHAR) AS json, m.payload AS payload, UNIX_TIMESTAMP(m.created_at) AS created_at
    FROM cubepi_threads t JOIN cubepi_messages m ON m.thread_id = t.thread_id
    WHERE t.thread_id = ? AND m.seq > CAST(? AS SIGNED) - ${BASE} ORDER BY m.seq LIMIT ?`,
  SNAPSHOT: `SELECT seq, role, CAST(metadata AS CHAR) AS json, payload FROM cubepi_messages m WHERE ${TAKEN} ORDER BY seq`,
  PAYLOADS_AFTER: "SELECT seq, payload FROM cubepi_messages WHERE thread_id = ? AND seq > ? ORDER BY seq LIMIT ?",
  /** Followed by the rows. */
  INSERT_MESSAGES: "INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at) VALUES",

  EXTRA: "SELECT CAST(extra AS CHAR) AS json FROM cubepi_threads WHERE thread_id = ?",
  SAVE_EXTRA: "UPDATE cubepi_threads SET extra = ? WHERE thread_id = ?",
  PENDING: `SELECT thread_id, CAST(pending_request AS CHAR) AS json, run_id FROM cubepi_threads
    WHERE thread_id = ? AND pending_request IS NOT NULL`,
  SAVE_PENDING: "UPDATE cubepi_threads SET pending_request = ?, run_id = ? WHERE thread_id = ?",

  RUN: `SELECT run_id, completed_at IS NOT NULL AS done, completion_seq FROM cubepi_runs
    WHERE thread_id = ? AND run_id = ?`,
  INSERT_RUN: "INSERT INTO cubepi_runs (thread_id, run_id) VALUES (?, ?)",
  IMPORT_RUN: `INSERT INTO cubepi_runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
    VALUES (?, ?, FROM_UNIXTIME(?), FROM_UNIXTIME(?), ?)
    ON DUPLICATE KEY UPDATE claimed_at = VALUES(claimed_at), completed_at = VALUES(completed_at),
      completion_seq = VALUES(completion_seq)`,
  SET_PARENT: "UPDATE cubepi_threads SET parent_thread_id = ? WHERE thread_id = ?",
  LAST_COMPLETION: "SELECT COALESCE(MAX(completion_seq), 0) AS seq FROM cubepi_runs WHERE thread_id = ?",
  COMPLETE_RUN: `UPDATE cubepi_runs SET completed_at = CURRENT_TIMESTAMP, completion_seq = ?
    WHERE thread_id = ? AND run_id = ?`,
  RUNS_AFTER: `SELECT thread_id, run_id, UNIX_TIMESTAMP(claimed_at) AS claimed_at,
      UNIX_TIMESTAMP(completed_at) AS completed_at, completion_seq
    FROM cubepi_runs WHERE thread_id = ? AND CAST(run_id AS BINARY) > CAST(? AS BINARY)
    ORDER BY CAST(run_id AS BINARY) LIMIT ?`,

  /** What TAKEN takes: how many rows, and from where to where. Parameters: the thread, the cut, the thread again. */
  TAKEN_SPAN: `SELECT COUNT(*) AS count, MIN(m.seq) AS first, MAX(m.seq) AS last
    FROM cubepi_messages m LEFT JOIN cubepi_runs r ON r.thread_id = ? AND r.run_id = m.run_id
      AND CAST(r.run_id AS BINARY) = CAST(m.run_id AS BINARY) AND r.completion_seq <= ?
    WHERE m.thread_id = ? AND (m.run_id IS NULL OR r.run_id IS NOT NULL)`,
  /** Rows that follow each other keep their distance. */
  FORK_SPAN: `INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
    SELECT ?, m.seq + CAST(? AS SIGNED), m.role, m.metadata, m.payload, m.run_id, m.created_at
    FROM cubepi_messages m WHERE m.thread_id = ? AND m.seq BETWEEN ? AND ?`,
  // With gaps between them they are numbered in an index first, so that the payloads are read once and sorted never.
  FORK_MESSAGES: `INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
    SELECT ?, ? + k.n, m.role, m.metadata, m.payload, m.run_id, m.created_at
    FROM (SELECT seq, ROW_NUMBER() OVER (ORDER BY seq) AS n FROM cubepi_messages m WHERE ${TAKEN}) k
    JOIN cubepi_messages m ON m.thread_id = ? AND m.seq = k.seq`,
  FORK_RUNS: `INSERT INTO cubepi_runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
    SELECT ?, run_id, claimed_at, completed_at, completion_seq FROM cubepi_runs
    WHERE thread_id = ? AND completion_seq <= ?`,
  FORK_THREAD: "UPDATE cubepi_threads SET parent_thread_id = ?, extra = ?, forked_at_seq = ? WHERE thread_id = ?",

  ANSWER: `SELECT thread_id, run_id, question_id, CAST(answer AS CHAR) AS json FROM cubepi_hitl_answers
    WHERE thread_id = ? AND run_id = ? AND question_id = ?`,
  ANSWERS: `SELECT thread_id, run_id, question_id, CAST(answer AS CHAR) AS json FROM cubepi_hitl_answers
    WHERE thread_id = ? ORDER BY CAST(run_id AS BINARY), CAST(question_id AS BINARY)`,
  SAVE_ANSWER: `INSERT INTO cubepi_hitl_answers (thread_id, run_id, question_id, answer) VALUES (?, ?, ?, ?)
    ON DUPLICATE KEY UPDATE answer = VALUES(answer), answered_at = CURRENT_TIMESTAMP`,
  DELETE_ANSWERS: "DELETE FROM cubepi_hitl_answers WHERE thread_id = ? AND CAST(run_id AS BINARY) = CAST(? AS BINARY)",
  DELETE_ANSWER: `DELETE FROM cubepi_hitl_answers WHERE thread_id = ? AND CAST(run_id AS BINARY) = CAST(? AS BINARY)
    AND CAST(question_id AS BINARY) = CAST(? AS BINARY)`,

  THREADS_AFTER: `${THREAD_INFO} AND t.thread_id > ? AND t.thread_id >= ? ORDER BY t.thread_id LIMIT ?`,
  /** The same in tables that order ids otherwise: by their bytes, at the cost of a sort. */
  THREADS_AFTER_BY_BYTES: `${THREAD_INFO} AND CAST(t.thread_id AS BINARY) > CAST(? AS BINARY)
    AND CAST(t.thread_id AS BINARY) >= CAST(? AS BINARY) ORDER BY CAST(t.thread_id AS BINARY) LIMIT ?`,

  // A fork outlives its parent: the foreign key would hold the parent back.
  ORPHAN_FORKS: `UPDATE cubepi_threads SET parent_thread_id = NULL, updated_at = updated_at
    WHERE parent_thread_id = ?`,
  DELETE_MESSAGES: "DELETE FROM cubepi_messages WHERE thread_id = ?",
  DELETE_RUNS: "DELETE FROM cubepi_runs WHERE thread_id = ?",
  DELETE_ALL_ANSWERS: "DELETE FROM cubepi_hitl_answers WHERE thread_id = ?",
  DELETE_THREAD: "DELETE FROM cubepi_threads WHERE thread_id = ?",

  COLUMNS: `SELECT c.table_name AS table_name, c.column_name AS column_name, c.character_set_name AS character_set_name,
      c.collation_name AS collation_name, t.engine AS engine
    FROM information_schema.columns c JOIN information_schema.tables t
      ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    WHERE c.table_schema = DATABASE() AND c.table_name IN (?, ?, ?, ?, ?)`,
  VERSION: "SELECT version FROM cubepi_schema_version ORDER BY version",
} as const;

export type Queries = { readonly [name in keyof typeof QUERIES]: string };

/** The queries on tables of this prefix, which was checked. */
export function queriesFor(prefix: string): Queries {
  const entries = Object.entries(QUERIES).map(([name, sql]) => [name, sql.replaceAll("cubepi_", prefix)]);
  return Object.fromEntries(entries) as Queries;
}

/** The names of the tables, in the order of the parameters of COLUMNS. */
export function tablesOf(prefix: string): string[] {
  return ["threads", "messages", "runs", "hitl_answers", "schema_version"].map((table) => `${prefix}${table}`);
}
