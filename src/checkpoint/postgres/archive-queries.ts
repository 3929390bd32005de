/**
 * The queries of archives. A compaction moves no message: an archive is a mark in a thread's log, which holds the messages
 * after the archive before it, up to `up_to_seq`. The archives of a thread are numbered from 1 without gaps.
 */
import { FIRST_IS_SOMETHING, POSITION, TAKEN } from "./queries.ts";

/**
 * The last archive of a thread. None when the log is not the one that the archives are of: where another program has
 * deleted a thread's messages and left its row, seq begins at 1 again, and no archive may hide what is written then.
 *
 * @param id the thread, in SQL
 */
export const lastOf = (
  id: string,
) => `(SELECT l.* FROM (SELECT a.archive_no, a.up_to_seq, a.up_to_created_at, a.at_seq, a.summary
      FROM everthread_archives a WHERE a.thread_id = ${id} ORDER BY a.archive_no DESC LIMIT 1) AS l
    WHERE l.up_to_seq <= coalesce((SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = ${id}), 0)
      AND NOT EXISTS (SELECT FROM cubepi_messages m
        WHERE m.thread_id = ${id} AND m.seq = l.up_to_seq AND m.created_at <> l.up_to_created_at))`;
const LAST = lastOf("$1");
const ms = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;
const MADE_AT = ms("made.created_at");
const MESSAGE_AT = ms("m.created_at");
const ARCHIVED_AT = ms("r.created_at");
const PRUNED_AT = ms("r.pruned_at");
const LOST_AT = ms("p.pruned_at");
const MESSAGE = "m.seq, m.role, m.metadata::text, encode(m.payload, 'base64') AS payload";

/** $1 thread, $2 after or null. */
export const LOAD_THREAD = `SELECT ${POSITION} AS base, t.extra::text, t.parent_thread_id,
    (SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = $1) AS last,
    ($2::bigint = 0 AND a.archive_no IS NULL) OR EXISTS (SELECT FROM cubepi_messages m
      WHERE m.thread_id = $1 AND m.seq = $2::bigint - ${POSITION} AND m.seq > coalesce(a.up_to_seq, 0)) AS tail,
    a.summary, a.up_to_seq, a.at_seq
  FROM cubepi_threads t LEFT JOIN ${LAST} AS a ON true WHERE t.thread_id = $1`;
/** $1 thread, $2 after or null: what follows it when it is a position of the active context, else all of that. */
export const LOAD_MESSAGES = `WITH cut AS MATERIALIZED (SELECT coalesce((SELECT a.up_to_seq FROM ${LAST} AS a), 0) AS seq)
  SELECT ${MESSAGE} FROM cubepi_messages m
  WHERE m.thread_id = $1 AND m.seq > coalesce((SELECT f.seq FROM cubepi_messages f
    WHERE f.thread_id = $1 AND f.seq > (SELECT seq FROM cut)
      AND f.seq = $2::bigint - (SELECT ${POSITION} FROM cubepi_threads t WHERE t.thread_id = $1)), (SELECT seq FROM cut))
  ORDER BY m.seq`;

/** Archives of another log than the thread's; comes before every write of archives. $1 thread. */
export const DELETE_STRAYS = `DELETE FROM everthread_archives WHERE thread_id = $1 AND NOT EXISTS (SELECT FROM ${LAST} AS a)`;
/** $1 thread. */
export const DELETE_STRAY_SOURCES = `DELETE FROM everthread_archive_sources WHERE thread_id = $1
  AND NOT EXISTS (SELECT FROM everthread_archives a WHERE a.thread_id = $1)`;

