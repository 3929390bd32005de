-- The tables of a memory history. Positions are given under a lock, so that they are in the order in which changes become visible.
CREATE TABLE IF NOT EXISTS everthread_history (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  memory_id TEXT COLLATE "C" NOT NULL,
  old_memory TEXT,
  new_memory TEXT,
  event TEXT COLLATE "C" NOT NULL,
  created_at TIMESTAMPTZ,
  updated_at TIMESTAMPTZ,
  is_deleted BOOLEAN NOT NULL,
  actor_id TEXT COLLATE "C",
  role TEXT
);
CREATE INDEX IF NOT EXISTS everthread_history_memory ON everthread_history (memory_id, position);
CREATE TABLE IF NOT EXISTS everthread_history_messages (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope TEXT COLLATE "C" NOT NULL,
  role TEXT NOT NULL,
  content TEXT,
  name TEXT,
  created_at TIMESTAMPTZ
);
-- A whole scope may be longer than an index takes.
CREATE INDEX IF NOT EXISTS everthread_history_scope ON everthread_history_messages (left(scope, 255), position);
CREATE TABLE IF NOT EXISTS everthread_history_schema (
  version INTEGER NOT NULL PRIMARY KEY
);
INSERT INTO everthread_history_schema (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM everthread_history_schema);
