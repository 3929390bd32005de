-- The tables of CubeLoop's first files (its schema version 3).
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  thread_id TEXT NOT NULL,
  message_json TEXT NOT NULL,
  created_at REAL NOT NULL DEFAULT (julianday('now'))
);
CREATE TABLE IF NOT EXISTS thread_extra (
  thread_id TEXT PRIMARY KEY,
  extra_json TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE IF NOT EXISTS thread_pending_request (
  thread_id TEXT PRIMARY KEY,
  request_json TEXT NOT NULL,
  run_id TEXT,
  created_at REAL NOT NULL DEFAULT (julianday('now'))
);
CREATE TABLE IF NOT EXISTS thread_hitl_answers (
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  question_id TEXT NOT NULL,
  answer_json TEXT NOT NULL,
  answered_at REAL NOT NULL DEFAULT (julianday('now')),
  PRIMARY KEY (thread_id, run_id, question_id)
);
