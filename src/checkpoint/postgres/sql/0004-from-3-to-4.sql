-- Version 4: runs. The partitions of cubepi_runs follow.
ALTER TABLE cubepi_messages ADD COLUMN IF NOT EXISTS run_id TEXT;
CREATE INDEX IF NOT EXISTS ix_cubepi_messages_thread_run ON cubepi_messages (thread_id, run_id);
CREATE TABLE IF NOT EXISTS cubepi_runs (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  claimed_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  completed_at TIMESTAMPTZ,
  completion_seq BIGINT,
  PRIMARY KEY (thread_id, run_id)
) PARTITION BY HASH (thread_id);
CREATE INDEX IF NOT EXISTS ix_cubepi_runs_thread_seq ON cubepi_runs (thread_id, completion_seq);
