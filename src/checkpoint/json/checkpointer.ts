/** The JSON engine: snapshots that people can read, for one worker. See `format.ts` for the state.json, `archive-file.ts` for an archive. */
import { admitMessages } from "../../messages/admit.ts";
import { copyJson, copyJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkRunId, checkThreadId } from "../../util/ids.ts";
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
import { ThreadAlreadyExistsError } from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitPart } from "../part.ts";
import { checkPending, type PendingRequest } from "../pending.ts";
import {
  addMessages,
  answerKey,
  answersOf,
  checkExpected,
  claimRun,
  clearAnswers,
  completeRun,
  forkOf,
  mergeExtra,
  putPart,
  putPieces,
  storedPending,
  takePending,
} from "../thread-changes.ts";
import { pageById, runInfo } from "../thread-listings.ts";
import { checkpointOf, revisionOf } from "../thread-state.ts";
import { JsonArchives, NO_SEARCH } from "./archives.ts";
import { backupTo, checkFiles } from "./backup.ts";
import { infoOfThread, isListed, pageOfLog } from "./listings.ts";
import { checkJsonOptions, type JsonOptions } from "./options.ts";
import { Rows } from "./rows.ts";
import { BACKEND, type JsonThread, soundThread } from "./state.ts";
import { JsonStore } from "./store.ts";
import { contextOfFork, splitThread, wholeThread } from "./whole.ts";

export type { JsonOptions };

const ONE_WORKER = { reason: "Each write replaces the whole snapshot, so a session belongs to one worker at a time." };

export class JsonCheckpointer implements Checkpointer {
  readonly capabilities: Capabilities = {
    backend: BACKEND,
    durable: true,
    multiProcess: ONE_WORKER,
    archives: true,
    search: NO_SEARCH,
    backup: true,
    integrityCheck: true,
  };
  readonly archives: JsonArchives;
  /** The absolute path of the state.json. */
  readonly path: string;
  readonly #store: JsonStore;

  private constructor(store: JsonStore) {
    this.#store = store;
    this.path = store.place.path;
    this.archives = new JsonArchives(store);
  }

  /**
   * Opens a store, creating the state.json when it is not there; its directory must exist. A relative path is resolved now. What is
   * new may be read and written by its owner only. A few threads are fine; each write writes all of them.
   *
   * Meant for one worker. A second one loses and undoes nothing, though: a write begins from what is in the file then. Readers,
   * with `readOnly` or without, see each change of the file at their next call.
   *
   * @throws StoreOpenError, SchemaMismatchError, LockTimeoutError, StoreError, InvalidArgumentError
   */
  static async open(options: JsonOptions): Promise<JsonCheckpointer> {
    return new JsonCheckpointer(await JsonStore.open(checkJsonOptions(options)));
  }

  async load(threadId: string, options: { after?: number | undefined } = {}): Promise<Checkpoint | undefined> {
    this.#enter("load", threadId);
    const after = checkRevision(options.after, "after");
    return await this.#read("load", threadId, (thread, rows) => checkpointOf(thread, after, rows.message));
  }

