-- Everthread's own tables for archives, version 1. The archived messages stay where they are, in cubepi_messages. Whoever
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
