/** The Postgres engine: CubeLoop's tables, shared by many machines. Each write is one transaction of one round trip. */
import { PostgresStore, type PostgresTarget, type Row, type Statement, type Value } from "../../db/postgres.ts";
import { escapeText } from "../../db/postgres-text.ts";
import { admitMessages } from "../../messages/admit.ts";
import { copyJson, copyJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkRunId, checkThreadId } from "../../util/ids.ts";
import { checkArchiveCounts } from "../archive-rules.ts";
import type {
  Capabilities,
  Checkpoint,
  Checkpointer,
  LogEntry,
  Page,
  PageOptions,
  RecordedAnswer,
  RunInfo,
  ThreadInfo,
  ThreadPart,
} from "../checkpointer.ts";
import {
  RunAlreadyClaimedError,
  RunAlreadyCompletedError,
  RunNotClaimedError,
  ThreadAlreadyExistsError,
  UnsupportedError,
} from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitPart } from "../part.ts";
import { admitPending, type PendingRequest } from "../pending.ts";
import { appendBatch, batchOf } from "./append.ts";
import * as C from "./archive-copy-queries.ts";
import { addToIndex } from "./archive-index.ts";
import { KEPT, LOAD_MESSAGES, LOAD_THREAD } from "./archive-queries.ts";
import { archivesJson, checkNothingLost, compactionOf } from "./archive-rows.ts";
import type { Query, Tables } from "./archive-tables.ts";
import { contextAfter, PostgresArchives, strays } from "./archives.ts";
import { importValues } from "./import.ts";
import { toJsonb } from "./jsonb.ts";
import { answerList, cursorText, messagePage, runPage, threadPage } from "./listings.ts";
import { checkOptions, type PostgresOptions } from "./options.ts";
import { type Place, placeOf } from "./place.ts";
import * as Q from "./queries.ts";
import { BACKEND, readAnswer, readExtra, readMessage, readPending } from "./rows.ts";
import { archivesCapability, type FoundArchives, verifySchema } from "./schema.ts";
import { archivePrefix, DEFAULT_PREFIX, onTables, type TableNames } from "./tables.ts";
import { checkCut, checkExpected } from "./verdicts.ts";

export type { PgClient, PgPool, PostgresConfig, PostgresTarget } from "../../db/postgres.ts";
export { type Migration, migrate, planMigration } from "./migrate.ts";
export {
  ARCHIVE_SCHEMA_VERSION,
  archiveSchemaSql,
  createMessagePartitionsSql,
  createRunsPartitionsSql,
  PARTITION_COUNT,
  SCHEMA_VERSION,
  schemaSql,
  upgradeSql,
  writeArchiveVersionSql,
  writeSchemaVersionSql,
} from "./schema.ts";
export type { PostgresOptions, TableNames };

const SERVERS_OWN = "The server has tools of its own for this, such as pg_dump and pg_amcheck.";

export class PostgresCheckpointer implements Checkpointer {
  readonly capabilities: Capabilities;
  readonly archives: PostgresArchives | undefined;
  /** The Postgres schema that holds the tables. */
  readonly schema: string;
  readonly place: Place;
  readonly #store: PostgresStore;
  readonly #names: TableNames;
  readonly #prefix: string;
  readonly #tables: Tables;
  readonly #sql = new Map<string, string>();