/** $1 thread, $2 expected revision or null, $3 the position up to which, $4 summary, $5 system prompt or null. */
export const COMPACT = `WITH
  stand AS MATERIALIZED (SELECT ${POSITION} AS base, t.extra,
      (SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = $1) AS last
    FROM cubepi_threads t WHERE t.thread_id = $1 AND ${FIRST_IS_SOMETHING}),
  before AS MATERIALIZED (SELECT a.archive_no, a.up_to_seq FROM ${LAST} AS a),
  place AS MATERIALIZED (SELECT m.seq, m.created_at FROM cubepi_messages m
    WHERE m.thread_id = $1 AND m.seq = $3::bigint - (SELECT base FROM stand)
      AND m.seq > coalesce((SELECT up_to_seq FROM before), 0)),
  made AS (INSERT INTO everthread_archives AS a
      (thread_id, archive_no, up_to_seq, up_to_created_at, at_seq, summary, system_prompt, extra, created_at)
    SELECT $1, coalesce((SELECT archive_no FROM before), 0) + 1, place.seq, place.created_at, stand.last, $4, $5::text,
      stand.extra, clock_timestamp()
    FROM stand, place WHERE $2::bigint IS NULL OR base + last = $2 RETURNING a.archive_no, a.created_at)
  SELECT stand.base, stand.last, (SELECT up_to_seq FROM before) AS compacted, made.archive_no, ${MADE_AT} AS created_at,
    (SELECT count(*) FROM cubepi_messages m, place
      WHERE m.thread_id = $1 AND m.seq > coalesce((SELECT up_to_seq FROM before), 0) AND m.seq <= place.seq) AS messages
  FROM (SELECT) AS one LEFT JOIN stand ON true LEFT JOIN made ON true`;

/** The archives of a thread, with the place before each. $1 thread. */
export const RANGES = `(SELECT a.*, lag(a.up_to_seq, 1, 0) OVER (ORDER BY a.archive_no) AS after_seq,
    lag(a.summary) OVER (ORDER BY a.archive_no) AS previous_summary
  FROM everthread_archives a WHERE a.thread_id = $1 AND EXISTS (SELECT FROM ${LAST} AS l))`;
const INFO = `t.base, r.archive_no, r.up_to_seq, r.at_seq, r.summary, ${ARCHIVED_AT} AS created_at, ${PRUNED_AT} AS pruned_at,
    (SELECT count(*) FROM cubepi_messages m WHERE m.thread_id = $1 AND m.seq > r.after_seq AND m.seq <= r.up_to_seq) AS messages`;
const BASE = `(SELECT ${POSITION} AS base FROM cubepi_threads t WHERE t.thread_id = $1) AS t`;

/** $1 thread, $2 the number of the archive before, $3 limit. */
export const LIST = `SELECT ${INFO} FROM ${RANGES} AS r, ${BASE} WHERE r.archive_no > $2 ORDER BY r.archive_no LIMIT $3`;
/** $1 thread, $2 number. */
export const READ = `SELECT ${INFO}, r.previous_summary, r.system_prompt, r.extra::text FROM ${RANGES} AS r, ${BASE}
  WHERE r.archive_no = $2`;
/** $1 thread, $2 number: its messages. */
export const READ_MESSAGES = `WITH r AS MATERIALIZED (SELECT r.after_seq, r.up_to_seq FROM ${RANGES} AS r WHERE r.archive_no = $2)
  SELECT ${MESSAGE}, t.base + m.seq AS position, ${MESSAGE_AT} AS created_at
  FROM cubepi_messages m, ${BASE}
  WHERE m.thread_id = $1 AND m.seq > (SELECT after_seq FROM r) AND m.seq <= (SELECT up_to_seq FROM r) ORDER BY m.seq`;
/** $1 thread, $2 number, $3 a position: the archive, and the message there if it is in it. */
export const FETCH = `SELECT r.archive_no, ${PRUNED_AT} AS pruned_at, ${MESSAGE}, ${MESSAGE_AT} AS created_at
  FROM ${RANGES} AS r CROSS JOIN ${BASE} LEFT JOIN cubepi_messages m
    ON m.thread_id = $1 AND m.seq = $3::bigint - t.base AND m.seq > r.after_seq AND m.seq <= r.up_to_seq
  WHERE r.archive_no = $2`;

