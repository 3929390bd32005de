/**
 * The queries of archives. A compaction moves no message: an archive is a mark in a thread's log, which holds the messages
 * after the archive before it, up to `up_to_seq`. The archives of a thread are numbered from 1 without gaps.
 *
 * CubeLoop's own tables may compare texts otherwise than ours do, so no column of theirs is compared with one of ours but by
 * a collation that is named.
 */
import { BASE, TAKEN } from "./queries.ts";

const MESSAGE = "m.seq AS seq, m.role AS role, CAST(m.metadata AS CHAR) AS json, m.payload AS payload";
const COLUMNS =
  "thread_id, archive_no, up_to_seq, up_to_created_at, at_seq, summary, system_prompt, extra, created_at, pruned_at";
// A thread's last archive and the message that it ended with: one row each, by their keys, so that what they say is known
// before the messages are looked for. Parameters: the thread, three times.
const LAST = `LEFT JOIN everthread_archives l ON l.thread_id = ?
        AND l.archive_no = (SELECT MAX(archive_no) FROM everthread_archives WHERE thread_id = ?)
      LEFT JOIN cubepi_messages e ON e.thread_id = ? AND e.seq = l.up_to_seq`;
// Whether they count: see archive-marks.ts. Parameter: the thread.
const COUNTS = `(l.up_to_seq <= COALESCE((SELECT MAX(seq) FROM cubepi_messages WHERE thread_id = ?), 0)
      AND COALESCE(e.created_at = l.up_to_created_at, 1) = 1)`;

