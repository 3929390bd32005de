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
  "0004-archives": `-- What compactions set aside: marks in a thread's log, whose messages stay in \`messages\`. Made by the first compaction, so
-- that a file without one is CubeLoop's and nothing more.
CREATE TABLE IF NOT EXISTS everthread_archives (
  thread_id TEXT NOT NULL,
  archive_no INTEGER NOT NULL,
  up_to INTEGER NOT NULL,
  at_revision INTEGER NOT NULL,
  -- Texts are JSON strings: a text may hold U+0000, at which SQLite's own functions stop.
  summary_json TEXT NOT NULL,
  system_json TEXT NOT NULL,
  extra_json TEXT NOT NULL,
  created_at REAL NOT NULL,
  pruned_at REAL,
  -- The thread's number in the index.
  scope INTEGER NOT NULL,
  PRIMARY KEY (thread_id, archive_no)
);
CREATE INDEX IF NOT EXISTS ix_everthread_archives_up_to ON everthread_archives (thread_id, up_to);
CREATE INDEX IF NOT EXISTS ix_everthread_archives_scope ON everthread_archives (scope);
-- A program that knows no archives may delete a thread: a new one of that id must not begin with the old one's summary.
-- Retention marks an archive before it removes the messages: they may be the thread's last.
CREATE TRIGGER IF NOT EXISTS everthread_archives_go AFTER DELETE ON messages
  WHEN NOT EXISTS (SELECT 1 FROM messages WHERE thread_id = OLD.thread_id)
  AND (SELECT pruned_at FROM everthread_archives WHERE thread_id = OLD.thread_id AND up_to >= OLD.id
    ORDER BY archive_no LIMIT 1) IS NULL
  BEGIN
    DELETE FROM everthread_archives WHERE thread_id = OLD.thread_id;
  END;
-- An Everthread that knows no archives would show a silent gap where retention removed messages.
UPDATE everthread_schema SET version = 2;
`,
  "0005-archive-index": `-- Where archived text is found: the trigrams of each source's folded text and no more. Its rowid is the message's id, with a
-- minus before it. \`scope\` and \`block\` are three characters each, for the thread within a block of ids and for the block.
CREATE VIRTUAL TABLE everthread_archive_index USING fts5 (
  scope, block, text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
UPDATE everthread_schema SET version = 2;
`,
} as const;
