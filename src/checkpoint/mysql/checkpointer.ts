/** The MySQL engine, for MySQL 8 and MariaDB: CubeLoop's tables, shared by many machines. */
import { MySqlStore, type MySqlTarget, type Session } from "../../db/mysql.ts";
import { admitMessages } from "../../messages/admit.ts";
import { copyJson, copyJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkRunId, checkThreadId } from "../../util/ids.ts";
import type {
  Capabilities,
  Capability,
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
import { ThreadNotFoundError, UnsupportedError } from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitPart } from "../part.ts";
import { admitPending, type PendingRequest } from "../pending.ts";
import { appendBatch, checkSize, rowsOf } from "./append.ts";
import { readActive } from "./archive-load.ts";
import { type ArchiveQueries, archiveQueriesFor } from "./archive-queries.ts";
import { MySQLArchives } from "./archives.ts";
import { toColumn } from "./columns.ts";
import { mergeExtra } from "./extra.ts";
import { forkThread } from "./fork.ts";
import { listAnswersOf, readAnswerOf, readPendingOf, saveAnswer, savePending, takePending } from "./hitl.ts";
import { importOf, importPart } from "./import.ts";
import { listMessages, listRuns, listThreads } from "./listings.ts";
import { checkOptions, checkPrefix, type MySqlOptions } from "./options.ts";
import { type Place, placeOf } from "./place.ts";
import { type Queries, queriesFor } from "./queries.ts";
import { BACKEND, readExtra, readMessage } from "./rows.ts";
import { claimRun, completeRun } from "./runs.ts";
import { archivesCapability, findArchives, verifySchema } from "./schema.ts";
import { checkExpected, cutOf, ensureThread, eraseThread, isUsed, lockThread, readLog, revisionOf } from "./threads.ts";

export type { MySqlConfig, MySqlPool, MySqlTarget } from "../../db/mysql.ts";
export { type Migration, migrate, planMigration } from "./migrate.ts";
export type { MySqlOptions } from "./options.ts";
export {
  ARCHIVE_SCHEMA_VERSION,
  archiveSchemaSql,
  createMessagePartitionsSql,
  createRunsPartitionsSql,
  exactIdsSql,
  PARTITION_COUNT,
  SCHEMA_VERSION,
  type SchemaOptions,
  schemaSql,
  upgradeSql,
  writeArchiveVersionSql,
  writeSchemaVersionSql,
} from "./schema.ts";

const SERVERS_BACKUP = "A server is copied with its own tools: mariadb-dump --single-transaction, or mysqldump.";
const SERVERS_CHECK = "A server checks itself: CHECK TABLE, or mariadb-check.";

export class MySQLCheckpointer implements Checkpointer {
  readonly capabilities: Capabilities;
  readonly archives: MySQLArchives | undefined;
  readonly place: Place;
  readonly #store: MySqlStore;
  readonly #tables: { prefix: string; queries: Queries; exact: boolean; archives: ArchiveQueries | undefined };

  private constructor(
    store: MySqlStore,
    { prefix, exact, collation, archives }: { prefix: string; exact: boolean; collation: string; archives: Capability },
  ) {
    this.#store = store;
    const queries = queriesFor(prefix);
    const archiveQueries = archives === true ? archiveQueriesFor(prefix, collation) : undefined;
    this.#tables = { prefix, queries, exact, archives: archiveQueries };
    if (archiveQueries) this.archives = new MySQLArchives(store, { prefix, queries, archives: archiveQueries });
    this.capabilities = {
      backend: BACKEND,
      durable: true,
      multiProcess: true,
      archives,
      search: archives,
      backup: { reason: SERVERS_BACKUP },
      integrityCheck: { reason: SERVERS_CHECK },
    };
    this.place = placeOf(store, prefix);
  }

  /**
   * Opens a store whose tables are there: {@link schemaSql} gives the SQL for them. Creates and changes nothing.
   *
   * @param target a mysql:// URL, a configuration, or `{ pool }` of mysql2, which stays the caller's to end
   * @throws StoreOpenError, SchemaUninitializedError, SchemaMismatchError, InvalidArgumentError
   */
  static async open(target: MySqlTarget, options: MySqlOptions = {}): Promise<MySQLCheckpointer> {
    checkOptions(options);
    const prefix = checkPrefix(options.tablePrefix);
    const store = await MySqlStore.open(target, options);
    try {
      const { exact, collation } = await verifySchema(store, prefix);
      const archives = archivesCapability(await findArchives(store, prefix), prefix);
      return new MySQLCheckpointer(store, { prefix, exact, collation, archives });
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  async load(threadId: string, options: { after?: number | undefined } = {}): Promise<Checkpoint | undefined> {
    this.#store.assertOpen("load");
    checkThreadId(threadId);
    const after = checkRevision(options.after, "after");
    const { prefix, queries, archives } = this.#tables;
    const readFrom = async (session: Session, from: number) =>
      archives ? await readActive(session, archives, threadId, from) : await readLog(session, queries, threadId, from);
    return await this.#store.read("load", async (session) => {
      // One statement is one snapshot. With `after` it gives that row too, which says whether the position is of this log.
      let log = await readFrom(session, after ?? 0);
      const begins = after === 0 && !log?.compaction;
      const tail = after !== undefined && (begins || (after > 0 && log?.firstPosition === after));
      if (after !== undefined && after > 0 && !tail) log = await readFrom(session, 0);
      if (!log) return undefined;
      const rows = tail && after > 0 ? log.rows.slice(1) : log.rows;
      const extra = readExtra(prefix, threadId, log.thread.json);
      const parentThreadId = log.thread.parent_thread_id as string | null;
      const empty = log.lastPosition === 0 && parentThreadId === null && Object.keys(extra).length === 0;
      if (empty) return undefined;
      const messages = rows.map((row) => readMessage(prefix, threadId, row));
      const compaction = log.compaction && { ...log.compaction, kept: log.compaction.kept(rows) };
      return { messages, ...compaction, extra, revision: log.lastPosition, parentThreadId, tail };
    });
  }

