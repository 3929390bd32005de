-- Everthread's own tables for archives, version 1. The archived messages stay where they are, in cubepi_messages. The row of
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
