// Packed from sql/*.sql by scripts/pack-sql.mjs. Change those files, then run `npm run pack-sql`.
export const SQL = {
  "0001-tables": `-- The tables of CubeLoop 0.15 (its schema version 5), without the partitions of cubepi_messages and cubepi_runs.
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
`,
  "0002-from-1-to-2": `-- Version 2: the question that a thread waits on.
ALTER TABLE cubepi_threads ADD COLUMN IF NOT EXISTS pending_request JSONB;
`,
  "0003-from-2-to-3": `-- Version 3: the run that asked it.
ALTER TABLE cubepi_threads ADD COLUMN IF NOT EXISTS run_id TEXT;
`,
  "0004-from-3-to-4": `-- Version 4: runs. The partitions of cubepi_runs follow.
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
`,
  "0005-from-4-to-5": `-- Version 5: the answers already given.
CREATE TABLE IF NOT EXISTS cubepi_hitl_answers (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  question_id TEXT NOT NULL,
  answer JSONB NOT NULL,
  answered_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (thread_id, run_id, question_id)
);
`,
  "0006-archives": `-- Everthread's own tables for archives, version 1. The archived messages stay where they are, in cubepi_messages. Whoever
-- deletes a thread's row, in whatever program, deletes its archives too.
CREATE TABLE IF NOT EXISTS everthread_archives (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  archive_no BIGINT NOT NULL,
  up_to_seq BIGINT NOT NULL,
  up_to_created_at TIMESTAMPTZ,
  at_seq BIGINT NOT NULL,
  summary TEXT NOT NULL,
  system_prompt TEXT,
  extra JSONB NOT NULL,
  indexed BOOLEAN NOT NULL DEFAULT false,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  pruned_at TIMESTAMPTZ,
  PRIMARY KEY (thread_id, archive_no)
);
CREATE TABLE IF NOT EXISTS everthread_archive_version (
  version INTEGER NOT NULL PRIMARY KEY
);
`,
  "0007-archive-sources": `-- What search looks through where the extension pg_trgm is: the folded text of each archived message.
CREATE TABLE IF NOT EXISTS everthread_archive_sources (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  folded TEXT NOT NULL,
  PRIMARY KEY (thread_id, seq)
);
CREATE INDEX IF NOT EXISTS ix_everthread_archive_sources_trgm ON everthread_archive_sources USING gin (folded gin_trgm_ops);
CREATE INDEX IF NOT EXISTS ix_everthread_archives_to_index ON everthread_archives (thread_id) WHERE NOT indexed AND pruned_at IS NULL;
`,
} as const;
