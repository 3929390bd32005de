-- What CubeLoop 0.15 has besides (its schema version 4): runs. The columns it added to older tables are in schema.ts,
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