  async append(
    threadId: string,
    messages: readonly Message[],
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#enter("append", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitMessages(messages);
    return await this.#store.write("append", (draft) => {
      const actual = checkExpected(threadId, draft.get(threadId), expected);
      if (admitted.length === 0) return actual;
      const thread = draft.edit(threadId);
      addMessages(threadId, thread, admitted, draft.nextPosition);
      return revisionOf(thread);
    });
  }

  async saveExtra(
    threadId: string,
    extra: JsonObject,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#enter("saveExtra", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const changes = copyJsonObject(extra, "extra");
    await this.#store.write("saveExtra", (draft) => {
      checkExpected(threadId, draft.get(threadId), expected);
      mergeExtra(draft.edit(threadId), changes);
    });
  }

  async claimRun(threadId: string, runId: string): Promise<void> {
    this.#enter("claimRun", threadId);
    checkNewRunId(runId);
    await this.#store.write("claimRun", (draft) => claimRun(threadId, draft.edit(threadId), runId));
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    this.#enter("markRunComplete", threadId);
    checkRunId(runId);
    await this.#store.write("markRunComplete", (draft) => {
      const thread = draft.get(threadId);
      const isComplete = thread?.runs.get(runId)?.completedAt;
      if (!isComplete) completeRun(threadId, thread && draft.edit(threadId), runId);
    });
  }

  async snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]> {
    this.#enter("snapshot", threadId);
    checkRunId(options.afterRunId);
    const context = await this.#store.read("snapshot", (state) =>
      contextOfFork(threadId, soundThread(state, this.path, threadId), options.afterRunId, this.#store.place),
    );
    return context.messages;
  }

  async fork(
    sourceThreadId: string,
    newThreadId: string,
    options: { afterRunId: string; metadata?: JsonObject | undefined },
  ): Promise<void> {
    this.#enter("fork", sourceThreadId);
    checkThreadId(newThreadId);
    checkRunId(options.afterRunId);
    const metadata = options.metadata === undefined ? undefined : copyJsonObject(options.metadata, "metadata");
    await this.#store.write("fork", async (draft) => {
      const source = draft.get(sourceThreadId);
      const whole = source && (await wholeThread(sourceThreadId, source, (id, one) => draft.readArchive(id, one)));
      const { afterRunId } = options;
      const fork = forkOf(sourceThreadId, whole, { afterRunId, metadata }, draft.nextPosition);
      if (isListed(draft.threads.get(newThreadId))) throw new ThreadAlreadyExistsError(newThreadId);
      draft.put(newThreadId, splitThread(draft, newThreadId, fork, new Map()));
    });
  }

  async savePendingRequest(
    threadId: string,
    request: PendingRequest | null,
    options: { runId?: string | null | undefined; expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#enter("savePendingRequest", threadId);
    const runId = checkOptionalRunId(options.runId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const pending = request === null ? undefined : storedPending(request, runId);
    await this.#store.write("savePendingRequest", (draft) => {
      const thread = draft.get(threadId);
      checkExpected(threadId, thread, expected);
      if (pending || thread?.pending) draft.edit(threadId).pending = pending;
    });
  }

  async loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    this.#enter("loadPending", threadId);
    return await this.#read("loadPending", threadId, (thread, rows) => {
      const { pending } = thread ?? {};
      if (!pending) return undefined;
      const request = rows.read(`${this.path}#pending`, () => checkPending(JSON.parse(pending.json)));
      return { request, runId: pending.runId };
    });
  }

  async clearPendingRequestIfMatches(
    threadId: string,
    match: { questionId: string; runId: string | null },
  ): Promise<boolean> {
    this.#enter("clearPendingRequestIfMatches", threadId);
    checkQuestionId(match.questionId);
    const runId = checkOptionalRunId(match.runId);
    return await this.#store.write("clearPendingRequestIfMatches", (draft) => {
      const thread = draft.get(threadId);
      return thread?.pending !== undefined && takePending(draft.edit(threadId), match.questionId, runId);
    });
  }

  async answerPending(
    threadId: string,
    given: { questionId: string; runId: string | null; answer: JsonValue; next?: PendingRequest | null | undefined },
  ): Promise<boolean> {
    this.#enter("answerPending", threadId);
    checkQuestionId(given.questionId);
    const runId = checkOptionalRunId(given.runId);
    const answer = JSON.stringify(copyJson(given.answer, "answer"));
    const next = given.next ? storedPending(given.next, runId) : undefined;
    return await this.#store.write("answerPending", (draft) => {
      if (!draft.get(threadId)?.pending) return false;
      const thread = draft.edit(threadId);
      if (!takePending(thread, given.questionId, runId)) return false;
      thread.answers.set(answerKey(runId, given.questionId), answer);
      thread.pending = next;
      return true;
    });
  }

  async saveHitlAnswer(
    threadId: string,
    questionId: string,
    answer: JsonValue,
    options: { runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#enter("saveHitlAnswer", threadId);
    const key = answerKey(checkOptionalRunId(options.runId), checkQuestionId(questionId));
    const json = JSON.stringify(copyJson(answer, "answer"));
    await this.#store.write("saveHitlAnswer", (draft) => {
      draft.edit(threadId).answers.set(key, json);
    });
  }

  async loadHitlAnswer(
    threadId: string,
    questionId: string,
    options: { runId?: string | null | undefined } = {},
  ): Promise<JsonValue | undefined> {
    this.#enter("loadHitlAnswer", threadId);
    const key = answerKey(checkOptionalRunId(options.runId), checkQuestionId(questionId));
    return await this.#read("loadHitlAnswer", threadId, (thread) => {
      const json = thread?.answers.get(key);
      return json === undefined ? undefined : JSON.parse(json);
    });
  }

  async listHitlAnswers(threadId: string): Promise<RecordedAnswer[]> {
    this.#enter("listHitlAnswers", threadId);
    return await this.#read("listHitlAnswers", threadId, answersOf);
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#enter("clearHitlAnswers", threadId);
    const runId = checkOptionalRunId(options.runId);
    const questionIds = options.questionIds?.map(checkQuestionId);
    await this.#store.write("clearHitlAnswers", (draft) => {
      if (draft.get(threadId)?.answers.size) clearAnswers(draft.edit(threadId), runId, questionIds);
    });
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    this.#enter("listMessages", threadId);
    const checked = { after: checkRevision(page.after, "after") ?? 0, limit: checkLimit(page.limit) };
    const { readArchive } = this.#store.place;
    return await this.#read("listMessages", threadId, (thread, rows) =>
      pageOfLog(threadId, thread, checked, readArchive, rows),
    );
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    this.#store.assertOpen("listThreads");
    const prefix = checkText(page.prefix, "prefix") ?? "";
    return await this.#store.read("listThreads", (state) => {
      const threads = [...state.threads].filter(([id, thread]) => id.startsWith(prefix) && isListed(thread));
      const { items, next } = pageById(threads, page, ([id]) => id);
      return { items: items.map(([id, thread]) => infoOfThread(id, thread)), next };
    });
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    this.#enter("listRuns", threadId);
    return await this.#read("listRuns", threadId, (thread) => {
      const { items, next } = pageById(thread?.runs.values() ?? [], page, ({ runId }) => runId);
      return { items: items.map(runInfo), next };
    });
  }

  async importThread(
    threadId: string,
    part: ThreadPart,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#enter("importThread", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitPart(part);
    return await this.#store.write("importThread", async (draft) => {
      checkExpected(threadId, draft.get(threadId), expected);
      const thread = draft.edit(threadId);
      if (!admitted.archives) {
        putPieces(thread, admitted, draft.nextPosition);
        return revisionOf(thread);
      }
      const whole = await wholeThread(threadId, thread, (id, one) => draft.readArchive(id, one));
      putPart(whole, admitted, draft.nextPosition);
      for (const { directory } of thread.archives) draft.removeArchive(directory);
      const imported = splitThread(draft, threadId, whole, whole.rests);
      draft.put(threadId, imported);
      return revisionOf(imported);
    });
  }

  async deleteThread(threadId: string): Promise<boolean> {
    this.#enter("deleteThread", threadId);
    return await this.#store.write("deleteThread", (draft) => {
      const isThere = isListed(draft.threads.get(threadId));
      draft.remove(threadId);
      return isThere;
    });
  }

  async backup(path: string): Promise<void> {
    await backupTo(this.#store, path);
  }

  async checkIntegrity(): Promise<string[]> {
    return await this.#store.read("checkIntegrity", (state) => checkFiles(this.#store, state));
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #enter(operation: string, threadId: string): void {
    this.#store.assertOpen(operation);
    checkThreadId(threadId);
  }

  async #read<T>(
    operation: string,
    threadId: string,
    run: (thread: JsonThread | undefined, rows: Rows) => T | Promise<T>,
  ): Promise<T> {
    return await this.#store.read(operation, (state) => {
      const thread = soundThread(state, this.path, threadId);
      return run(thread, new Rows(threadId, thread, this.#store.place));
    });
  }
}
