-- What Everthread adds and Mem0 ignores: a memory and a scope are found without reading the file, and newer files are known.
CREATE INDEX IF NOT EXISTS everthread_history_memory ON history (memory_id);
CREATE INDEX IF NOT EXISTS everthread_messages_scope ON messages (session_scope);
CREATE TABLE IF NOT EXISTS everthread_history_schema (
  version INTEGER NOT NULL
);
INSERT INTO everthread_history_schema (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM everthread_history_schema);
