/** Every query of a history on Postgres. Times are given and taken as text in UTC, whatever the session's settings. */

const UTC = `'YYYY-MM-DD"T"HH24:MI:SS.US'`;
const CREATED = `to_char(created_at AT TIME ZONE 'UTC', ${UTC}) AS created_at`;
const UPDATED = `to_char(updated_at AT TIME ZONE 'UTC', ${UTC}) AS updated_at`;
const RECORD = `position, id, memory_id, old_memory, new_memory, event, ${CREATED}, ${UPDATED}, is_deleted, actor_id, role`;

/** Of each piece of a batch. The order is that of the array: the number of a row is drawn after the sort. */
export const INSERT_RECORDS = `INSERT INTO everthread_history
  (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role)
  SELECT id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role
  FROM ROWS FROM (json_to_recordset($1::json) AS (id text, memory_id text, old_memory text, new_memory text, event text,
    created_at timestamptz, updated_at timestamptz, is_deleted boolean, actor_id text, role text)) WITH ORDINALITY AS given
  ORDER BY ordinality`;
/** The first of some ids that the log has. */
export const FIRST_TAKEN = `SELECT given.id FROM json_array_elements_text($1::json) WITH ORDINALITY AS given (id, n)
  WHERE EXISTS (SELECT 1 FROM everthread_history h WHERE h.id = given.id) ORDER BY n LIMIT 1`;
export const RECORDS_OF_MEMORY = `SELECT ${RECORD} FROM everthread_history h WHERE memory_id = $1 ORDER BY position`;
/** $1 after, $2 limit, $3 memory, $4 whether any actor, $5 actor, $6 event, $7 since, $8 until. */
export const LIST = `SELECT ${RECORD} FROM everthread_history h
  WHERE position > $1::bigint AND ($3::text IS NULL OR memory_id = $3)
    AND ($4::boolean OR actor_id IS NOT DISTINCT FROM $5::text) AND ($6::text IS NULL OR event = $6)
    AND ($7::timestamptz IS NULL OR coalesce(h.updated_at, h.created_at) >= $7)
    AND ($8::timestamptz IS NULL OR coalesce(h.updated_at, h.created_at) < $8)
  ORDER BY position LIMIT $2`;

// The index has the beginnings of the scopes.
const OF_SCOPE = "left(scope, 255) = left($1, 255) AND scope = $1";
export const INSERT_MESSAGES = `INSERT INTO everthread_history_messages (scope, role, content, name, created_at)
  SELECT $1::text, role, content, name, created_at
  FROM ROWS FROM (json_to_recordset($2::json) AS (role text, content text, name text, created_at timestamptz))
    WITH ORDINALITY AS given
  ORDER BY ordinality`;
export const TRIM_SCOPE = `DELETE FROM everthread_history_messages WHERE ${OF_SCOPE} AND position <=
  (SELECT position FROM everthread_history_messages WHERE ${OF_SCOPE} ORDER BY position DESC LIMIT 1 OFFSET $2)`;
export const RECENT_MESSAGES = `SELECT role, content, name, ${CREATED} FROM everthread_history_messages
  WHERE ${OF_SCOPE} ORDER BY position DESC LIMIT $2`;
/** By the beginning first, which is the same order: so it follows the index and ends early. */
export const SCOPES = `SELECT scope, count(*) AS count FROM everthread_history_messages
  WHERE left(scope, 255) >= left($1, 255) AND scope > $1
  GROUP BY left(scope, 255), scope ORDER BY left(scope, 255), scope LIMIT $2`;

export const RESET = ["DELETE FROM everthread_history", "DELETE FROM everthread_history_messages"];
