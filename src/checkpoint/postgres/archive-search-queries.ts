/**
 * The queries of search and of its index. A search first asks for keys, the newest first, a page at a time: of all that is
 * archived, or, where there is an index, of what has the text in it and of what the index does not hold yet. Then it reads
 * the messages of a few keys at a time.
 */
import { lastOf, RANGES } from "./archive-queries.ts";
import { POSITION } from "./queries.ts";

const LAST = lastOf("$1");
const LAST_OF_EACH = lastOf("ids.thread_id");
// A moment to the microsecond, as text in which it can be handed back.
const EXACT = "to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00')";

// Archives whose messages the index does not hold yet.
const TO_INDEX = "NOT a.indexed AND a.pruned_at IS NULL";
const IN_ARCHIVE = `m.seq <= a.up_to_seq AND m.seq > coalesce((SELECT max(b.up_to_seq) FROM everthread_archives b
      WHERE b.thread_id = a.thread_id AND b.archive_no < a.archive_no), 0)`;

/** $1 thread, $2 the seq to go on before or null, $3 limit. */
export const THREAD_KEYS = `SELECT m.thread_id, m.seq, octet_length(m.payload) AS bytes FROM cubepi_messages m
  WHERE m.thread_id = $1 AND m.seq <= (SELECT up_to_seq FROM ${LAST} AS l) AND ($2::bigint IS NULL OR m.seq < $2)
  ORDER BY m.seq DESC LIMIT $3`;
/** The same, $4 what LIKE looks for. */
export const THREAD_KEYS_BY_INDEX = `WITH found AS MATERIALIZED (
    SELECT s.seq FROM everthread_archive_sources s WHERE s.folded LIKE $4 AND s.thread_id = $1
    UNION SELECT m.seq FROM everthread_archives a JOIN cubepi_messages m ON m.thread_id = $1 AND ${IN_ARCHIVE}
      WHERE a.thread_id = $1 AND ${TO_INDEX})
  SELECT m.thread_id, m.seq, octet_length(m.payload) AS bytes FROM found JOIN cubepi_messages m ON m.thread_id = $1 AND m.seq = found.seq
  WHERE $2::bigint IS NULL OR m.seq < $2 ORDER BY m.seq DESC LIMIT $3`;

const AFTER = "($1::timestamptz IS NULL OR (m.created_at, m.thread_id, m.seq) < ($1, $2::text, $3::bigint))";
const NEWEST = `ORDER BY m.created_at DESC, m.thread_id DESC, m.seq DESC LIMIT $4`;
const KEY = `m.thread_id, m.seq, ${EXACT} AS at, octet_length(m.payload) AS bytes`;
/** $1 to $3 the moment, thread and seq to go on before or nulls, $4 limit. */
export const STORE_KEYS = `SELECT ${KEY} FROM (SELECT a.thread_id, max(a.up_to_seq) AS up_to_seq FROM everthread_archives a GROUP BY a.thread_id) AS a
    JOIN cubepi_messages m ON m.thread_id = a.thread_id AND m.seq <= a.up_to_seq
  WHERE ${AFTER} ${NEWEST}`;
/** The same, $5 what LIKE looks for. */
export const STORE_KEYS_BY_INDEX = `WITH found AS MATERIALIZED (
    SELECT s.thread_id, s.seq FROM everthread_archive_sources s WHERE s.folded LIKE $5
    UNION SELECT m.thread_id, m.seq FROM everthread_archives a JOIN cubepi_messages m ON m.thread_id = a.thread_id AND ${IN_ARCHIVE}
      WHERE ${TO_INDEX})
  SELECT ${KEY} FROM found JOIN cubepi_messages m ON m.thread_id = found.thread_id AND m.seq = found.seq
  WHERE ${AFTER} ${NEWEST}`;

/** $1 thread ids as JSON: those whose archives count, and what positions there have above seq. */
export const THREADS = `WITH ids AS MATERIALIZED (SELECT DISTINCT json_array_elements_text($1::json) AS thread_id)
  SELECT ids.thread_id, (SELECT ${POSITION} FROM cubepi_threads t WHERE t.thread_id = ids.thread_id) AS base
  FROM ids WHERE EXISTS (SELECT FROM ${LAST_OF_EACH} AS l)`;
/** $1 keys as JSON: the archived messages of these keys, in their order. */
export const SOURCES = `SELECT k.thread_id, m.seq, a.archive_no, m.role, m.metadata::text, encode(m.payload, 'base64') AS payload,
    (extract(epoch FROM m.created_at) * 1000)::float8 AS created_at
  FROM json_to_recordset($1::json) AS k (n int, thread_id text, seq bigint)
    CROSS JOIN LATERAL (SELECT m.* FROM cubepi_messages m WHERE m.thread_id = k.thread_id AND m.seq = k.seq OFFSET 0) AS m
    CROSS JOIN LATERAL (SELECT a.archive_no FROM everthread_archives a WHERE a.thread_id = k.thread_id AND a.up_to_seq >= k.seq
      ORDER BY a.archive_no LIMIT 1) AS a
  ORDER BY k.n`;

/** The archives of a thread that the index does not hold yet. $1 thread. */
export const UNINDEXED = `SELECT a.archive_no, a.up_to_seq FROM ${RANGES} AS a WHERE ${TO_INDEX} ORDER BY a.archive_no`;
/** $1 thread, $2 number: the keys of its messages. */
export const ARCHIVE_KEYS = `SELECT m.thread_id, m.seq, octet_length(m.payload) AS bytes
  FROM ${RANGES} AS a JOIN cubepi_messages m ON m.thread_id = $1 AND m.seq > a.after_seq AND m.seq <= a.up_to_seq
  WHERE a.archive_no = $2 ORDER BY m.seq`;
/** $1 thread, $2 sources as JSON. One that retention or a deletion has removed meanwhile stays away. */
export const ADD_SOURCES = `INSERT INTO everthread_archive_sources AS s (thread_id, seq, folded)
  SELECT $1, m.seq, k.folded FROM json_to_recordset($2::json) AS k (position bigint, folded text), cubepi_messages m,
    (SELECT ${POSITION} AS base FROM cubepi_threads t WHERE t.thread_id = $1) AS t
  WHERE m.thread_id = $1 AND m.seq = k.position - t.base
  ON CONFLICT (thread_id, seq) DO UPDATE SET folded = EXCLUDED.folded`;
/** $1 thread, $2 number, $3 where it ends. */
export const SET_INDEXED = `UPDATE everthread_archives SET indexed = true
  WHERE thread_id = $1 AND archive_no = $2 AND up_to_seq = $3`;
