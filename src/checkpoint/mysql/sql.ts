// Packed from sql/*.sql by scripts/pack-sql.mjs. Change those files, then run `npm run pack-sql`.
export const SQL = {
  "0001-tables": `-- CubeLoop's tables, schema version 5, as its 0.15 declares them, with one difference: every text is compared by its
-- bytes, so that ids that differ by case, accent or a trailing space are different ids. That collation has another name in
-- MariaDB than in MySQL: each server reads its own comment and skips the other's. The table of the version
-- comes first, and its row last, so that tables without a version are known to be of a migration that was interrupted.
CREATE TABLE IF NOT EXISTS cubepi_schema_version (
  version INT NOT NULL AUTO_INCREMENT,
  PRIMARY KEY (version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

CREATE TABLE IF NOT EXISTS cubepi_threads (
  thread_id VARCHAR(255) NOT NULL,
  parent_thread_id VARCHAR(255) NULL,
  forked_at_seq BIGINT NULL,
  extra JSON NOT NULL DEFAULT (JSON_OBJECT()),
  pending_request JSON NULL,
  run_id VARCHAR(64) NULL,
  created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (thread_id),
  FOREIGN KEY (parent_thread_id) REFERENCES cubepi_threads (thread_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

CREATE TABLE IF NOT EXISTS cubepi_messages (
  thread_id VARCHAR(255) NOT NULL,
  seq BIGINT NOT NULL,
  role VARCHAR(32) NOT NULL,
  metadata JSON NOT NULL DEFAULT (JSON_OBJECT()),
  payload LONGBLOB NOT NULL,
  run_id VARCHAR(255) NULL,
  created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (thread_id, seq),
  KEY ix_cubepi_messages_thread_run (thread_id, run_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */
PARTITION BY KEY (thread_id) PARTITIONS 64;

CREATE TABLE IF NOT EXISTS cubepi_runs (
  thread_id VARCHAR(255) NOT NULL,
  run_id VARCHAR(255) NOT NULL,
  claimed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  completed_at TIMESTAMP NULL,
  completion_seq BIGINT NULL,
  PRIMARY KEY (thread_id, run_id),
  KEY ix_cubepi_runs_thread_seq (thread_id, completion_seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */
PARTITION BY KEY (thread_id) PARTITIONS 64;

CREATE TABLE IF NOT EXISTS cubepi_hitl_answers (
  thread_id VARCHAR(255) NOT NULL,
  run_id VARCHAR(255) NOT NULL,
  question_id VARCHAR(255) NOT NULL,
  answer JSON NOT NULL,
  answered_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (thread_id, run_id, question_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
`,
  "0002-archives": `-- Everthread's own tables for archives, version 1. The archived messages stay where they are, in cubepi_messages. The row of
-- the version comes last, so that tables without one are known to be of a migration that was interrupted.
CREATE TABLE IF NOT EXISTS everthread_archive_version (
  version INT NOT NULL,
  PRIMARY KEY (version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

CREATE TABLE IF NOT EXISTS everthread_archives (
  thread_id VARCHAR(255) NOT NULL,
  archive_no BIGINT NOT NULL,
  up_to_seq BIGINT NOT NULL,
  up_to_created_at TIMESTAMP NULL,
  at_seq BIGINT NOT NULL,
  summary LONGTEXT NOT NULL,
  system_prompt LONGTEXT NULL,
  extra JSON NOT NULL,
  created_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  pruned_at TIMESTAMP(3) NULL,
  PRIMARY KEY (thread_id, archive_no)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE /*M!100500 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
`,
} as const;
