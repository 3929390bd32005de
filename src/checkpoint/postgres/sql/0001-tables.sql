-- The tables of CubeLoop 0.15 (its schema version 5), without the partitions of cubepi_messages and cubepi_runs.
CREATE TABLE cubepi_threads (
  thread_id TEXT NOT NULL PRIMARY KEY,
  parent_thread_id TEXT REFERENCES cubepi_threads (thread_id),
  forked_at_seq BIGINT,
  extra JSONB NOT NULL DEFAULT '{}'::jsonb,
  pending_request JSONB,
  run_id TEXT,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE cubepi_messages (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  role TEXT NOT NULL,
  metadata JSONB NOT NULL DEFAULT '{}'::jsonb,
  payload BYTEA NOT NULL,
  run_id TEXT,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (thread_id, seq)
) PARTITION BY HASH (thread_id);
CREATE INDEX ix_cubepi_messages_metadata_gin ON cubepi_messages USING gin (metadata jsonb_path_ops);
CREATE INDEX ix_cubepi_messages_thread_run ON cubepi_messages (thread_id, run_id);
CREATE TABLE cubepi_runs (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  claimed_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  completed_at TIMESTAMPTZ,
  completion_seq BIGINT,
  PRIMARY KEY (thread_id, run_id)
) PARTITION BY HASH (thread_id);
CREATE INDEX ix_cubepi_runs_thread_seq ON cubepi_runs (thread_id, completion_seq);
CREATE TABLE cubepi_hitl_answers (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  question_id TEXT NOT NULL,
  answer JSONB NOT NULL,
  answered_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (thread_id, run_id, question_id)
);
CREATE TABLE cubepi_schema_version (
  version SERIAL NOT NULL PRIMARY KEY
);
