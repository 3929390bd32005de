-- Version 3: the run that asked it.
ALTER TABLE cubepi_threads ADD COLUMN IF NOT EXISTS run_id TEXT;
