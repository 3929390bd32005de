// Packed from sql/*.sql by scripts/pack-sql.mjs. Change those files, then run `npm run pack-sql`.
export const SQL = {
  "0001-cubeloop-v3": `-- The tables of CubeLoop's first files (its schema version 3).
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  thread_id TEXT NOT NULL,
  message_json TEXT NOT NULL,
  created_at REAL NOT NULL DEFAULT (julianday('now'))
);
CREATE TABLE IF NOT EXISTS thread_extra (
  thread_id TEXT PRIMARY KEY,
  extra_json TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE IF NOT EXISTS thread_pending_request (
  thread_id TEXT PRIMARY KEY,
  request_json TEXT NOT NULL,
  run_id TEXT,
  created_at REAL NOT NULL DEFAULT (julianday('now'))
);
CREATE TABLE IF NOT EXISTS thread_hitl_answers (
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  question_id TEXT NOT NULL,
  answer_json TEXT NOT NULL,
  answered_at REAL NOT NULL DEFAULT (julianday('now')),
  PRIMARY KEY (thread_id, run_id, question_id)
);
`,
  "0002-cubeloop-v4": `-- What CubeLoop 0.15 has besides (its schema version 4): runs. The columns it added to older tables are in schema.ts,
-- since SQLite has no ADD COLUMN IF NOT EXISTS.
CREATE TABLE IF NOT EXISTS runs (
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  claimed_at REAL NOT NULL DEFAULT (julianday('now')),
  completed_at REAL,
  completion_seq INTEGER,
  PRIMARY KEY (thread_id, run_id)
);
CREATE INDEX IF NOT EXISTS ix_runs_thread_completion ON runs (thread_id, completion_seq);
`,
  "0003-everthread": `-- What Everthread adds and CubeLoop ignores: a thread is found without reading the file, and newer files are known.
CREATE INDEX IF NOT EXISTS ix_messages_thread ON messages (thread_id, id);
CREATE TABLE IF NOT EXISTS everthread_schema (
  version INTEGER NOT NULL
);
INSERT INTO everthread_schema (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM everthread_schema);
`,
} as const;
