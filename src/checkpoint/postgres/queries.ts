/**
 * The queries, named, on CubeLoop's table names (`tables.ts` puts the host's in their place). `thread_id = $1` is written
 * out in every part of a query: only then does Postgres plan for one partition and not for 64.
 *
 * Payloads are read as base64: a third shorter than the hex that Postgres writes otherwise, and read in half the time.
 *
 * A position in a thread's log, which is what a revision is, is the `seq` of the row added to the microsecond at which the
 * thread was begun. CubeLoop numbers from 1 again when a thread is deleted and begun anew; time does not.
 */
export const POSITION = "(extract(epoch FROM t.created_at) * 1000000)::bigint";

// Whether anything is stored of a thread. A row of cubepi_threads alone is none: it stays when a request is taken back.
const something = (id: string) => `(t.extra <> '{}' OR t.pending_request IS NOT NULL OR t.parent_thread_id IS NOT NULL
  OR EXISTS (SELECT FROM cubepi_messages m WHERE m.thread_id = ${id})
  OR EXISTS (SELECT FROM cubepi_runs r WHERE r.thread_id = ${id})
  OR EXISTS (SELECT FROM cubepi_hitl_answers a WHERE a.thread_id = ${id}))`;
export const FIRST_IS_SOMETHING = something("$1");
const IT_IS_SOMETHING = something("t.thread_id");

/** $1 thread. */
export const REVISION = `SELECT coalesce(${POSITION} + (SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = $1), 0) AS revision
  FROM cubepi_threads t WHERE t.thread_id = $1`;
const ACTUAL = `coalesce((${REVISION}), 0)`;
// $1 thread, $2 the expected revision or null. No row when the thread stands elsewhere.
const VERDICT = `verdict AS MATERIALIZED (SELECT ${ACTUAL} AS actual),
  allowed AS MATERIALIZED (SELECT FROM verdict WHERE $2::bigint IS NULL OR actual = $2)`;

/** $1 thread, $2 after or null. */
export const LOAD_THREAD = `SELECT ${POSITION} AS base, t.extra::text, t.parent_thread_id,
    (SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = $1) AS last,
    $2::bigint = 0 OR EXISTS (SELECT FROM cubepi_messages m WHERE m.thread_id = $1 AND m.seq = $2::bigint - ${POSITION}) AS tail
  FROM cubepi_threads t WHERE t.thread_id = $1`;
/**
 * $1 thread, $2 after or null: what follows it when it is a position of this log, else all. One look-up within the other
 * is planned in a fraction of the time that a join of the two takes.
 */
export const LOAD_MESSAGES = `SELECT m.seq, m.role, m.metadata::text, encode(m.payload, 'base64') AS payload FROM cubepi_messages m
  WHERE m.thread_id = $1 AND m.seq > coalesce((SELECT f.seq FROM cubepi_messages f
    WHERE f.thread_id = $1 AND f.seq = $2::bigint - (SELECT ${POSITION} FROM cubepi_threads t WHERE t.thread_id = $1)), 0)
  ORDER BY m.seq`;

/**
 * The most frequent query, so it is one that is planned in little time. $1 thread, $2 expected revision or null, $3 run ids of
 * the batch, $4 the payloads in one piece, $5 the rows as JSON, $6 those of the run ids that only an older program may have
 * claimed.
 */
const ALLOWED = `($2::bigint IS NULL OR coalesce(base + last, 0) = $2) AND completed = '{}'
      AND cardinality(claimed) = cardinality($6::text[])`;
export const APPEND = `WITH stand AS MATERIALIZED (SELECT
    (SELECT ${POSITION} FROM cubepi_threads t WHERE t.thread_id = $1) AS base,
    (SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = $1) AS last,
    ARRAY (SELECT r.run_id FROM cubepi_runs r
      WHERE r.thread_id = $1 AND r.run_id = ANY ($3::text[]) AND r.completed_at IS NOT NULL) AS completed,
    ARRAY (SELECT r.run_id FROM cubepi_runs r WHERE r.thread_id = $1 AND r.run_id = ANY ($6::text[])) AS claimed),
  begun AS (INSERT INTO cubepi_threads AS t (thread_id, created_at, updated_at)
    SELECT $1, clock_timestamp(), clock_timestamp() FROM stand WHERE base IS NULL AND ${ALLOWED}
    ON CONFLICT (thread_id) DO UPDATE SET updated_at = EXCLUDED.updated_at RETURNING ${POSITION} AS base),
  written AS (INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
    SELECT $1, coalesce(last, 0) + m.n, m.role, m.metadata, substring($4::bytea FROM m.start FOR m.length), m.run_id,
      clock_timestamp()
    FROM stand, json_to_recordset($5::json) AS m (n bigint, role text, metadata jsonb, start int, length int, run_id text)
    WHERE ${ALLOWED} RETURNING seq)
  SELECT coalesce(base + last, 0) AS actual, to_json(completed) AS completed, to_json(claimed) AS claimed,
    coalesce(base, (SELECT base FROM begun)) + (SELECT max(seq) FROM written) AS revision
  FROM stand`;
