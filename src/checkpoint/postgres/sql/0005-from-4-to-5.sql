-- Version 5: the answers already given.
CREATE TABLE IF NOT EXISTS cubepi_hitl_answers (
  thread_id TEXT NOT NULL REFERENCES cubepi_threads (thread_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  question_id TEXT NOT NULL,
  answer JSONB NOT NULL,
  answered_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  PRIMARY KEY (thread_id, run_id, question_id)
);