  private constructor(store: PostgresStore, names: TableNames & { schema: string }, found: FoundArchives) {
    this.#store = store;
    this.#names = names;
    this.#prefix = names.tablePrefix ?? DEFAULT_PREFIX;
    this.schema = names.schema;
    this.place = placeOf((sql) => this.#readOne("copy", sql, []), { schema: this.schema, prefix: this.#prefix });
    this.#tables = {
      prefix: this.#prefix,
      archivePrefix: archivePrefix(names),
      indexed: !found.missing.includes("archive_sources"),
      assertOpen: (operation) => this.#store.assertOpen(operation),
      read: (operation, queries) => this.#read(operation, queries),
      write: (operation, threadIds, queries) => this.#writeAll(operation, threadIds, queries),
    };
    const archives = archivesCapability(found, names);
    if (archives === true) this.archives = new PostgresArchives(this.#tables);
    this.capabilities = {
      backend: BACKEND,
      durable: true,
      multiProcess: true,
      archives,
      search: archives,
      backup: { reason: SERVERS_OWN },
      integrityCheck: { reason: SERVERS_OWN },
    };
  }

  /**
   * Opens a store: connects, and checks that the tables are there. It creates nothing: migrations belong to the host
   * (`schemaSql`, `upgradeSql`).
   *
   * @param target a connection string, pg's options, or `{ pool }`, a pool of the host, which is never ended here
   * @throws StoreOpenError, SchemaUninitializedError, SchemaMismatchError, PoolExhaustedError, InvalidArgumentError
   */
  static async open(target: PostgresTarget, options: PostgresOptions = {}): Promise<PostgresCheckpointer> {
    checkOptions(options);
    const store = await PostgresStore.open(target, options);
    try {
      await store.connect();
      const { schema, archives } = await verifySchema(store, options);
      return new PostgresCheckpointer(store, { schema, tablePrefix: options.tablePrefix }, archives);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  async load(threadId: string, options: { after?: number | undefined } = {}): Promise<Checkpoint | undefined> {
    this.#store.assertOpen("load");
    checkThreadId(threadId);
    const values = [threadId, checkRevision(options.after, "after") ?? null];
    const [threads, rows] = await this.#read("load", [
      [this.archives ? LOAD_THREAD : Q.LOAD_THREAD, values],
      [this.archives ? LOAD_MESSAGES : Q.LOAD_MESSAGES, values],
    ]);
    const thread = threads?.[0];
    if (!thread) return undefined;
    const { base, last, parent_thread_id, tail } = thread;
    const parentThreadId = parent_thread_id ?? null;
    if (last === null && thread.extra === "{}" && parentThreadId === null) return undefined;
    return {
      messages: (rows ?? []).map((row) => readMessage(this.#prefix, threadId, row)),
      ...compactionOf(thread, rows ?? []),
      extra: readExtra(this.#prefix, threadId, thread.extra),
      revision: last === null ? 0 : Number(base) + Number(last),
      parentThreadId,
      tail: tail === "t",
    };
  }

  async append(
    threadId: string,
    messages: readonly Message[],
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#store.assertOpen("append");
    checkThreadId(threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const batch = batchOf(admitMessages(messages));
    if (batch.count === 0) {
      const row = await this.#readOne("append", Q.REVISION, [threadId]);
      return checkExpected(threadId, expected, Number(row?.revision ?? 0));
    }
    const write = (sql: string, values: Value[]) => this.#write("append", [threadId], sql, values);
    return await appendBatch(write, threadId, expected, batch);
  }

  async saveExtra(
    threadId: string,
    extra: JsonObject,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("saveExtra");
    checkThreadId(threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const values = [threadId, expected ?? null, toJsonb(copyJsonObject(extra, "extra"))];
    const row = await this.#write("saveExtra", [threadId], Q.SAVE_EXTRA, values);
    checkExpected(threadId, expected, Number(row?.actual));
  }

  async claimRun(threadId: string, runId: string): Promise<void> {
    this.#store.assertOpen("claimRun");
    checkThreadId(threadId);
    checkNewRunId(runId);
    const row = await this.#write("claimRun", [threadId], Q.CLAIM_RUN, [threadId, runId]);
    if (row?.completed === "f") throw new RunAlreadyClaimedError(threadId, runId);
    if (row?.completed === "t") throw new RunAlreadyCompletedError(threadId, runId);
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    this.#store.assertOpen("markRunComplete");
    checkThreadId(threadId);
    checkRunId(runId);
    const row = await this.#write("markRunComplete", [threadId], Q.COMPLETE_RUN, [threadId, runId]);
    if (row?.claimed !== "t") throw new RunNotClaimedError(threadId, runId);
  }

  async snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]> {
    this.#store.assertOpen("snapshot");
    checkThreadId(threadId);
    const afterRunId = checkRunId(options.afterRunId);
    if (this.archives) return (await contextAfter(this.#tables, "snapshot", threadId, afterRunId)).messages;
    const values = [threadId, afterRunId];
    const [cuts, rows] = await this.#read("snapshot", [
      [Q.CUT, values],
      [Q.SNAPSHOT, values],
    ]);
    checkCut(threadId, afterRunId, cuts?.[0]);
    return (rows ?? []).map((row) => readMessage(this.#prefix, threadId, row));
  }

  async fork(
    sourceThreadId: string,
    newThreadId: string,
    options: { afterRunId: string; metadata?: JsonObject | undefined },
  ): Promise<void> {
    this.#store.assertOpen("fork");
    checkThreadId(sourceThreadId);
    checkThreadId(newThreadId);
    checkRunId(options.afterRunId);
    const metadata = options.metadata === undefined ? null : toJsonb(copyJsonObject(options.metadata, "metadata"));
    const values = [sourceThreadId, options.afterRunId, newThreadId];
    const queries: Query[] = this.archives
      ? [
          [KEPT, values.slice(0, 2)],
          ...strays(newThreadId, this.#tables.indexed),
          [C.FORK, [...values, metadata]],
          [C.FORK_ARCHIVES, values],
          ...(this.#tables.indexed ? [[C.FORK_SOURCES, values] satisfies Query] : []),
        ]
      : [[Q.FORK, [...values, metadata]]];
    const results = await this.#writeAll("fork", [sourceThreadId, newThreadId], queries);
    const resultOf = (sql: string) => results[queries.findIndex(([query]) => query === sql)]?.[0];
    const row = resultOf(this.archives ? C.FORK : Q.FORK);
    checkCut(sourceThreadId, options.afterRunId, row);
    checkNothingLost(sourceThreadId, resultOf(KEPT));
    if (row?.begun !== "t") throw new ThreadAlreadyExistsError(newThreadId);
  }

  async savePendingRequest(
    threadId: string,
    request: PendingRequest | null,
    options: { runId?: string | null | undefined; expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("savePendingRequest");
    checkThreadId(threadId);
    const runId = checkOptionalRunId(options.runId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const at = [threadId, expected ?? null];
    const row =
      request === null
        ? await this.#write("savePendingRequest", [threadId], Q.CLEAR_PENDING, at)
        : await this.#write("savePendingRequest", [threadId], Q.SAVE_PENDING, [...at, pendingJson(request), runId]);
    checkExpected(threadId, expected, Number(row?.actual));
  }

  async loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    this.#store.assertOpen("loadPending");
    checkThreadId(threadId);
    const row = await this.#readOne("loadPending", Q.PENDING, [threadId]);
    return row && { request: readPending(this.#prefix, threadId, row.request), runId: row.run_id ?? null };
  }

  async clearPendingRequestIfMatches(
    threadId: string,
    match: { questionId: string; runId: string | null },
  ): Promise<boolean> {
    this.#store.assertOpen("clearPendingRequestIfMatches");
    checkThreadId(threadId);
    const question = escapeText(checkQuestionId(match.questionId));
    const values = [threadId, question, checkOptionalRunId(match.runId), null];
    return (await this.#write("clearPendingRequestIfMatches", [threadId], Q.TAKE_PENDING, values)) !== undefined;
  }

  async answerPending(
    threadId: string,
    given: { questionId: string; runId: string | null; answer: JsonValue; next?: PendingRequest | null | undefined },
  ): Promise<boolean> {
    this.#store.assertOpen("answerPending");
    checkThreadId(threadId);
    const question = checkQuestionId(given.questionId);
    const runId = checkOptionalRunId(given.runId);
    const answer = toJsonb(copyJson(given.answer, "answer"));
    const next = given.next ? pendingJson(given.next) : null;
    const values = [threadId, escapeText(question), runId, next, runId ?? "", question, answer];
    return (await this.#write("answerPending", [threadId], Q.ANSWER_PENDING, values)) !== undefined;
  }

  async saveHitlAnswer(
    threadId: string,
    questionId: string,
    answer: JsonValue,
    options: { runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("saveHitlAnswer");
    checkThreadId(threadId);
    checkQuestionId(questionId);
    const runId = checkOptionalRunId(options.runId) ?? "";
    const values = [threadId, runId, questionId, toJsonb(copyJson(answer, "answer"))];
    await this.#write("saveHitlAnswer", [threadId], Q.SAVE_ANSWER, values);
  }

  async loadHitlAnswer(
    threadId: string,
    questionId: string,
    options: { runId?: string | null | undefined } = {},
  ): Promise<JsonValue | undefined> {
    this.#store.assertOpen("loadHitlAnswer");
    checkThreadId(threadId);
    checkQuestionId(questionId);
    const runId = checkOptionalRunId(options.runId) ?? "";
    const row = await this.#readOne("loadHitlAnswer", Q.ANSWER, [threadId, runId, questionId]);
    return row && readAnswer(this.#prefix, threadId, questionId, row.answer);
  }

  async listHitlAnswers(threadId: string): Promise<RecordedAnswer[]> {
    this.#store.assertOpen("listHitlAnswers");
    checkThreadId(threadId);
    const [rows = []] = await this.#read("listHitlAnswers", [[Q.ANSWERS, [threadId]]]);
    return answerList(rows, threadId, this.#prefix);
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("clearHitlAnswers");
    checkThreadId(threadId);
    const runId = checkOptionalRunId(options.runId) ?? "";
    const questionIds = options.questionIds?.map(checkQuestionId);
    const values = [threadId, runId, questionIds ? JSON.stringify(questionIds) : null];
    await this.#write("clearHitlAnswers", [threadId], Q.DELETE_ANSWERS, values);
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    this.#store.assertOpen("listMessages");
    checkThreadId(threadId);
    const checked = { after: checkRevision(page.after, "after") ?? 0, limit: checkLimit(page.limit) };
    const values = [threadId, checked.after, checked.limit + 1];
    const [rows = []] = await this.#read("listMessages", [[Q.LOG_AFTER, values]]);
    return messagePage(rows, checked, threadId, this.#prefix);
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    this.#store.assertOpen("listThreads");
    const prefix = checkText(page.prefix, "prefix") ?? "";
    const checked = { after: checkText(page.after, "after") ?? "", limit: checkLimit(page.limit) };
    if (prefix.includes("\0") || !prefix.isWellFormed()) return { items: [], next: null };
    const values = [cursorText(checked.after), prefix, checked.limit + 1];
    const [rows = []] = await this.#read("listThreads", [[Q.THREADS_AFTER, values]]);
    return threadPage(rows, checked);
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    this.#store.assertOpen("listRuns");
    checkThreadId(threadId);
    const checked = { after: checkText(page.after, "after") ?? "", limit: checkLimit(page.limit) };
    const values = [threadId, cursorText(checked.after), checked.limit + 1];
    const [rows = []] = await this.#read("listRuns", [[Q.RUNS_AFTER, values]]);
    return runPage(rows, checked);
  }

  async importThread(
    threadId: string,
    part: ThreadPart,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#store.assertOpen("importThread");
    checkThreadId(threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitPart(part, this.capabilities);
    const archives = admitted.archives ?? [];
    const queries: Query[] = [[Q.IMPORT, importValues(threadId, expected, admitted)]];
    if (this.archives && admitted.archives) {
      if (this.#tables.indexed) queries.push([C.DROP_SOURCES, [threadId]]);
      queries.push([C.DROP_ARCHIVES, [threadId]], [C.IMPORT_ARCHIVES, [threadId, archivesJson(archives)]]);
    }
    const [[row] = []] = await this.#writeAll("importThread", [threadId], queries);
    const actual = checkExpected(threadId, expected, Number(row?.actual));
    if (typeof row?.messages === "string") checkArchiveCounts(archives, Number(row.messages));
    if (archives.length > 0) await addToIndex(this.#tables, threadId);
    return typeof row?.revision === "string" ? Number(row.revision) : actual;
  }

  async deleteThread(threadId: string): Promise<boolean> {
    this.#store.assertOpen("deleteThread");
    checkThreadId(threadId);
    return (await this.#write("deleteThread", [threadId], Q.DELETE_THREAD, [threadId]))?.something === "t";
  }

  async backup(_path: string): Promise<void> {
    this.#store.assertOpen("backup");
    throw new UnsupportedError(BACKEND, "backup", SERVERS_OWN);
  }

  async checkIntegrity(): Promise<string[]> {
    this.#store.assertOpen("checkIntegrity");
    throw new UnsupportedError(BACKEND, "checkIntegrity", SERVERS_OWN);
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #statement(query: string, values: readonly Value[]): Statement {
    let text = this.#sql.get(query);
    if (text === undefined) {
      text = onTables(query, this.#names);
      this.#sql.set(query, text);
    }
    return { text, values };
  }

  async #read(operation: string, queries: readonly Query[]): Promise<Row[][]> {
    return await this.#store.read(
      operation,
      queries.map(([sql, values]) => this.#statement(sql, values)),
    );
  }

  async #readOne(operation: string, sql: string, values: readonly Value[]): Promise<Row | undefined> {
    return (await this.#read(operation, [[sql, values]]))[0]?.[0];
  }

  /** Runs one statement while it holds the threads' locks, and gives its first row. */
  async #write(
    operation: string,
    threadIds: [string, ...string[]],
    sql: string,
    values: readonly Value[],
  ): Promise<Row | undefined> {
    return (await this.#writeAll(operation, threadIds, [[sql, values]]))[0]?.[0];
  }

  async #writeAll(operation: string, threadIds: [string, ...string[]], queries: readonly Query[]): Promise<Row[][]> {
    const statements = queries.map(([sql, values]) => this.#statement(sql, values));
    return await this.#store.write(operation, threadIds, statements);
  }
}

function pendingJson(request: PendingRequest): string {
  return toJsonb(admitPending(request) as unknown as JsonObject);
}
