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
/** The archive that holds a message, and where the one before it ends. */
export const HOLDING = `SELECT archive_no, up_to, coalesce((SELECT max(up_to) FROM everthread_archives
    WHERE thread_id = a.thread_id AND archive_no < a.archive_no), 0) AS start
  FROM everthread_archives a WHERE thread_id = ? AND up_to >= ? ORDER BY archive_no LIMIT 1`;
export const INSERT = `INSERT INTO everthread_archives
  (thread_id, archive_no, up_to, at_revision, summary_json, system_json, extra_json, created_at, pruned_at, scope)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
export const NEXT_SCOPE = "SELECT coalesce(max(scope), 0) + 1 AS scope FROM everthread_archives";
export const MARK_PRUNED = `UPDATE everthread_archives SET pruned_at = ?, system_json = 'null', extra_json = '{}'
  WHERE thread_id = ? AND archive_no = ?`;
export const KEEP_THREAD = `INSERT OR IGNORE INTO thread_extra (thread_id) SELECT :thread
  WHERE EXISTS (SELECT 1 FROM everthread_archives WHERE thread_id = :thread)
  AND NOT EXISTS (SELECT 1 FROM messages WHERE thread_id = :thread)`;
export const DELETE_ALL = "DELETE FROM everthread_archives WHERE thread_id = ?";

export const COUNT_BETWEEN = "SELECT count(*) AS count FROM messages WHERE thread_id = ? AND id > ? AND id <= ?";
export const LOG_BETWEEN = `SELECT id, message_json, created_at FROM messages
  WHERE thread_id = ? AND id > ? AND id <= ? ORDER BY id`;
export const LAST_BETWEEN = `SELECT id, message_json FROM messages
  WHERE thread_id = ? AND id > ? AND id <= ? ORDER BY id DESC LIMIT ?`;
export const RUN_IS_BETWEEN = `SELECT EXISTS (SELECT 1 FROM messages
  WHERE thread_id = ? AND id > ? AND id <= ? AND run_id = ?) AS found`;
export const DELETE_BETWEEN = "DELETE FROM messages WHERE thread_id = ? AND id > ? AND id <= ?";
export const END_OF_PART = `SELECT max(id) AS id FROM (
  SELECT id FROM messages WHERE thread_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT 50)`;
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

export const INDEX = "INSERT INTO everthread_archive_index (rowid, scope, block, text) VALUES (?, ?, ?, ?)";
export const UNINDEX = `DELETE FROM everthread_archive_index WHERE rowid IN (
  SELECT -id FROM messages WHERE thread_id = ? AND id > ? AND id <= ?)`;
/** FTS5's own words take whole numbers, which a bound parameter of Node's is not. */
const tellIndex = (word: string, number: number) =>
  `INSERT INTO everthread_archive_index (everthread_archive_index, rank) VALUES ('${word}', ${number})`;
/** Not to rewrite a list that is partly deleted; and to do so from a tenth on, as is its default. */
export const REWRITE_NEVER = tellIndex("deletemerge", 0);
export const REWRITE_AGAIN = tellIndex("deletemerge", 10);
/** To rewrite so many pages of 4 kB of what is due. */
export const REWRITE_SOME = tellIndex("merge", 16);
export const TOTAL_CHANGES = "SELECT total_changes() AS changes";
/** For an index that is made anew: every archive, and every message that is in one, with its thread's number. */
export const EVERY_ARCHIVE = "SELECT thread_id, up_to FROM everthread_archives ORDER BY thread_id, archive_no";
export const SCOPE_OF = "SELECT scope FROM everthread_archives WHERE thread_id = ? AND up_to >= ? LIMIT 1";
export const EVERY_MESSAGE_BEFORE = `SELECT id, thread_id, message_json FROM messages
  WHERE id < ? ORDER BY id DESC LIMIT ?`;

/** A longer message is read piece by piece, in bytes of JSON. */
const LARGE = 1_000_000;
const JSON_UNLESS_LARGE = `CASE WHEN octet_length(m.message_json) <= ${LARGE} THEN m.message_json END AS message_json`;
const SOURCE = `m.id, m.thread_id, m.created_at, ${JSON_UNLESS_LARGE}`;
/** Which messages of a block may say a text, by the index, newest first. */
export const CANDIDATES = `SELECT -rowid AS id FROM everthread_archive_index
  WHERE everthread_archive_index MATCH :match AND rowid > -:before AND rowid <= -:from ORDER BY rowid LIMIT :limit`;
export const MESSAGE = `SELECT ${SOURCE} FROM messages m WHERE m.id = ?`;
/** All messages, archived or not, newest first. */
export const MESSAGES_BEFORE = `SELECT ${SOURCE} FROM messages m WHERE m.id < ? ORDER BY m.id DESC`;
export const MESSAGES_OF_THREAD_BEFORE = `SELECT ${SOURCE} FROM messages m
  WHERE m.thread_id = ? AND m.id < ? ORDER BY m.id DESC`;
export const LAST_BEFORE = "SELECT max(id) AS id FROM messages WHERE id < ?";
export const LAST_OF_THREAD_BEFORE = "SELECT max(id) AS id FROM messages WHERE thread_id = ? AND id < ?";
export const LARGE_PIECE = "SELECT substr(CAST(message_json AS BLOB), ?, ?) AS piece FROM messages WHERE id = ?";
