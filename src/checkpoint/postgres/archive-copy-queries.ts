/** The queries that put archives of another thread, or of another store, into a thread. Each follows the statement that has written the thread. */
import { CUT_SEQ, lastOf, NOTHING_LOST } from "./archive-queries.ts";
import { fork, TAKEN } from "./queries.ts";

// Whether the statement before, of this transaction, has written the thread's row: one that was refused has not.
const written = (id: string) =>
  `EXISTS (SELECT FROM cubepi_threads t WHERE t.thread_id = ${id} AND t.xmin = pg_catalog.pg_current_xact_id()::xid)`;
const THREAD_IS_WRITTEN = written("$1");
const TARGET_IS_WRITTEN = written("$3");
const SOURCES_LAST = lastOf("$1");
const COLUMNS = `thread_id, archive_no, up_to_seq, up_to_created_at, at_seq, summary, system_prompt, extra, indexed,
    created_at, pruned_at`;

/** As FORK without archives, unless retention has removed what the fork would need. */
export const FORK = fork(NOTHING_LOST);

// The messages that a fork takes, and the seq of each there. $1 source, $2 run.
const NUMBERED = `(SELECT m.seq, m.created_at, row_number() OVER (ORDER BY m.seq) AS n FROM cubepi_messages m WHERE ${TAKEN})`;
/** $1 source, $2 run, $3 target. A place in the target is how many messages it has up to there. */
export const FORK_ARCHIVES = `WITH numbered AS MATERIALIZED (SELECT * FROM ${NUMBERED} AS n),
  kept AS MATERIALIZED (SELECT a.* FROM everthread_archives a WHERE a.thread_id = $1 AND ${TARGET_IS_WRITTEN}
    AND a.up_to_seq <= ${CUT_SEQ} AND EXISTS (SELECT FROM ${SOURCES_LAST} AS l)),
  marks AS (SELECT n.seq, 'message' AS is, NULL::bigint AS archive_no FROM numbered n
    UNION ALL SELECT k.up_to_seq, 'end', k.archive_no FROM kept k UNION ALL SELECT k.at_seq, 'stand', k.archive_no FROM kept k),
  places AS MATERIALIZED (SELECT marks.is, marks.archive_no, count(*) FILTER (WHERE marks.is = 'message') OVER (ORDER BY marks.seq) AS seq
    FROM marks)
  INSERT INTO everthread_archives (${COLUMNS})
  SELECT $3, k.archive_no, ends.seq, n.created_at, stands.seq, k.summary, k.system_prompt, k.extra, k.indexed, k.created_at, k.pruned_at
  FROM kept k JOIN places ends ON ends.archive_no = k.archive_no AND ends.is = 'end'
    JOIN places stands ON stands.archive_no = k.archive_no AND stands.is = 'stand' LEFT JOIN numbered n ON n.n = ends.seq`;
/** The same, after it. */
export const FORK_SOURCES = `INSERT INTO everthread_archive_sources (thread_id, seq, folded)
  SELECT $3, n.n, s.folded FROM ${NUMBERED} AS n JOIN everthread_archive_sources s ON s.thread_id = $1 AND s.seq = n.seq
  WHERE $2::text IS NOT NULL AND ${TARGET_IS_WRITTEN}
    AND n.n <= (SELECT max(a.up_to_seq) FROM everthread_archives a WHERE a.thread_id = $3)`;

/** $1 thread. */
export const DROP_ARCHIVES = `DELETE FROM everthread_archives WHERE thread_id = $1 AND ${THREAD_IS_WRITTEN}`;
/** $1 thread. */
export const DROP_SOURCES = `DELETE FROM everthread_archive_sources WHERE thread_id = $1 AND ${THREAD_IS_WRITTEN}`;
/** $1 thread, $2 archives as JSON: each ends at the thread's message of that number, and was made at another. */
export const IMPORT_ARCHIVES = `WITH numbered AS MATERIALIZED (SELECT m.seq, m.created_at, row_number() OVER (ORDER BY m.seq) AS n
    FROM cubepi_messages m WHERE m.thread_id = $1 AND $2::json ->> 0 IS NOT NULL AND ${THREAD_IS_WRITTEN})
  INSERT INTO everthread_archives (${COLUMNS})
  SELECT $1, a.archive_no, coalesce(ends.seq, 0), ends.created_at, coalesce(stands.seq, 0), a.summary, a.system_prompt, a.extra, false,
    a.created_at, a.pruned_at
  FROM json_to_recordset($2::json) AS a (archive_no bigint, ends bigint, stands bigint, summary text, system_prompt text,
      extra jsonb, created_at timestamptz, pruned_at timestamptz)
    LEFT JOIN numbered ends ON ends.n = a.ends
    LEFT JOIN numbered stands ON stands.n = least(a.stands, (SELECT max(n) FROM numbered))
  WHERE ${THREAD_IS_WRITTEN}`;