/** $1 thread, $2 a revision, $3 how many: the payloads that follow it, in one piece, and the revision of the last. */
export const STORED_AFTER = `SELECT string_agg(encode(f.payload, 'hex'), '' ORDER BY f.seq) AS payloads, max(f.position) AS revision
  FROM (SELECT m.seq, m.payload, ${POSITION} + m.seq AS position FROM cubepi_messages m, cubepi_threads t
    WHERE m.thread_id = $1 AND t.thread_id = $1 AND m.seq > CASE $2::bigint WHEN 0 THEN 0 ELSE $2::bigint - ${POSITION} END
    ORDER BY m.seq LIMIT $3) AS f`;

/** $1 thread, $2 expected revision or null, $3 extra. */
export const SAVE_EXTRA = `WITH ${VERDICT},
  saved AS (INSERT INTO cubepi_threads AS t (thread_id, extra, created_at, updated_at)
    SELECT $1, $3::jsonb, clock_timestamp(), clock_timestamp() FROM allowed
    ON CONFLICT (thread_id) DO UPDATE SET extra = t.extra || EXCLUDED.extra, updated_at = EXCLUDED.updated_at)
  SELECT actual FROM verdict`;

/** $1 thread, $2 run. */
export const CLAIM_RUN = `WITH
  run AS (SELECT r.completed_at IS NOT NULL AS completed FROM cubepi_runs r WHERE r.thread_id = $1 AND r.run_id = $2),
  thread AS (INSERT INTO cubepi_threads (thread_id, created_at, updated_at)
    SELECT $1, clock_timestamp(), clock_timestamp() WHERE NOT EXISTS (SELECT FROM run) ON CONFLICT (thread_id) DO NOTHING),
  claimed AS (INSERT INTO cubepi_runs (thread_id, run_id, claimed_at)
    SELECT $1, $2, clock_timestamp() WHERE NOT EXISTS (SELECT FROM run))
  SELECT (SELECT completed FROM run) AS completed`;
/** $1 thread, $2 run. */
export const COMPLETE_RUN = `WITH
  done AS (UPDATE cubepi_runs SET completed_at = clock_timestamp(), completion_seq =
      (SELECT coalesce(max(r.completion_seq), 0) + 1 FROM cubepi_runs r WHERE r.thread_id = $1)
    WHERE thread_id = $1 AND run_id = $2 AND completed_at IS NULL)
  SELECT EXISTS (SELECT FROM cubepi_runs r WHERE r.thread_id = $1 AND r.run_id = $2) AS claimed`;

/** $1 thread, $2 run: the completion number up to which a fork or snapshot takes runs. */
export const CUT = `SELECT ${FIRST_IS_SOMETHING} AS found,
    (SELECT r.completion_seq FROM cubepi_runs r WHERE r.thread_id = $1 AND r.run_id = $2) AS cut
  FROM cubepi_threads t WHERE t.thread_id = $1`;
// What a fork takes: rows of completed runs up to the cut, and rows written before runs existed. $1 source, $2 run.
export const TAKEN = `m.thread_id = $1 AND (m.run_id IS NULL OR m.run_id IN (
    SELECT r.run_id FROM cubepi_runs r WHERE r.thread_id = $1 AND r.completion_seq <=
      (SELECT c.completion_seq FROM cubepi_runs c WHERE c.thread_id = $1 AND c.run_id = $2)))`;
/** $1 thread, $2 run. */
export const SNAPSHOT = `SELECT m.seq, m.role, m.metadata::text, encode(m.payload, 'base64') AS payload FROM cubepi_messages m
  WHERE ${TAKEN} ORDER BY m.seq`;
/**
 * $1 source, $2 run, $3 target, $4 metadata or null. The rows of the target follow only once its thread is there.
 *
 * @param allowed a condition without which there is no fork
 */
