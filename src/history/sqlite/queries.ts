/** Every query of a history file. The order of a table is that of its rowids: Mem0's ids are random, its times may be equal. */

/**
 * A text column as it is read: its bytes when it holds U+0000, since node:sqlite before Node 24 ends a text there.
 * The names are of this file; nothing comes from outside.
 */
const text = (column: string) =>
  `iif(instr(CAST(${column} AS BLOB), x'00'), CAST(${column} AS BLOB), ${column}) AS ${column}`;

// An id may be null in a table that Mem0 migrated from one without ids.
const TEXTS = ["memory_id", "old_memory", "new_memory", "event", "actor_id", "role"].map(text).join(", ");
const RECORD = `rowid AS position, coalesce(id, 'row ' || rowid) AS id, ${TEXTS}, created_at, updated_at, is_deleted`;
const MESSAGE = `${["role", "content", "name"].map(text).join(", ")}, created_at`;

export const INSERT_RECORD = `INSERT INTO history
  (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
export const HAS_RECORD = "SELECT 1 FROM history WHERE id = ?";
export const RECORDS_OF_MEMORY = `SELECT ${RECORD} FROM history WHERE memory_id = ? ORDER BY rowid`;

// A listing reads the log in pieces, so that a rare event among a million changes does not hold the event loop.
const PIECE = "FROM history WHERE rowid > :after ORDER BY rowid LIMIT :size";
const PIECE_OF_MEMORY = "FROM history WHERE memory_id = :memory AND rowid > :after ORDER BY rowid LIMIT :size";
const CHOSEN = `WHERE (:anyActor OR actor_id IS :actor) AND (:anyEvent OR event = :event) ORDER BY position`;
export const PIECE_END = `SELECT max(position) AS last, count(*) AS size FROM (SELECT rowid AS position ${PIECE})`;
export const PIECE_OF_MEMORY_END = `SELECT max(position) AS last, count(*) AS size
  FROM (SELECT rowid AS position ${PIECE_OF_MEMORY})`;
export const LIST_PIECE = `SELECT * FROM (SELECT ${RECORD} ${PIECE}) ${CHOSEN}`;
export const LIST_PIECE_OF_MEMORY = `SELECT * FROM (SELECT ${RECORD} ${PIECE_OF_MEMORY}) ${CHOSEN}`;

export const INSERT_MESSAGE =
  "INSERT INTO messages (id, session_scope, role, content, name, created_at) VALUES (?, ?, ?, ?, ?, ?)";
export const TRIM_SCOPE = `DELETE FROM messages WHERE session_scope = :scope AND rowid <=
  (SELECT rowid FROM messages WHERE session_scope = :scope ORDER BY rowid DESC LIMIT 1 OFFSET :keep)`;
export const RECENT_MESSAGES = `SELECT ${MESSAGE} FROM messages WHERE session_scope = ? ORDER BY rowid DESC LIMIT ?`;
export const NEXT_SCOPE = "SELECT min(session_scope) AS scope FROM messages WHERE session_scope > ?";
export const COUNT_SCOPE = "SELECT count(*) AS count FROM messages WHERE session_scope = ?";

/** Everything, for its erasure. The table of kept columns is not in every file. */
export const RESET = ["DELETE FROM history", "DELETE FROM messages", "DROP TABLE IF EXISTS everthread_history_extra"];

// Of a file of Mem0's TypeScript package. Its numbers are the order; a record has no actor.
export const MEM0_RECORDS = `SELECT id, memory_id, previous_value, new_value, action, created_at, updated_at, is_deleted
  FROM memory_history ORDER BY id`;
export const ALL_MESSAGES = `SELECT session_scope, ${MESSAGE} FROM messages ORDER BY rowid`;
