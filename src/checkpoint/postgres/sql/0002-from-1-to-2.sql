-- Version 2: the question that a thread waits on.
ALTER TABLE cubepi_threads ADD COLUMN IF NOT EXISTS pending_request JSONB;
