/** The queries of archives and their index. */

/** Changes with every table that is made or dropped, by whichever program. */
export const SCHEMA_COOKIE = "PRAGMA schema_version";
export const TABLES = `SELECT name FROM sqlite_master
  WHERE type = 'table' AND name IN ('everthread_archives', 'everthread_archive_index')`;
export const HAS_FTS5 = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'";

const INFO = "archive_no, up_to, at_revision, summary_json, created_at, pruned_at, scope";
export const LAST = `SELECT ${INFO} FROM everthread_archives WHERE thread_id = ? ORDER BY archive_no DESC LIMIT 1`;
export const ALL = `SELECT ${INFO} FROM everthread_archives WHERE thread_id = ? ORDER BY archive_no`;
export const AFTER = `SELECT ${INFO} FROM everthread_archives
  WHERE thread_id = ? AND archive_no > ? ORDER BY archive_no LIMIT ?`;
export const ONE = `SELECT ${INFO}, system_json, extra_json FROM everthread_archives
  WHERE thread_id = ? AND archive_no = ?`;
export const BEFORE = `SELECT up_to, summary_json FROM everthread_archives
  WHERE thread_id = ? AND archive_no < ? ORDER BY archive_no DESC LIMIT 1`;
/** The archive that holds a message. */
export const HOLDING = `SELECT archive_no FROM everthread_archives
  WHERE thread_id = ? AND up_to >= ? ORDER BY archive_no LIMIT 1`;
export const INSERT = `INSERT INTO everthread_archives
  (thread_id, archive_no, up_to, at_revision, summary_json, system_json, extra_json, created_at, pruned_at, scope)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
export const NEXT_SCOPE = "SELECT coalesce(max(scope), 0) + 1 AS scope FROM everthread_archives";
export const MARK_PRUNED = `UPDATE everthread_archives SET pruned_at = ?, system_json = 'null', extra_json = '{}'
  WHERE thread_id = ? AND archive_no = ?`;
export const DELETE_ALL = "DELETE FROM everthread_archives WHERE thread_id = ?";

export const COUNT_BETWEEN = "SELECT count(*) AS count FROM messages WHERE thread_id = ? AND id > ? AND id <= ?";
export const LOG_BETWEEN = `SELECT id, message_json, created_at FROM messages
  WHERE thread_id = ? AND id > ? AND id <= ? ORDER BY id`;
export const LOG_BETWEEN_LIMITED = `${LOG_BETWEEN} LIMIT ?`;
export const RUN_IS_BETWEEN = `SELECT EXISTS (SELECT 1 FROM messages
  WHERE thread_id = ? AND id > ? AND id <= ? AND run_id = ?) AS found`;
export const DELETE_BETWEEN = "DELETE FROM messages WHERE thread_id = ? AND id > ? AND id <= ?";
export const MESSAGE_BETWEEN = `SELECT id, message_json, created_at FROM messages
  WHERE thread_id = ? AND id = ? AND id > ? AND id <= ?`;
/** The nth message of a thread, from 0. */
export const NTH_MESSAGE = "SELECT id FROM messages WHERE thread_id = ? ORDER BY id LIMIT 1 OFFSET ?";
export const COUNT = "SELECT count(*) AS count FROM messages WHERE thread_id = ?";

/** The last message of the completed runs up to the cut. */
export const CUT_POSITION = `SELECT max(id) AS position FROM messages WHERE thread_id = :source AND run_id IN (
  SELECT run_id FROM runs WHERE thread_id = :source AND completion_seq <= :cut)`;
/** How many of the messages that a fork takes stand up to a position. */
export const TAKEN_UP_TO = `SELECT count(*) AS count FROM messages WHERE thread_id = :source AND id <= :position AND (
  run_id IS NULL OR run_id IN (SELECT run_id FROM runs WHERE thread_id = :source AND completion_seq <= :cut))`;

export const INDEX = "INSERT INTO everthread_archive_index (rowid, scope, text) VALUES (?, ?, ?)";
export const UNINDEX = `DELETE FROM everthread_archive_index WHERE rowid IN (
  SELECT id FROM messages WHERE thread_id = ? AND id > ? AND id <= ?)`;
/** Every archived message, for an index that is made anew. */
export const ARCHIVED_AFTER = `SELECT m.id, m.thread_id, m.message_json, a.scope FROM messages m
  JOIN everthread_archives a ON a.thread_id = m.thread_id AND a.archive_no = (
    SELECT archive_no FROM everthread_archives WHERE thread_id = m.thread_id AND up_to >= m.id ORDER BY archive_no LIMIT 1)
  WHERE m.id > ? ORDER BY m.id LIMIT ?`;
export const COUNT_ARCHIVED = `SELECT count(*) AS count FROM messages m WHERE EXISTS (
  SELECT 1 FROM everthread_archives WHERE thread_id = m.thread_id AND up_to >= m.id)`;

const SOURCE = "m.id, m.thread_id, m.message_json, m.created_at";
/** Candidates by the index, newest first, within a window of ids. */
export const CANDIDATES = `SELECT ${SOURCE} FROM everthread_archive_index i JOIN messages m ON m.id = i.rowid
  WHERE everthread_archive_index MATCH :match AND i.rowid >= :from AND i.rowid < :before ORDER BY i.rowid DESC`;
/** All archived messages in a window of ids, newest first: of one thread, or with null of all. */
export const SOURCES_OF_THREAD = `SELECT ${SOURCE} FROM messages m
  WHERE m.thread_id = :thread AND m.id >= :from AND m.id < :before AND (:raw IS NULL OR instr(m.message_json, :raw) > 0
    OR instr(m.message_json, '\\u') > 0 OR instr(m.message_json, '\\/') > 0) ORDER BY m.id DESC`;
export const SOURCES = `SELECT ${SOURCE} FROM messages m
  WHERE m.id >= :from AND m.id < :before AND (:raw IS NULL OR instr(m.message_json, :raw) > 0
    OR instr(m.message_json, '\\u') > 0 OR instr(m.message_json, '\\/') > 0) ORDER BY m.id DESC`;
export const LAST_ID = "SELECT coalesce(max(id), 0) AS id FROM messages";
