/** Every query of a history file. The order of a table is that of its rowids: Mem0's ids are random, its times may be equal. */

// An id may be null in a table that Mem0 migrated from one without ids.
const ID = "coalesce(id, 'row ' || rowid) AS id";
const RECORD_TEXTS = "memory_id, old_memory, new_memory, event, actor_id, role";
const MESSAGE_TEXTS = "role, content, name";
const RECORD = `rowid AS position, ${ID}, ${RECORD_TEXTS}, created_at, updated_at, is_deleted`;
const MESSAGE = `rowid AS position, ${MESSAGE_TEXTS}, created_at`;

// node:sqlite before Node 24 ends a text at U+0000. There (:exact is 0) each row says whether it holds one, and then its texts
// are read as bytes.
const RECORD_HAS_NUL = `iif(:exact, 0, instr(CAST(concat(${RECORD_TEXTS}) AS BLOB), x'00')) AS has_nul`;
const MESSAGE_HAS_NUL = `iif(:exact, 0, instr(CAST(concat(${MESSAGE_TEXTS}) AS BLOB), x'00')) AS has_nul`;
export const IS_EXACT = "SELECT 'a' || char(0) || 'b' AS text";
const asBytes = (columns: string) =>
  columns
    .split(", ")
    .map((column) => `CAST(${column} AS BLOB) AS ${column}`)
    .join(", ");
const RECORD_BYTES = asBytes(RECORD_TEXTS);
const MESSAGE_BYTES = asBytes(MESSAGE_TEXTS);
export const TEXTS_OF_RECORD = `SELECT ${RECORD_BYTES} FROM history WHERE rowid = ?`;
export const TEXTS_OF_MESSAGE = `SELECT ${MESSAGE_BYTES} FROM messages WHERE rowid = ?`;

export const INSERT_RECORD = `INSERT INTO history
  (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
export const HAS_RECORD = "SELECT 1 FROM history WHERE id = ?";
export const RECORDS_OF_MEMORY = `SELECT ${RECORD}, ${RECORD_HAS_NUL} FROM history WHERE memory_id = :memory ORDER BY rowid`;

// A listing reads the log in pieces, so that a rare event among a million changes does not hold the event loop.
const PIECE = "FROM history WHERE rowid > :after ORDER BY rowid LIMIT :size";
const PIECE_OF_MEMORY = "FROM history WHERE memory_id = :memory AND rowid > :after ORDER BY rowid LIMIT :size";
const CHOSEN = `WHERE (:anyActor OR actor_id IS :actor) AND (:anyEvent OR event = :event) ORDER BY position`;
export const PIECE_END = `SELECT max(position) AS last, count(*) AS size FROM (SELECT rowid AS position ${PIECE})`;
export const PIECE_OF_MEMORY_END = `SELECT max(position) AS last, count(*) AS size
  FROM (SELECT rowid AS position ${PIECE_OF_MEMORY})`;
export const LIST_PIECE = `SELECT * FROM (SELECT ${RECORD}, ${RECORD_HAS_NUL} ${PIECE}) ${CHOSEN}`;
export const LIST_PIECE_OF_MEMORY = `SELECT * FROM (SELECT ${RECORD}, ${RECORD_HAS_NUL} ${PIECE_OF_MEMORY}) ${CHOSEN}`;

export const INSERT_MESSAGE =
  "INSERT INTO messages (id, session_scope, role, content, name, created_at) VALUES (?, ?, ?, ?, ?, ?)";
export const TRIM_SCOPE = `DELETE FROM messages WHERE session_scope = :scope AND rowid <=
  (SELECT rowid FROM messages WHERE session_scope = :scope ORDER BY rowid DESC LIMIT 1 OFFSET :keep)`;
export const RECENT_MESSAGES = `SELECT ${MESSAGE}, ${MESSAGE_HAS_NUL} FROM messages
  WHERE session_scope = :scope ORDER BY rowid DESC LIMIT :limit`;
export const NEXT_SCOPE = "SELECT min(session_scope) AS scope FROM messages WHERE session_scope > ?";
export const COUNT_SCOPE = "SELECT count(*) AS count FROM messages WHERE session_scope = ?";

/** Everything, for its erasure. The table of kept columns is not in every file. */
export const RESET = ["DELETE FROM history", "DELETE FROM messages", "DROP TABLE IF EXISTS everthread_history_extra"];

// Of a file of Mem0's TypeScript package. Its numbers are the order; a record has no actor.
export const MEM0_RECORDS = `SELECT id, memory_id, previous_value, new_value, action, created_at, updated_at, is_deleted
  FROM memory_history ORDER BY id`;
export const ALL_SCOPES = "SELECT DISTINCT session_scope AS scope FROM messages WHERE session_scope IS NOT NULL";
export const MESSAGES_OF_SCOPE = `SELECT ${MESSAGE}, ${MESSAGE_HAS_NUL} FROM messages
  WHERE session_scope = :scope ORDER BY rowid`;
