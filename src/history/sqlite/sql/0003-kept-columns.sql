-- What an older history table had in columns that Mem0's has not. Kept only where a migration finds such values.
CREATE TABLE IF NOT EXISTS everthread_history_extra (
  history_id TEXT NOT NULL,
  column_name TEXT NOT NULL,
  value
);
