/**
 * The hot queries, named. A parameter is `?`, bound in order, or where it is used more than once `:name`: the oldest
 * supported Node can't bind `?1` in order.
 */

export const REVISION = "SELECT max(id) AS revision FROM messages WHERE thread_id = ?";
export const HAS_POSITION = "SELECT 1 FROM messages WHERE id = ? AND thread_id = ?";
export const MESSAGES_AFTER = "SELECT id, message_json FROM messages WHERE thread_id = ? AND id > ? ORDER BY id";
export const LOG_AFTER =
  "SELECT id, message_json, created_at FROM messages WHERE thread_id = ? AND id > ? ORDER BY id LIMIT ?";
export const INSERT_MESSAGE = "INSERT INTO messages (thread_id, message_json, run_id) VALUES (?, ?, ?)";

export const EXTRA = "SELECT extra_json, parent_thread_id FROM thread_extra WHERE thread_id = ?";
export const SAVE_EXTRA = `INSERT INTO thread_extra (thread_id, extra_json) VALUES (?, ?)
  ON CONFLICT (thread_id) DO UPDATE SET extra_json = excluded.extra_json`;
export const INSERT_FORK_EXTRA = "INSERT INTO thread_extra (thread_id, extra_json, parent_thread_id) VALUES (?, ?, ?)";

export const RUN = "SELECT completed_at, completion_seq FROM runs WHERE thread_id = ? AND run_id = ?";
export const INSERT_RUN = "INSERT INTO runs (thread_id, run_id) VALUES (?, ?)";
export const COMPLETE_RUN = `UPDATE runs SET completed_at = julianday('now'), completion_seq =
    (SELECT coalesce(max(completion_seq), 0) + 1 FROM runs WHERE thread_id = :thread)
  WHERE thread_id = :thread AND run_id = :run`;
export const RUNS_AFTER = `SELECT run_id, claimed_at, completed_at, completion_seq FROM runs
  WHERE thread_id = ? AND run_id > ? ORDER BY run_id LIMIT ?`;

// What a fork takes: rows of completed runs up to the cut, and rows written before runs existed.
const TAKEN = `thread_id = :source AND (run_id IS NULL OR run_id IN (
    SELECT run_id FROM runs WHERE thread_id = :source AND completion_seq <= :cut))`;
export const SNAPSHOT = `SELECT id, message_json FROM messages WHERE ${TAKEN} AND id > :start ORDER BY id`;
export const FORK_MESSAGES = `INSERT INTO messages (thread_id, message_json, created_at, run_id)
  SELECT :target, message_json, created_at, run_id FROM messages WHERE ${TAKEN} ORDER BY id`;
export const FORK_RUNS = `INSERT INTO runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
  SELECT :target, run_id, claimed_at, completed_at, completion_seq FROM runs WHERE thread_id = :source AND completion_seq <= :cut`;

export const THREAD_EXISTS = `SELECT EXISTS (SELECT 1 FROM messages WHERE thread_id = :thread)
  OR EXISTS (SELECT 1 FROM thread_extra WHERE thread_id = :thread)
  OR EXISTS (SELECT 1 FROM runs WHERE thread_id = :thread)
  OR EXISTS (SELECT 1 FROM thread_pending_request WHERE thread_id = :thread)
  OR EXISTS (SELECT 1 FROM thread_hitl_answers WHERE thread_id = :thread) AS found`;

export const PENDING = "SELECT request_json, run_id FROM thread_pending_request WHERE thread_id = ?";
export const SAVE_PENDING = `INSERT OR REPLACE INTO thread_pending_request (thread_id, request_json, run_id)
  VALUES (?, ?, ?)`;
export const DELETE_PENDING = "DELETE FROM thread_pending_request WHERE thread_id = ?";
export const DELETE_PENDING_IF_MATCHES = `DELETE FROM thread_pending_request
  WHERE thread_id = ? AND json_extract(request_json, '$.question_id') = ? AND run_id IS ?`;

export const SAVE_ANSWER = `INSERT OR REPLACE INTO thread_hitl_answers (thread_id, run_id, question_id, answer_json)
  VALUES (?, ?, ?, ?)`;
export const ANSWER =
  "SELECT answer_json FROM thread_hitl_answers WHERE thread_id = ? AND run_id = ? AND question_id = ?";
export const ANSWERS = `SELECT run_id, question_id, answer_json FROM thread_hitl_answers
  WHERE thread_id = ? ORDER BY run_id, question_id`;
export const DELETE_ANSWERS = "DELETE FROM thread_hitl_answers WHERE thread_id = ? AND run_id = ?";
export const DELETE_ANSWER = `${DELETE_ANSWERS} AND question_id = ?`;

// The next thread id of the file: one look into each index, however many messages a thread has.
export const NEXT_THREAD = `SELECT min(thread_id) AS thread_id FROM (
  SELECT min(thread_id) AS thread_id FROM messages WHERE thread_id > :after
  UNION ALL SELECT min(thread_id) FROM thread_extra WHERE thread_id > :after
  UNION ALL SELECT min(thread_id) FROM thread_pending_request WHERE thread_id > :after
  UNION ALL SELECT min(thread_id) FROM thread_hitl_answers WHERE thread_id > :after
  UNION ALL SELECT min(thread_id) FROM runs WHERE thread_id > :after)`;
export const THREAD_INFO = `SELECT count(*) AS count, coalesce(max(id), 0) AS revision,
    (SELECT created_at FROM messages WHERE thread_id = :thread ORDER BY id LIMIT 1) AS created_at,
    (SELECT created_at FROM messages WHERE thread_id = :thread ORDER BY id DESC LIMIT 1) AS updated_at,
    (SELECT parent_thread_id FROM thread_extra WHERE thread_id = :thread) AS parent_thread_id,
    EXISTS (SELECT 1 FROM thread_pending_request WHERE thread_id = :thread) AS pending
  FROM messages WHERE thread_id = :thread`;

export const IMPORT_MESSAGE = "INSERT INTO messages (thread_id, message_json, created_at, run_id) VALUES (?, ?, ?, ?)";
export const IMPORT_RUN = `INSERT OR REPLACE INTO runs (thread_id, run_id, claimed_at, completed_at, completion_seq)
  VALUES (?, ?, ?, ?, ?)`;
export const IMPORT_PARENT = `INSERT INTO thread_extra (thread_id, extra_json, parent_thread_id) VALUES (?, '{}', ?)
  ON CONFLICT (thread_id) DO UPDATE SET parent_thread_id = excluded.parent_thread_id`;
export const DELETE_LEDGER = "DELETE FROM thread_hitl_answers WHERE thread_id = ?";

/** Everything a thread has, for its erasure. */
export const DELETE_THREAD = ["messages", "thread_extra", "thread_pending_request", "thread_hitl_answers", "runs"].map(
  (table) => `DELETE FROM ${table} WHERE thread_id = ?`,
);
