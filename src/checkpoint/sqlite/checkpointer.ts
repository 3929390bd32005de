/** The SQLite engine: CubeLoop's file, one log of messages for all threads of it. */

import { type SqliteOptions, SqliteStore, type Steps } from "../../db/sqlite.ts";
import { openSqliteFile } from "../../db/sqlite-file.ts";
import { checkSqliteOptions } from "../../db/sqlite-options.ts";
import { admitMessages } from "../../messages/admit.ts";
import { messageToJson } from "../../messages/codec.ts";
import { copyJson, copyJsonObject, type JsonObject, type JsonValue, parseKeepingNumbers } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import {
  checkNewRunId,
  checkOptionalRunId,
  checkQuestionId,
  checkRunId,
  checkThreadId,
  MAX_RUN_ID_LENGTH,
} from "../../util/ids.ts";
import type { ContextAfter } from "../archives.ts";
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
  RunNotCompletedError,
  ThreadAlreadyExistsError,
  ThreadConflictError,
  ThreadNotFoundError,
} from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitPart } from "../part.ts";
import { admitPending, checkPending, type PendingRequest } from "../pending.ts";
import { lastArchive, revisionOf } from "./archive-rows.ts";
import { deleteArchives, forkArchives, forkedArchives, putArchives } from "./archive-writes.ts";
import { SqliteArchives } from "./archives.ts";
import { listHitlAnswers, listMessages, listRuns, listThreads } from "./listings.ts";
import * as Q from "./queries.ts";
import { BACKEND, readAnswer, readExtra, readJson, readMessage } from "./rows.ts";
import { prepareSchema } from "./schema.ts";
import { mergeExtra, putPart } from "./writes.ts";

export type { SqliteOptions };

export interface SqliteCheckpointerOptions extends SqliteOptions {
  /** Told how far an index of older archives has come, which opening makes. (Default: nobody) */
  onUpgrade?: ((done: number, total: number) => void) | undefined;
}

export class SqliteCheckpointer implements Checkpointer {
  readonly capabilities: Capabilities;
  /** The absolute path of the file, or ":memory:". */
  readonly path: string;
  readonly archives: SqliteArchives;
  readonly #store: SqliteStore;

