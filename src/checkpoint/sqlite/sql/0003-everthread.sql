-- What Everthread adds and CubeLoop ignores: a thread is found without reading the file, and newer files are known.
CREATE INDEX IF NOT EXISTS ix_messages_thread ON messages (thread_id, id);
CREATE TABLE IF NOT EXISTS everthread_schema (
  version INTEGER NOT NULL
);
INSERT INTO everthread_schema (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM everthread_schema);