export const fork = (allowed: string) => `WITH
  source AS (SELECT t.extra, (SELECT r.completion_seq FROM cubepi_runs r WHERE r.thread_id = $1 AND r.run_id = $2) AS cut
    FROM cubepi_threads t WHERE t.thread_id = $1 AND ${FIRST_IS_SOMETHING}),
  begun AS (INSERT INTO cubepi_threads AS t (thread_id, parent_thread_id, forked_at_seq, extra, created_at, updated_at)
    SELECT $3, $1, (SELECT max(m.seq) FROM cubepi_messages m WHERE ${TAKEN}),
      extra || CASE WHEN $4::jsonb IS NULL THEN '{}' ELSE jsonb_build_object('fork', $4::jsonb) END,
      clock_timestamp(), clock_timestamp()
    FROM source WHERE cut IS NOT NULL AND ${allowed} AND NOT EXISTS (SELECT FROM cubepi_messages m WHERE m.thread_id = $3)
      AND NOT EXISTS (SELECT FROM cubepi_runs r WHERE r.thread_id = $3)
      AND NOT EXISTS (SELECT FROM cubepi_hitl_answers a WHERE a.thread_id = $3)
    ON CONFLICT (thread_id) DO UPDATE SET parent_thread_id = EXCLUDED.parent_thread_id, extra = EXCLUDED.extra,
      forked_at_seq = EXCLUDED.forked_at_seq, created_at = EXCLUDED.created_at, updated_at = EXCLUDED.updated_at
    WHERE t.extra = '{}' AND t.pending_request IS NULL AND t.parent_thread_id IS NULL
    RETURNING t.thread_id),
  messages AS (INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
    SELECT begun.thread_id, row_number() OVER (ORDER BY m.seq), m.role, m.metadata, m.payload, m.run_id, m.created_at
    FROM cubepi_messages m, begun WHERE ${TAKEN}),
  runs AS (INSERT INTO cubepi_runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
    SELECT begun.thread_id, r.run_id, r.claimed_at, r.completed_at, r.completion_seq
    FROM cubepi_runs r, source, begun WHERE r.thread_id = $1 AND r.completion_seq <= source.cut)
  SELECT EXISTS (SELECT FROM source) AS found, (SELECT cut FROM source) AS cut, EXISTS (SELECT FROM begun) AS begun`;
export const FORK = fork("true");

/** $1 thread, $2 expected revision or null, $3 request, $4 run or null. */
export const SAVE_PENDING = `WITH ${VERDICT},
  saved AS (INSERT INTO cubepi_threads AS t (thread_id, pending_request, run_id, created_at, updated_at)
    SELECT $1, $3::jsonb, $4::text, clock_timestamp(), clock_timestamp() FROM allowed
    ON CONFLICT (thread_id) DO UPDATE SET pending_request = EXCLUDED.pending_request, run_id = EXCLUDED.run_id,
      updated_at = EXCLUDED.updated_at)
  SELECT actual FROM verdict`;
/** $1 thread, $2 expected revision or null. */
export const CLEAR_PENDING = `WITH ${VERDICT},
  cleared AS (UPDATE cubepi_threads SET pending_request = NULL, run_id = NULL, updated_at = clock_timestamp()
    FROM allowed WHERE thread_id = $1)
  SELECT actual FROM verdict`;
/** $1 thread. */
export const PENDING = `SELECT t.pending_request::text AS request, t.run_id FROM cubepi_threads t
  WHERE t.thread_id = $1 AND t.pending_request IS NOT NULL`;
/** $1 thread, $2 question as it stands in jsonb, $3 run or null, $4 what comes in its place or null. */
export const TAKE_PENDING = `UPDATE cubepi_threads SET pending_request = $4::jsonb,
    run_id = CASE WHEN $4::jsonb IS NULL THEN NULL ELSE run_id END, updated_at = clock_timestamp()
  WHERE thread_id = $1 AND pending_request->>'question_id' = $2 AND run_id IS NOT DISTINCT FROM $3
  RETURNING thread_id`;
/** As TAKE_PENDING, and $5 run or "", $6 question, $7 answer. */
export const ANSWER_PENDING = `WITH taken AS (${TAKE_PENDING}),
  saved AS (INSERT INTO cubepi_hitl_answers AS a (thread_id, run_id, question_id, answer, answered_at)
    SELECT taken.thread_id, $5, $6, $7::jsonb, clock_timestamp() FROM taken
    ON CONFLICT (thread_id, run_id, question_id) DO UPDATE SET answer = EXCLUDED.answer, answered_at = EXCLUDED.answered_at)
  SELECT thread_id FROM taken`;

