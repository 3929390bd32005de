-- What search looks through where the extension pg_trgm is: the folded text of each archived message.
CREATE TABLE IF NOT EXISTS everthread_archive_sources (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  folded TEXT NOT NULL,
  PRIMARY KEY (thread_id, seq)
);
CREATE INDEX IF NOT EXISTS ix_everthread_archive_sources_trgm ON everthread_archive_sources USING gin (folded gin_trgm_ops);
CREATE INDEX IF NOT EXISTS ix_everthread_archives_to_index ON everthread_archives (thread_id) WHERE NOT indexed AND pruned_at IS NULL;
