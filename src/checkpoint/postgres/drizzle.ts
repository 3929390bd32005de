/**
 * The tables as Drizzle has them, for a host whose migrations drizzle-kit generates and whose queries Drizzle types. It has
 * no word for partitions: docs/migrations.md says how the generated SQL is edited, once.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  customType,
  foreignKey,
  index,
  integer,
  jsonb,
  type PgColumn,
  pgTable,
  primaryKey,
  serial,
  text,
  timestamp,
} from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });
const moment = (name: string) => timestamp(name, { withTimezone: true });
const thread = (name: string, column: PgColumn) =>
  foreignKey({ name, columns: [column], foreignColumns: [threads.threadId] });

export const threads = pgTable(
  "cubepi_threads",
  {
    threadId: text("thread_id").primaryKey(),
    parentThreadId: text("parent_thread_id"),
    forkedAtSeq: bigint("forked_at_seq", { mode: "number" }),
    extra: jsonb("extra").notNull().default(sql`'{}'::jsonb`),
    pendingRequest: jsonb("pending_request"),
    runId: text("run_id"),
    createdAt: moment("created_at").notNull().defaultNow(),
    updatedAt: moment("updated_at").notNull().defaultNow(),
  },
  (table) => [
    foreignKey({
      name: "cubepi_threads_parent_thread_id_fkey",
      columns: [table.parentThreadId],
      foreignColumns: [table.threadId],
    }),
  ],
);

/** Partitioned by hash of `thread_id`, which the generated SQL must be told. */
export const messages = pgTable(
  "cubepi_messages",
  {
    threadId: text("thread_id").notNull(),
    seq: bigint("seq", { mode: "number" }).notNull(),
    role: text("role").notNull(),
    metadata: jsonb("metadata").notNull().default(sql`'{}'::jsonb`),
    /** The message as msgpack. */
    payload: bytea("payload").notNull(),
    runId: text("run_id"),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ name: "cubepi_messages_pkey", columns: [table.threadId, table.seq] }),
    thread("cubepi_messages_thread_id_fkey", table.threadId).onDelete("cascade"),
    index("ix_cubepi_messages_metadata_gin").using("gin", table.metadata.op("jsonb_path_ops")),
    index("ix_cubepi_messages_thread_run").on(table.threadId, table.runId),
  ],
);

/** Partitioned by hash of `thread_id`, which the generated SQL must be told. */
export const runs = pgTable(
  "cubepi_runs",
  {
    threadId: text("thread_id").notNull(),
    runId: text("run_id").notNull(),
    claimedAt: moment("claimed_at").notNull().defaultNow(),
    completedAt: moment("completed_at"),
    completionSeq: bigint("completion_seq", { mode: "number" }),
  },
  (table) => [
    primaryKey({ name: "cubepi_runs_pkey", columns: [table.threadId, table.runId] }),
    thread("cubepi_runs_thread_id_fkey", table.threadId).onDelete("cascade"),
    index("ix_cubepi_runs_thread_seq").on(table.threadId, table.completionSeq),
  ],
);

export const hitlAnswers = pgTable(
  "cubepi_hitl_answers",
  {
    threadId: text("thread_id").notNull(),
    runId: text("run_id").notNull(),
    questionId: text("question_id").notNull(),
    answer: jsonb("answer").notNull(),
    answeredAt: moment("answered_at").notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ name: "cubepi_hitl_answers_pkey", columns: [table.threadId, table.runId, table.questionId] }),
    thread("cubepi_hitl_answers_thread_id_fkey", table.threadId).onDelete("cascade"),
  ],
);

export const schemaVersion = pgTable("cubepi_schema_version", { version: serial("version").primaryKey() });

/** Everthread's own. The table of search's index needs an extension: the SQL of archiveSchemaSql() makes it. */
export const archives = pgTable(
  "everthread_archives",
  {
    threadId: text("thread_id").notNull(),
    archiveNo: bigint("archive_no", { mode: "number" }).notNull(),
    upToSeq: bigint("up_to_seq", { mode: "number" }).notNull(),
    upToCreatedAt: moment("up_to_created_at"),
    atSeq: bigint("at_seq", { mode: "number" }).notNull(),
    summary: text("summary").notNull(),
    systemPrompt: text("system_prompt"),
    extra: jsonb("extra").notNull(),
    indexed: boolean("indexed").notNull().default(false),
    createdAt: moment("created_at").notNull().defaultNow(),
    prunedAt: moment("pruned_at"),
  },
  (table) => [
    primaryKey({ name: "everthread_archives_pkey", columns: [table.threadId, table.archiveNo] }),
    thread("everthread_archives_thread_id_fkey", table.threadId).onDelete("cascade"),
  ],
);

export const archiveVersion = pgTable("everthread_archive_version", { version: integer("version").primaryKey() });