const QUERIES = {
  /** Parameters: the thread, twelve times, the position from which. */
  LOAD: `SELECT ${BASE} AS base, t.thread_id AS thread_id, t.parent_thread_id AS parent_thread_id, l.up_to_seq AS seq, NULL AS role,
      CAST(t.extra AS CHAR) AS json, NULL AS payload, l.summary AS summary, l.at_seq AS at_seq, ${COUNTS} AS counts,
      (SELECT MAX(seq) FROM cubepi_messages WHERE thread_id = ?) AS last
    FROM cubepi_threads t ${LAST} WHERE t.thread_id = ?
    UNION ALL SELECT NULL, NULL, NULL, m.seq, m.role, CAST(m.metadata AS CHAR), m.payload, NULL, NULL, NULL, NULL
    FROM cubepi_threads t ${LAST}
      JOIN cubepi_messages m ON m.thread_id = ? AND m.seq > IF(${COUNTS}, l.up_to_seq, 0)
    WHERE t.thread_id = ? AND m.seq >= CAST(? AS SIGNED) - ${BASE}`,
  /** What archives a thread has, and when the message was stored that each ended with. */
  MARKS: `SELECT archive_no, up_to_seq, UNIX_TIMESTAMP(up_to_created_at) AS up_to_created_at, at_seq,
      UNIX_TIMESTAMP(created_at) AS created_at, UNIX_TIMESTAMP(pruned_at) AS pruned_at
    FROM everthread_archives WHERE thread_id = ? ORDER BY archive_no`,
  STORED_AT: "SELECT UNIX_TIMESTAMP(created_at) AS created_at FROM cubepi_messages WHERE thread_id = ? AND seq = ?",
  COUNT: "SELECT COUNT(*) AS count FROM cubepi_messages WHERE thread_id = ? AND seq > ? AND seq <= ?",
  SEQS: "SELECT seq FROM cubepi_messages WHERE thread_id = ? ORDER BY seq",
  SUMMARIES: `SELECT archive_no, summary FROM everthread_archives WHERE thread_id = ? AND archive_no > ?
    ORDER BY archive_no LIMIT ?`,
  READ: `SELECT archive_no, summary, system_prompt, CAST(extra AS CHAR) AS json FROM everthread_archives
    WHERE thread_id = ? AND archive_no = ?`,
  MESSAGES: `SELECT ${MESSAGE}, UNIX_TIMESTAMP(m.created_at) AS created_at FROM cubepi_messages m
    WHERE m.thread_id = ? AND m.seq > ? AND m.seq <= ? ORDER BY m.seq`,

  COMPACT: `INSERT INTO everthread_archives (thread_id, archive_no, up_to_seq, up_to_created_at, at_seq, summary, system_prompt, extra)
    SELECT ?, ?, ?, (SELECT m.created_at FROM cubepi_messages m WHERE m.thread_id = ? AND m.seq = ?), ?, ?, ?, t.extra
    FROM cubepi_threads t WHERE t.thread_id = ?`,
  IMPORT: `INSERT INTO everthread_archives (${COLUMNS})
    VALUES (?, ?, ?, (SELECT m.created_at FROM cubepi_messages m WHERE m.thread_id = ? AND m.seq = ?), ?, ?, ?, ?,
      FROM_UNIXTIME(?), FROM_UNIXTIME(?))`,
  FORK: `INSERT INTO everthread_archives (${COLUMNS})
    SELECT ?, a.archive_no, ?, (SELECT m.created_at FROM cubepi_messages m WHERE m.thread_id = ? AND m.seq = ?), ?, a.summary,
      a.system_prompt, a.extra, a.created_at, a.pruned_at
    FROM everthread_archives a WHERE a.thread_id = ? AND a.archive_no = ?`,
  DELETE: "DELETE FROM everthread_archives WHERE thread_id = ?",

  HOLDS: `SELECT 1 AS found FROM cubepi_messages WHERE thread_id = ? AND run_id = ? AND CAST(run_id AS BINARY) = CAST(? AS BINARY)
    AND seq > ? AND seq <= ? LIMIT 1`,
  PRUNE_MESSAGES: "DELETE FROM cubepi_messages WHERE thread_id = ? AND seq > ? AND seq <= ?",
  PRUNE: `UPDATE everthread_archives SET pruned_at = CURRENT_TIMESTAMP(3), system_prompt = NULL, extra = '{}'
    WHERE thread_id = ? AND archive_no = ?`,

  /** Parameters of TAKEN, see there: what a fork takes. */
  TAKEN_SEQS: `SELECT m.seq AS seq, m.run_id IS NOT NULL AS of_run FROM cubepi_messages m WHERE ${TAKEN} ORDER BY m.seq`,
  /** Parameters of TAKEN, and after which seq. */
  TAKEN_AFTER: `SELECT ${MESSAGE} FROM cubepi_messages m WHERE ${TAKEN} AND m.seq > ? ORDER BY m.seq`,

  /** Parameters: the thread, up to which seq, limit. The newest first. */
  THREAD_KEYS: `SELECT m.seq AS seq, OCTET_LENGTH(m.payload) AS bytes FROM cubepi_messages m
    WHERE m.thread_id = ? AND m.seq <= ? ORDER BY m.seq DESC LIMIT ?`,
  /** Parameters: the second, thread and seq of the last key of the page before, limit. */
  STORE_KEYS: `SELECT a.thread_id AS thread_id, m.seq AS seq, UNIX_TIMESTAMP(m.created_at) AS at, OCTET_LENGTH(m.payload) AS bytes
    FROM (SELECT thread_id, MAX(up_to_seq) AS up_to_seq FROM everthread_archives GROUP BY thread_id) a
      STRAIGHT_JOIN cubepi_messages m ON m.thread_id = a.thread_id COLLATE /* theirs */ utf8mb4_bin AND m.seq <= a.up_to_seq
    WHERE CAST(m.thread_id AS BINARY) = CAST(a.thread_id AS BINARY)
      AND (UNIX_TIMESTAMP(m.created_at) < ? OR (UNIX_TIMESTAMP(m.created_at) = ? AND (a.thread_id < ? OR (a.thread_id = ? AND m.seq < ?))))
    ORDER BY m.created_at DESC, a.thread_id DESC, m.seq DESC LIMIT ?`,
  /** Parameter: keys as JSON. */
  SOURCES: `SELECT k.n AS n, ${MESSAGE}, UNIX_TIMESTAMP(m.created_at) AS created_at
    FROM JSON_TABLE(?, '$[*]' COLUMNS (n INT PATH '$[0]', seq BIGINT PATH '$[2]',
        thread_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE /* theirs */ utf8mb4_bin PATH '$[1]')) k
      STRAIGHT_JOIN cubepi_messages m ON m.thread_id = k.thread_id AND m.seq = k.seq`,

  TABLES: `SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name IN ('everthread_archives', 'everthread_archive_version')`,
  VERSION: "SELECT MAX(version) AS version FROM everthread_archive_version",
} as const;

export type ArchiveQueries = { readonly [name in keyof typeof QUERIES]: string };

/**
 * The queries on tables of this prefix, which was checked.
 *
 * @param collation of `cubepi_messages.thread_id`, which the queries of search need (Default: any)
 */
export function archiveQueriesFor(prefix: string, collation = "utf8mb4_bin"): ArchiveQueries {
  const entries = Object.entries(QUERIES).map(([name, sql]) => [
    name,
    sql
      .replaceAll("cubepi_", prefix)
      .replaceAll("everthread_", archivePrefix(prefix))
      .replaceAll("/* theirs */ utf8mb4_bin", collation),
  ]);
  return Object.fromEntries(entries) as ArchiveQueries;
}

/** What the names of the tables of archives begin with. */
export function archivePrefix(prefix: string): string {
  return prefix === "cubepi_" ? "everthread_" : prefix;
}