  private constructor(store: SqliteStore, path: string) {
    this.#store = store;
    this.path = path;
    this.archives = new SqliteArchives(store, {
      standing: (threadId, expected) => {
        const revision = this.#checkRevision(threadId, expected);
        if (!this.#exists(threadId)) throw new ThreadNotFoundError(threadId);
        return revision;
      },
      contextAfter: (threadId, afterRunId) => this.#contextAfter(threadId, afterRunId),
    });
    const inMemory = path === ":memory:" ? { reason: "It lives in this process's memory (:memory:)." } : true;
    this.capabilities = {
      backend: BACKEND,
      durable: inMemory,
      multiProcess: inMemory,
      archives: true,
      search: true,
      backup: true,
      integrityCheck: true,
    };
  }

  /**
   * Opens a store, creating the file and its tables when they are not there, and bringing an older file up to date. The
   * directory must exist; a relative path is resolved now. A new file may be read and written by its owner only.
   *
   * @param path a file name, a file: URL, or ":memory:"
   * @throws StoreOpenError, SchemaMismatchError, LockTimeoutError, StoreError, InvalidArgumentError
   */
  static async open(path: string | URL, given: SqliteCheckpointerOptions = {}): Promise<SqliteCheckpointer> {
    const { onUpgrade, ...options } = given;
    checkSqliteOptions(options, "SqliteCheckpointer");
    const file = openSqliteFile(path, options.readOnly ?? false);
    const store = await SqliteStore.open(file, options);
    try {
      await prepareSchema(store, file.path, onUpgrade);
      if (options.journalMode) await store.setJournalMode(options.journalMode);
    } catch (error) {
      await store.close();
      throw error;
    }
    return new SqliteCheckpointer(store, file.path);
  }

  async load(threadId: string, options: { after?: number | undefined } = {}): Promise<Checkpoint | undefined> {
    this.#store.assertOpen("load");
    checkThreadId(threadId);
    const after = checkRevision(options.after, "after");
    return await this.#store.read("load", () => {
      const archive = lastArchive(this.#store, threadId);
      const cut = archive?.upTo ?? 0;
      const begins = after === 0 && !archive;
      const stands = after !== undefined && after > cut && this.#get(Q.HAS_POSITION, after, threadId) !== undefined;
      const tail = begins || stands;
      const start = tail ? (after ?? 0) : cut;
      const rows = this.#store.prepare(Q.MESSAGES_AFTER).all(threadId, start);
      const extraRow = this.#get(Q.EXTRA, threadId);
      if (rows.length === 0 && start === 0 && !extraRow && !archive) return undefined;
      return {
        messages: rows.map((row) => readMessage(threadId, row.id, row.message_json)),
        ...(archive && {
          summary: archive.summary,
          compactedUpTo: cut,
          kept: rows.filter(({ id }) => Number(id) <= archive.atRevision).length,
        }),
        extra: extraRow ? readExtra(threadId, extraRow.extra_json) : {},
        revision: Number(rows.at(-1)?.id ?? start),
        parentThreadId: (extraRow?.parent_thread_id as string | null | undefined) ?? null,
        tail,
      };
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
    const admitted = admitMessages(messages);
    const rows = admitted.map((message) => ({ json: messageToJson(message), runId: message.run_id ?? null }));
    const runIds = new Set(rows.flatMap(({ runId }) => runId ?? []));
    if (rows.length === 0) return await this.#store.read("append", () => this.#checkRevision(threadId, expected));
    return await this.#store.write("append", () => {
      if (expected !== undefined) this.#checkRevision(threadId, expected);
      for (const runId of runIds) this.#checkOpenRun(threadId, runId);
      const insert = this.#store.prepare(Q.INSERT_MESSAGE);
      let revision = 0;
      for (const { json, runId } of rows) revision = Number(insert.run(threadId, json, runId).lastInsertRowid);
      return revision;
    });
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
    await this.#store.write("saveExtra", () => {
      if (expected !== undefined) this.#checkRevision(threadId, expected);
      mergeExtra(this.#store, threadId, changes);
    });
  }

  async claimRun(threadId: string, runId: string): Promise<void> {
    this.#store.assertOpen("claimRun");
    checkThreadId(threadId);
    checkNewRunId(runId);
    await this.#store.write("claimRun", () => {
      const run = this.#get(Q.RUN, threadId, runId);
      if (run) {
        const RunError = run.completed_at === null ? RunAlreadyClaimedError : RunAlreadyCompletedError;
        throw new RunError(threadId, runId);
      }
      this.#store.prepare(Q.INSERT_RUN).run(threadId, runId);
    });
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    this.#store.assertOpen("markRunComplete");
    checkThreadId(threadId);
    checkRunId(runId);
    await this.#store.write("markRunComplete", () => {
      const run = this.#get(Q.RUN, threadId, runId);
      if (!run) throw new RunNotClaimedError(threadId, runId);
      if (run.completed_at === null) this.#store.prepare(Q.COMPLETE_RUN).run({ thread: threadId, run: runId });
    });
  }

  async snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]> {
    this.#store.assertOpen("snapshot");
    checkThreadId(threadId);
    checkRunId(options.afterRunId);
    return await this.#store.read("snapshot", () => this.#contextAfter(threadId, options.afterRunId).messages);
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
    const metadata = options.metadata === undefined ? undefined : copyJsonObject(options.metadata, "metadata");
    await this.#store.writeInSteps("fork", () => this.#fork(sourceThreadId, newThreadId, options.afterRunId, metadata));
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
    const json = request === null ? null : JSON.stringify(admitPending(request));
    await this.#store.write("savePendingRequest", () => {
      if (expected !== undefined) this.#checkRevision(threadId, expected);
      if (json === null) this.#store.prepare(Q.DELETE_PENDING).run(threadId);
      else this.#store.prepare(Q.SAVE_PENDING).run(threadId, json, runId);
    });
  }

  async loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    this.#store.assertOpen("loadPending");
    checkThreadId(threadId);
    return await this.#store.read("loadPending", () => {
      const row = this.#get(Q.PENDING, threadId);
      if (!row) return undefined;
      const rowRef = `thread_pending_request.thread_id=${JSON.stringify(threadId)}`;
      const request = readJson(threadId, rowRef, row.request_json, checkPending);
      return { request, runId: (row.run_id as string | null) ?? null };
    });
  }

  async clearPendingRequestIfMatches(
    threadId: string,
    match: { questionId: string; runId: string | null },
  ): Promise<boolean> {
    this.#store.assertOpen("clearPendingRequestIfMatches");
    checkThreadId(threadId);
    checkQuestionId(match.questionId);
    const runId = checkOptionalRunId(match.runId);
    return await this.#store.write("clearPendingRequestIfMatches", () =>
      this.#takePending(threadId, match.questionId, runId),
    );
  }

  async answerPending(
    threadId: string,
    given: { questionId: string; runId: string | null; answer: JsonValue; next?: PendingRequest | null | undefined },
  ): Promise<boolean> {
    this.#store.assertOpen("answerPending");
    checkThreadId(threadId);
    checkQuestionId(given.questionId);
    const runId = checkOptionalRunId(given.runId);
    const answer = JSON.stringify(copyJson(given.answer, "answer"));
    const next = given.next ? JSON.stringify(admitPending(given.next)) : null;
    return await this.#store.write("answerPending", () => {
      if (!this.#takePending(threadId, given.questionId, runId)) return false;
      this.#store.prepare(Q.SAVE_ANSWER).run(threadId, runId ?? "", given.questionId, answer);
      if (next !== null) this.#store.prepare(Q.SAVE_PENDING).run(threadId, next, runId);
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
    const runId = checkOptionalRunId(options.runId);
    const json = JSON.stringify(copyJson(answer, "answer"));
    await this.#store.write("saveHitlAnswer", () => {
      this.#store.prepare(Q.SAVE_ANSWER).run(threadId, runId ?? "", questionId, json);
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
    const runId = checkOptionalRunId(options.runId) ?? "";
    return await this.#store.read("loadHitlAnswer", () => {
      const row = this.#get(Q.ANSWER, threadId, runId, questionId);
      return row && readAnswer(threadId, questionId, row.answer_json);
    });
  }

  async listHitlAnswers(threadId: string): Promise<RecordedAnswer[]> {
    this.#store.assertOpen("listHitlAnswers");
    checkThreadId(threadId);
    return await this.#store.read("listHitlAnswers", () => listHitlAnswers(this.#store, threadId));
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("clearHitlAnswers");
    checkThreadId(threadId);
    const runId = checkOptionalRunId(options.runId) ?? "";
    const questionIds = options.questionIds?.map(checkQuestionId);
    await this.#store.write("clearHitlAnswers", () => {
      if (!questionIds) this.#store.prepare(Q.DELETE_ANSWERS).run(threadId, runId);
      for (const id of questionIds ?? []) this.#store.prepare(Q.DELETE_ANSWER).run(threadId, runId, id);
    });
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    this.#store.assertOpen("listMessages");
    checkThreadId(threadId);
    const checked = { after: checkRevision(page.after, "after") ?? 0, limit: checkLimit(page.limit) };
    return await this.#store.read("listMessages", () => listMessages(this.#store, threadId, checked));
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    this.#store.assertOpen("listThreads");
    const prefix = checkText(page.prefix, "prefix") ?? "";
    const checked = { after: checkText(page.after, "after"), limit: checkLimit(page.limit), prefix };
    return await this.#store.read("listThreads", () => listThreads(this.#store, checked));
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    this.#store.assertOpen("listRuns");
    checkThreadId(threadId);
    const checked = { after: checkText(page.after, "after") ?? "", limit: checkLimit(page.limit) };
    return await this.#store.read("listRuns", () => listRuns(this.#store, threadId, checked));
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
    const store = this.#store;
    const put = () => putPart(store, threadId, admitted) ?? this.#checkRevision(threadId, undefined);
    if (!admitted.archives) {
      return await store.write("importThread", () => {
        this.#checkRevision(threadId, expected);
        return put();
      });
    }
    const { archives } = admitted;
    const check = () => this.#checkRevision(threadId, expected);
    return await store.writeInSteps("importThread", function* () {
      check();
      const revision = put();
      yield* putArchives(store, threadId, archives);
      return revision;
    });
  }

  async deleteThread(threadId: string): Promise<boolean> {
    this.#store.assertOpen("deleteThread");
    checkThreadId(threadId);
    const store = this.#store;
    return await store.writeInSteps("deleteThread", function* () {
      yield* deleteArchives(store, threadId);
      const changes = Q.DELETE_THREAD.map((sql) => Number(store.prepare(sql).run(threadId).changes));
      return changes.some((count) => count > 0);
    });
  }

  async backup(path: string): Promise<void> {
    await this.#store.backup(path);
  }

  async checkIntegrity(): Promise<string[]> {
    return await this.#store.checkIntegrity();
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #get(sql: string, ...parameters: (string | number | null)[]) {
    return this.#store.prepare(sql).get(...parameters);
  }

  #checkRevision(threadId: string, expected: number | undefined): number {
    const actual = revisionOf(this.#store, threadId);
    if (expected !== undefined && actual !== expected) throw new ThreadConflictError(threadId, expected, actual);
    return actual;
  }

  #checkOpenRun(threadId: string, runId: string): void {
    const run = this.#get(Q.RUN, threadId, runId);
    if (run && run.completed_at !== null) throw new RunAlreadyCompletedError(threadId, runId);
    // A longer id is taken only where another program began that run in this file.
    if (!run && runId.length > MAX_RUN_ID_LENGTH) checkNewRunId(runId);
  }

  #exists(threadId: string): boolean {
    return this.#store.prepare(Q.THREAD_EXISTS).get({ thread: threadId })?.found === 1;
  }

  /** The completion number up to which a fork or snapshot takes runs. */
  #cut(threadId: string, afterRunId: string): number {
    if (!this.#exists(threadId)) throw new ThreadNotFoundError(threadId);
    const seq = this.#get(Q.RUN, threadId, afterRunId)?.completion_seq;
    if (typeof seq !== "number") throw new RunNotCompletedError(threadId, afterRunId);
    return seq;
  }

  *#fork(source: string, target: string, afterRunId: string, metadata: JsonObject | undefined): Steps<void> {
    const store = this.#store;
    const cut = this.#cut(source, afterRunId);
    const archives = forkedArchives(store, source, cut);
    if (this.#exists(target)) throw new ThreadAlreadyExistsError(target);
    store.prepare(Q.FORK_MESSAGES).run({ source, cut, target });
    store.prepare(Q.FORK_RUNS).run({ source, cut, target });
    const row = this.#get(Q.EXTRA, source);
    const extra = row ? readExtra(source, row.extra_json, parseKeepingNumbers) : {};
    if (metadata) extra.fork = metadata;
    store.prepare(Q.INSERT_FORK_EXTRA).run(target, JSON.stringify(extra), source);
    yield* forkArchives(store, source, target, cut, archives);
  }

  #contextAfter(threadId: string, afterRunId: string): ContextAfter {
    const cut = this.#cut(threadId, afterRunId);
    const last = forkedArchives(this.#store, threadId, cut).at(-1);
    const rows = this.#store.prepare(Q.SNAPSHOT).all({ source: threadId, cut, start: last?.upTo ?? 0 });
    const messages = rows.map((row) => readMessage(threadId, row.id, row.message_json));
    return { messages, ...(last && { summary: last.summary }) };
  }

  #takePending(threadId: string, questionId: string, runId: string | null): boolean {
    return Number(this.#store.prepare(Q.DELETE_PENDING_IF_MATCHES).run(threadId, questionId, runId).changes) === 1;
  }
}