/** What retention goes by. $1 thread. */
export const RETENTION = `SELECT t.base, t.waiting, r.archive_no, ${PRUNED_AT} AS pruned_at,
    EXISTS (SELECT FROM cubepi_messages m WHERE m.thread_id = $1 AND m.run_id = t.waiting
      AND m.seq > r.after_seq AND m.seq <= r.up_to_seq) AS holds
  FROM ${RANGES} AS r, (SELECT ${POSITION} AS base, CASE WHEN t.pending_request IS NOT NULL THEN t.run_id END AS waiting
    FROM cubepi_threads t WHERE t.thread_id = $1) AS t ORDER BY r.archive_no`;
// $1 thread, $2 its base, $3 the run that waits or null, $4 numbers as JSON. None when it is not as retention found it.
const CHOSEN = `same AS MATERIALIZED (SELECT FROM cubepi_threads t WHERE t.thread_id = $1 AND ${POSITION} = $2
      AND CASE WHEN t.pending_request IS NOT NULL THEN t.run_id END IS NOT DISTINCT FROM $3::text),
  chosen AS MATERIALIZED (SELECT r.archive_no, r.after_seq, r.up_to_seq FROM ${RANGES} AS r, same
    WHERE r.pruned_at IS NULL AND r.archive_no IN (SELECT json_array_elements_text($4::json)::bigint))`;
const IN_CHOSEN = "x.thread_id = $1 AND x.seq > c.after_seq AND x.seq <= c.up_to_seq";
/** See CHOSEN; comes before PRUNE. */
export const PRUNE_SOURCES = `WITH ${CHOSEN} DELETE FROM everthread_archive_sources x USING chosen c WHERE ${IN_CHOSEN}`;
/** See CHOSEN. */
export const PRUNE = `WITH ${CHOSEN},
  gone AS (DELETE FROM cubepi_messages x USING chosen c WHERE ${IN_CHOSEN}),
  marked AS (UPDATE everthread_archives a SET pruned_at = clock_timestamp(), system_prompt = NULL, extra = '{}'
    FROM chosen c WHERE a.thread_id = $1 AND a.archive_no = c.archive_no RETURNING a.archive_no)
  SELECT EXISTS (SELECT FROM same) AS same, (SELECT coalesce(json_agg(archive_no ORDER BY archive_no), '[]') FROM marked) AS pruned`;

/** What a fork takes ends here: the seq of the last message of its runs. $1 thread, $2 run. */
export const CUT_SEQ = `(SELECT coalesce(max(m.seq), 0) FROM cubepi_messages m WHERE ${TAKEN} AND m.run_id IS NOT NULL)`;
const LIVE = `FROM everthread_archives a WHERE a.thread_id = $1 AND EXISTS (SELECT FROM ${LAST} AS l)`;
/** $1 thread, $2 run: the last archive that a fork keeps, and the first that it would need and that was pruned. */
export const KEPT = `WITH cut AS MATERIALIZED (SELECT ${CUT_SEQ} AS seq)
  SELECT k.summary, p.archive_no AS lost, ${LOST_AT} AS pruned_at
  FROM cut LEFT JOIN LATERAL (SELECT a.summary ${LIVE} AND a.up_to_seq <= cut.seq ORDER BY a.archive_no DESC LIMIT 1) AS k ON true
    LEFT JOIN LATERAL (SELECT a.archive_no, a.pruned_at ${LIVE} AND a.up_to_seq > cut.seq AND a.pruned_at IS NOT NULL
      ORDER BY a.archive_no LIMIT 1) AS p ON true`;
/** $1 thread, $2 run. */
export const SNAPSHOT = `SELECT ${MESSAGE} FROM cubepi_messages m
  WHERE ${TAKEN} AND m.seq > coalesce((SELECT max(a.up_to_seq) ${LIVE} AND a.up_to_seq <= ${CUT_SEQ}), 0) ORDER BY m.seq`;
/** A fork loses nothing that it would need. $1 thread, $2 run. */
export const NOTHING_LOST = `NOT EXISTS (SELECT ${LIVE} AND a.pruned_at IS NOT NULL AND a.up_to_seq > ${CUT_SEQ})`;