/** $1 thread, $2 run or "", $3 question, $4 answer. */
export const SAVE_ANSWER = `WITH thread AS (INSERT INTO cubepi_threads (thread_id, created_at, updated_at)
    VALUES ($1, clock_timestamp(), clock_timestamp()) ON CONFLICT (thread_id) DO NOTHING)
  INSERT INTO cubepi_hitl_answers AS a (thread_id, run_id, question_id, answer, answered_at)
  VALUES ($1, $2, $3, $4::jsonb, clock_timestamp())
  ON CONFLICT (thread_id, run_id, question_id) DO UPDATE SET answer = EXCLUDED.answer, answered_at = EXCLUDED.answered_at`;
/** $1 thread, $2 run or "", $3 question. */
export const ANSWER = `SELECT a.answer::text FROM cubepi_hitl_answers a
  WHERE a.thread_id = $1 AND a.run_id = $2 AND a.question_id = $3`;
/** $1 thread. */
export const ANSWERS = `SELECT a.run_id, a.question_id, a.answer::text FROM cubepi_hitl_answers a
  WHERE a.thread_id = $1 ORDER BY a.run_id COLLATE "C", a.question_id COLLATE "C"`;
/** $1 thread, $2 run or "", $3 questions or null for all. */
export const DELETE_ANSWERS = `DELETE FROM cubepi_hitl_answers WHERE thread_id = $1 AND run_id = $2
  AND ($3::json IS NULL OR question_id IN (SELECT json_array_elements_text($3::json)))`;

/** $1 thread, $2 after, $3 limit. */
export const LOG_AFTER = `SELECT m.seq, ${POSITION} + m.seq AS position, m.role, m.metadata::text, encode(m.payload, 'base64') AS payload,
    (extract(epoch FROM m.created_at) * 1000)::float8 AS created_at
  FROM cubepi_messages m, cubepi_threads t
  WHERE m.thread_id = $1 AND t.thread_id = $1 AND m.seq > $2::bigint - ${POSITION} ORDER BY m.seq LIMIT $3`;
/**
 * $1 after, $2 prefix, $3 limit. In the order of code points, which UTF-8 keeps and collation "C" compares. OFFSET 0 keeps
 * the sort before the look at what each thread has, so that only a page of threads is looked at.
 */
export const THREADS_AFTER = `SELECT p.thread_id, p.parent_thread_id, p.pending, log.count,
    CASE log.count WHEN 0 THEN 0 ELSE p.base + log.last END AS revision,
    (extract(epoch FROM (SELECT m.created_at FROM cubepi_messages m WHERE m.thread_id = p.thread_id ORDER BY m.seq LIMIT 1)) * 1000)::float8 AS created_at,
    (extract(epoch FROM (SELECT m.created_at FROM cubepi_messages m WHERE m.thread_id = p.thread_id ORDER BY m.seq DESC LIMIT 1)) * 1000)::float8 AS updated_at
  FROM (SELECT t.thread_id, t.parent_thread_id, t.pending_request IS NOT NULL AS pending, ${POSITION} AS base
    FROM (SELECT t.* FROM cubepi_threads t WHERE t.thread_id COLLATE "C" > $1 AND starts_with(t.thread_id, $2)
      ORDER BY t.thread_id COLLATE "C" OFFSET 0) AS t
    WHERE ${IT_IS_SOMETHING} ORDER BY t.thread_id COLLATE "C" LIMIT $3) AS p
  CROSS JOIN LATERAL (SELECT count(*) AS count, max(m.seq) AS last FROM cubepi_messages m WHERE m.thread_id = p.thread_id) AS log
  ORDER BY p.thread_id COLLATE "C"`;
/** $1 thread, $2 after, $3 limit. */
export const RUNS_AFTER = `SELECT r.run_id, (extract(epoch FROM r.claimed_at) * 1000)::float8 AS claimed_at,
    (extract(epoch FROM r.completed_at) * 1000)::float8 AS completed_at, r.completion_seq
  FROM cubepi_runs r WHERE r.thread_id = $1 AND r.run_id COLLATE "C" > $2 ORDER BY r.run_id COLLATE "C" LIMIT $3`;

/**
 * $1 thread, $2 expected revision or null, $3 the payloads in one piece, $4 the rows, $5 runs, $6 parent or null, $7 extra or
 * null, $8 what becomes of the request: keep or put, $9 request or null, $10 its run or null, $11 the whole ledger or null,
 * $12 whether a thread that is not there is begun, $13 how many messages the thread must have by then. Lists are JSON. A
 * parent that is not here gets a row that holds nothing, which the foreign key wants.
 */
