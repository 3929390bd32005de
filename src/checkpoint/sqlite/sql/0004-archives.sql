-- What compactions set aside: marks in a thread's log, whose messages stay in `messages`. Made by the first compaction, so
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
