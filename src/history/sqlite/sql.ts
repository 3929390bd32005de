// Packed from sql/*.sql by scripts/pack-sql.mjs. Change those files, then run `npm run pack-sql`.
export const SQL = {
  "0001-mem0": `-- Mem0's tables, column for column as its SQLiteManager creates them.
CREATE TABLE IF NOT EXISTS history (
  id           TEXT PRIMARY KEY,
  memory_id    TEXT,
  old_memory   TEXT,
  new_memory   TEXT,
  event        TEXT,
  created_at   DATETIME,
  updated_at   DATETIME,
  is_deleted   INTEGER,
  actor_id     TEXT,
  role         TEXT
);
CREATE TABLE IF NOT EXISTS messages (
  id TEXT PRIMARY KEY,
  session_scope TEXT,
  role TEXT,
  content TEXT,
  name TEXT,
  created_at DATETIME
);
`,
  "0002-everthread": `-- What Everthread adds and Mem0 ignores: a memory and a scope are found without reading the file, and newer files are known.
CREATE INDEX IF NOT EXISTS everthread_history_memory ON history (memory_id);
CREATE INDEX IF NOT EXISTS everthread_messages_scope ON messages (session_scope);
CREATE TABLE IF NOT EXISTS everthread_history_schema (
  version INTEGER NOT NULL
);
INSERT INTO everthread_history_schema (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM everthread_history_schema);
`,
  "0003-kept-columns": `-- What an older history table had in columns that Mem0's has not. Kept only where a migration finds such values.
CREATE TABLE IF NOT EXISTS everthread_history_extra (
  history_id TEXT NOT NULL,
  column_name TEXT NOT NULL,
  value
);
`,
} as const;