  async append(
    threadId: string,
    messages: readonly Message[],
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#store.assertOpen("append");
    checkThreadId(threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const { maxPacket } = this.#store;
    const rows = rowsOf(admitMessages(messages), maxPacket);
    const { queries } = this.#tables;
    if (rows.length === 0) {
      const actual = await this.#store.read("append", (session) => revisionOf(session, queries, threadId));
      checkExpected(threadId, expected, actual);
      return actual;
    }
    const write = (run: (session: Session) => Promise<number>) => this.#store.write("append", run);
    return await appendBatch(write, queries, { threadId, expected, rows, maxPacket });
  }

  async saveExtra(
    threadId: string,
    extra: JsonObject,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("saveExtra");
    checkThreadId(threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const changes = copyJsonObject(extra, "extra");
    const { queries } = this.#tables;
    await this.#store.write("saveExtra", async (session) => {
      const { revision } = await ensureThread(session, queries, threadId);
      checkExpected(threadId, expected, revision);
      await mergeExtra(session, this.#tables, threadId, { changes, maxPacket: this.#store.maxPacket });
    });
  }

  async claimRun(threadId: string, runId: string): Promise<void> {
    this.#store.assertOpen("claimRun");
    checkThreadId(threadId);
    checkNewRunId(runId);
    const { queries } = this.#tables;
    await this.#store.write("claimRun", (session) => claimRun(session, queries, threadId, runId));
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    this.#store.assertOpen("markRunComplete");
    checkThreadId(threadId);
    checkRunId(runId);
    const { queries } = this.#tables;
    await this.#store.write("markRunComplete", (session) => completeRun(session, queries, threadId, runId));
  }

  async snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]> {
    this.#store.assertOpen("snapshot");
    checkThreadId(threadId);
    const afterRunId = checkRunId(options.afterRunId);
    if (this.archives) return (await this.archives.contextOf("snapshot", threadId, afterRunId)).messages;
    const { prefix, queries } = this.#tables;
    return await this.#store.snapshot("snapshot", async (session) => {
      if (!(await isUsed(session, queries, threadId))) throw new ThreadNotFoundError(threadId);
      const cut = await cutOf(session, queries, threadId, afterRunId);
      const rows = await session.rows(queries.SNAPSHOT, [threadId, threadId, cut]);
      return rows.map((row) => readMessage(prefix, threadId, row));
    });
  }

  async fork(
    sourceThreadId: string,
    newThreadId: string,
    options: { afterRunId: string; metadata?: JsonObject | undefined },
  ): Promise<void> {
    this.#store.assertOpen("fork");
    const source = checkThreadId(sourceThreadId);
    const target = checkThreadId(newThreadId);
    const afterRunId = checkRunId(options.afterRunId);
    const metadata = options.metadata === undefined ? undefined : copyJsonObject(options.metadata, "metadata");
    const { maxPacket } = this.#store;
    const { prefix, queries } = this.#tables;
    const archives = this.#tables.archives && { prefix, queries, archives: this.#tables.archives };
    await this.#store.write("fork", (session) =>
      forkThread(session, this.#tables, { source, target, afterRunId, metadata, maxPacket, archives }),
    );
  }

  async savePendingRequest(
    threadId: string,
    request: PendingRequest | null,
    options: { runId?: string | null | undefined; expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("savePendingRequest");
    checkThreadId(threadId);
    // The column holds 64 characters: a longer id could not be found again.
    const runId = options.runId == null ? null : checkNewRunId(options.runId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const json = request === null ? null : this.#pendingJson(request);
    await this.#store.write("savePendingRequest", (session) =>
      savePending(session, this.#tables, { threadId, json, runId, expected }),
    );
  }

  async loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    this.#store.assertOpen("loadPending");
    checkThreadId(threadId);
    return await this.#store.read("loadPending", (session) => readPendingOf(session, this.#tables, threadId));
  }

  async clearPendingRequestIfMatches(
    threadId: string,
    match: { questionId: string; runId: string | null },
  ): Promise<boolean> {
    this.#store.assertOpen("clearPendingRequestIfMatches");
    checkThreadId(threadId);
    const questionId = checkQuestionId(match.questionId);
    const runId = checkOptionalRunId(match.runId);
    return await this.#store.write("clearPendingRequestIfMatches", (session) =>
      takePending(session, this.#tables, threadId, { questionId, runId, next: null }),
    );
  }

  async answerPending(
    threadId: string,
    given: { questionId: string; runId: string | null; answer: JsonValue; next?: PendingRequest | null | undefined },
  ): Promise<boolean> {
    this.#store.assertOpen("answerPending");
    checkThreadId(threadId);
    const questionId = checkQuestionId(given.questionId);
    const runId = checkOptionalRunId(given.runId);
    const json = this.#answerJson(given.answer);
    const next = given.next ? this.#pendingJson(given.next) : null;
    return await this.#store.write("answerPending", async (session) => {
      if (!(await takePending(session, this.#tables, threadId, { questionId, runId, next }))) return false;
      const key = { threadId, runId: runId ?? "", questionId };
      await saveAnswer(session, this.#tables, key, json);
      return true;
    });
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
    const json = this.#answerJson(answer);
    await this.#store.write("saveHitlAnswer", async (session) => {
      await ensureThread(session, this.#tables.queries, threadId);
      await saveAnswer(session, this.#tables, { threadId, runId, questionId }, json);
    });
  }

  async loadHitlAnswer(
    threadId: string,
    questionId: string,
    options: { runId?: string | null | undefined } = {},
  ): Promise<JsonValue | undefined> {
    this.#store.assertOpen("loadHitlAnswer");
    checkThreadId(threadId);
    checkQuestionId(questionId);
    const key = { threadId, runId: checkOptionalRunId(options.runId) ?? "", questionId };
    return await this.#store.read("loadHitlAnswer", (session) => readAnswerOf(session, this.#tables, key));
  }

  async listHitlAnswers(threadId: string): Promise<RecordedAnswer[]> {
    this.#store.assertOpen("listHitlAnswers");
    checkThreadId(threadId);
    return await this.#store.read("listHitlAnswers", (session) => listAnswersOf(session, this.#tables, threadId));
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("clearHitlAnswers");
    checkThreadId(threadId);
    const runId = checkOptionalRunId(options.runId) ?? "";
    const questionIds = options.questionIds?.map(checkQuestionId);
    const { queries } = this.#tables;
    await this.#store.write("clearHitlAnswers", async (session) => {
      if (!(await lockThread(session, queries, threadId))) return;
      if (!questionIds) await session.run(queries.DELETE_ANSWERS, [threadId, runId]);
      for (const id of questionIds ?? []) await session.run(queries.DELETE_ANSWER, [threadId, runId, id]);
    });
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    this.#store.assertOpen("listMessages");
    checkThreadId(threadId);
    const checked = { after: checkRevision(page.after, "after") ?? 0, limit: checkLimit(page.limit) };
    return await this.#store.read("listMessages", (session) => listMessages(session, this.#tables, threadId, checked));
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    this.#store.assertOpen("listThreads");
    const prefix = checkText(page.prefix, "prefix") ?? "";
    const checked = { after: checkText(page.after, "after") ?? "", limit: checkLimit(page.limit), prefix };
    return await this.#store.read("listThreads", (session) => listThreads(session, this.#tables, checked));
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    this.#store.assertOpen("listRuns");
    checkThreadId(threadId);
    const checked = { after: checkText(page.after, "after") ?? "", limit: checkLimit(page.limit) };
    const { queries } = this.#tables;
    return await this.#store.read("listRuns", (session) => listRuns(session, queries, threadId, checked));
  }

  async importThread(
    threadId: string,
    part: ThreadPart,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#store.assertOpen("importThread");
    checkThreadId(threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const given = importOf(threadId, expected, admitPart(part, this.capabilities), this.#store.maxPacket);
    return await this.#store.write("importThread", (session) => importPart(session, this.#tables, given));
  }

  async deleteThread(threadId: string): Promise<boolean> {
    this.#store.assertOpen("deleteThread");
    checkThreadId(threadId);
    const { queries, archives } = this.#tables;
    return await this.#store.write("deleteThread", async (session) => {
      if (!(await lockThread(session, queries, threadId))) return false;
      return await eraseThread(session, queries, threadId, archives?.DELETE);
    });
  }

  async backup(_path: string): Promise<void> {
    this.#store.assertOpen("backup");
    throw new UnsupportedError(BACKEND, "backup", SERVERS_BACKUP);
  }

  async checkIntegrity(): Promise<string[]> {
    this.#store.assertOpen("checkIntegrity");
    throw new UnsupportedError(BACKEND, "checkIntegrity", SERVERS_CHECK);
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #pendingJson(request: PendingRequest): string {
    return checkSize("request", toColumn(admitPending(request) as unknown as JsonObject), this.#store.maxPacket);
  }

  #answerJson(answer: JsonValue): string {
    return checkSize("answer", toColumn(copyJson(answer, "answer")), this.#store.maxPacket);
  }
}
