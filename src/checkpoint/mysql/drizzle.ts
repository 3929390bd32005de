/**
 * The tables as Drizzle has them, for a host whose migrations drizzle-kit generates and whose queries Drizzle types. It has
 * no word for partitions and collations: docs/migrations.md says what SQL is added to the generated one, once.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  customType,
  foreignKey,
  index,
  int,
  json,
  longtext,
  mysqlTable,
  primaryKey,
  timestamp,
  varchar,
} from "drizzle-orm/mysql-core";

const longblob = customType<{ data: Uint8Array }>({ dataType: () => "longblob" });
const id = (name: string) => varchar(name, { length: 255 });
const now = sql`CURRENT_TIMESTAMP`;
const emptyObject = sql`(JSON_OBJECT())`;

export const threads = mysqlTable(
  "cubepi_threads",
  {
    threadId: id("thread_id").primaryKey(),
    parentThreadId: id("parent_thread_id"),
    forkedAtSeq: bigint("forked_at_seq", { mode: "number" }),
    extra: json("extra").notNull().default(emptyObject),
    pendingRequest: json("pending_request"),
    runId: varchar("run_id", { length: 64 }),
    createdAt: timestamp("created_at").notNull().default(now),
    updatedAt: timestamp("updated_at").notNull().default(now).onUpdateNow(),
  },
  (table) => [
    foreignKey({
      name: "cubepi_threads_parent_thread_id_fkey",
      columns: [table.parentThreadId],
      foreignColumns: [table.threadId],
    }),
  ],
);

/** Partitioned by `thread_id`: the SQL of createMessagePartitionsSql() does that. */
export const messages = mysqlTable(
  "cubepi_messages",
  {
    threadId: id("thread_id").notNull(),
    seq: bigint("seq", { mode: "number" }).notNull(),
    role: varchar("role", { length: 32 }).notNull(),
    metadata: json("metadata").notNull().default(emptyObject),
    /** The message as msgpack. */
    payload: longblob("payload").notNull(),
    runId: id("run_id"),
    createdAt: timestamp("created_at").notNull().default(now),
  },
  (table) => [
    primaryKey({ columns: [table.threadId, table.seq] }),
    index("ix_cubepi_messages_thread_run").on(table.threadId, table.runId),
  ],
);

/** Partitioned by `thread_id`: the SQL of createRunsPartitionsSql() does that. */
export const runs = mysqlTable(
  "cubepi_runs",
  {
    threadId: id("thread_id").notNull(),
    runId: id("run_id").notNull(),
    claimedAt: timestamp("claimed_at").notNull().default(now),
    completedAt: timestamp("completed_at"),
    completionSeq: bigint("completion_seq", { mode: "number" }),
  },
  (table) => [
    primaryKey({ columns: [table.threadId, table.runId] }),
    index("ix_cubepi_runs_thread_seq").on(table.threadId, table.completionSeq),
  ],
);

export const hitlAnswers = mysqlTable(
  "cubepi_hitl_answers",
  {
    threadId: id("thread_id").notNull(),
    runId: id("run_id").notNull(),
    questionId: id("question_id").notNull(),
    answer: json("answer").notNull(),
    answeredAt: timestamp("answered_at").notNull().default(now),
  },
  (table) => [primaryKey({ columns: [table.threadId, table.runId, table.questionId] })],
);

export const schemaVersion = mysqlTable("cubepi_schema_version", {
  version: int("version").autoincrement().primaryKey(),
});

/** Everthread's own. */
export const archives = mysqlTable(
  "everthread_archives",
  {
    threadId: id("thread_id").notNull(),
    archiveNo: bigint("archive_no", { mode: "number" }).notNull(),
    upToSeq: bigint("up_to_seq", { mode: "number" }).notNull(),
    upToCreatedAt: timestamp("up_to_created_at"),
    atSeq: bigint("at_seq", { mode: "number" }).notNull(),
    summary: longtext("summary").notNull(),
    systemPrompt: longtext("system_prompt"),
    extra: json("extra").notNull(),
    createdAt: timestamp("created_at", { fsp: 3 }).notNull().default(sql`CURRENT_TIMESTAMP(3)`),
    prunedAt: timestamp("pruned_at", { fsp: 3 }),
  },
  (table) => [primaryKey({ columns: [table.threadId, table.archiveNo] })],
);

export const archiveVersion = mysqlTable("everthread_archive_version", { version: int("version").primaryKey() });