export const IMPORT = `WITH stand AS MATERIALIZED (SELECT
    (SELECT ${POSITION} FROM cubepi_threads t WHERE t.thread_id = $1) AS base,
    (SELECT max(m.seq) FROM cubepi_messages m WHERE m.thread_id = $1) AS last),
  counted AS MATERIALIZED (SELECT CASE WHEN $13::bigint > 0 THEN json_array_length($4::json)
    + (SELECT count(*) FROM cubepi_messages m WHERE m.thread_id = $1) END AS messages),
  allowed AS MATERIALIZED (SELECT base, coalesce(last, 0) AS last FROM stand
    WHERE ($2::bigint IS NULL OR coalesce(base + last, 0) = $2) AND coalesce((SELECT messages >= $13 FROM counted), true)),
  parent AS (INSERT INTO cubepi_threads (thread_id) SELECT $6::text FROM allowed WHERE $6::text IS NOT NULL AND $6::text <> $1
    ON CONFLICT (thread_id) DO NOTHING),
  thread AS (INSERT INTO cubepi_threads AS t
      (thread_id, parent_thread_id, extra, pending_request, run_id, created_at, updated_at)
    SELECT $1, $6::text, coalesce($7::jsonb, '{}'), $9::jsonb, $10::text, clock_timestamp(), clock_timestamp()
    FROM allowed WHERE base IS NOT NULL OR $12::boolean
    ON CONFLICT (thread_id) DO UPDATE SET parent_thread_id = coalesce(EXCLUDED.parent_thread_id, t.parent_thread_id),
      extra = t.extra || EXCLUDED.extra, updated_at = EXCLUDED.updated_at,
      pending_request = CASE $8::text WHEN 'keep' THEN t.pending_request ELSE EXCLUDED.pending_request END,
      run_id = CASE $8::text WHEN 'keep' THEN t.run_id ELSE EXCLUDED.run_id END
    RETURNING ${POSITION} AS base),
  messages AS (INSERT INTO cubepi_messages (thread_id, seq, role, metadata, payload, run_id, created_at)
    SELECT $1, last + m.n, m.role, m.metadata, substring($3::bytea FROM m.start FOR m.length), m.run_id, m.created_at
    FROM allowed, json_to_recordset($4::json)
      AS m (n bigint, role text, metadata jsonb, start int, length int, run_id text, created_at timestamptz)
    RETURNING seq),
  runs AS (INSERT INTO cubepi_runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
    SELECT $1, r.* FROM allowed, json_to_recordset($5::json)
      AS r (run_id text, claimed_at timestamptz, completed_at timestamptz, completion_seq bigint)
    ON CONFLICT (thread_id, run_id) DO UPDATE SET claimed_at = EXCLUDED.claimed_at, completed_at = EXCLUDED.completed_at,
      completion_seq = EXCLUDED.completion_seq),
  ledger AS MATERIALIZED (SELECT a.* FROM allowed, json_to_recordset($11::json) AS a (run_id text, question_id text, answer jsonb)),
  dropped AS (DELETE FROM cubepi_hitl_answers a USING allowed WHERE a.thread_id = $1 AND $11::json IS NOT NULL
    AND NOT EXISTS (SELECT FROM ledger WHERE ledger.run_id = a.run_id AND ledger.question_id = a.question_id)),
  answers AS (INSERT INTO cubepi_hitl_answers (thread_id, run_id, question_id, answer)
    SELECT $1, run_id, question_id, coalesce(answer, 'null') FROM ledger
    ON CONFLICT (thread_id, run_id, question_id) DO UPDATE SET answer = EXCLUDED.answer, answered_at = EXCLUDED.answered_at)
  SELECT coalesce(base + last, 0) AS actual,
    coalesce((SELECT base FROM thread), base) + (SELECT max(seq) FROM messages) AS revision,
    (SELECT messages FROM counted) AS messages
  FROM stand`;

/** Everything of a thread goes with its row; forks of it forget their parent, which the key would not let them keep. $1 thread. */
export const DELETE_THREAD = `WITH
  forks AS (UPDATE cubepi_threads SET parent_thread_id = NULL WHERE parent_thread_id = $1),
  gone AS (DELETE FROM cubepi_threads t WHERE t.thread_id = $1 RETURNING ${FIRST_IS_SOMETHING} AS something)
  SELECT something FROM gone`;

/** When the server was started, to the microsecond, and the database in it. Anyone may ask both. */
export const SERVER = `SELECT extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text AS started,
    (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) AS database`;
