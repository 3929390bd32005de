/** The in-memory engine: the whole contract in plain maps, for tests and for programs that keep nothing. */
import { StoreClosedError } from "../../db/errors.ts";
import { admitMessages } from "../../messages/admit.ts";
import { copyJson, copyJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkRunId, checkThreadId } from "../../util/ids.ts";
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
import { ThreadAlreadyExistsError, UnsupportedError } from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitPart } from "../part.ts";
import type { PendingRequest } from "../pending.ts";
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
  storedPending,
  takePending,
} from "../thread-changes.ts";
import { pageById, runInfo } from "../thread-listings.ts";
import {
  checkpointOf,
  contextAfter,
  emptyThread,
  hasAnything,
  revisionOf,
  type Thread,
  threadInfo,
} from "../thread-state.ts";
import { entryOf, MemoryArchives, readMessage } from "./archives.ts";

const GONE = { reason: "It lives in this process's memory." };
const ONLY_ROWS = { reason: "There is nothing below the level of rows." };

export class MemoryCheckpointer implements Checkpointer {
  readonly capabilities: Capabilities = {
    backend: "memory",
    durable: GONE,
    multiProcess: GONE,
    archives: true,
    search: true,
    backup: GONE,
    integrityCheck: ONLY_ROWS,
  };
  readonly archives: MemoryArchives = new MemoryArchives({
    enter: (operation, threadId) =>
      threadId === undefined ? this.#assertOpen(operation) : this.#enter(operation, threadId),
    checkRevision: (threadId, expected) => this.#checkRevision(threadId, expected),
    get: (threadId) => this.#threads.get(threadId),
    all: () => this.#threads,
    contextAfter: (threadId, afterRunId) => this.#contextAfter(threadId, afterRunId),
  });
  readonly #threads = new Map<string, Thread>();
  /** Positions are the store's, so that a thread that is deleted and begun anew repeats none. */
  #lastPosition = 0;
  #closed = false;

  async load(threadId: string, options: { after?: number | undefined } = {}): Promise<Checkpoint | undefined> {
    this.#enter("load", threadId);
    const after = checkRevision(options.after, "after");
    return checkpointOf(this.#threads.get(threadId), after, readMessage);
  }

  async append(
    threadId: string,
    messages: readonly Message[],
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#enter("append", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitMessages(messages);
    const actual = this.#checkRevision(threadId, expected);
    if (admitted.length === 0) return actual;
    addMessages(threadId, this.#thread(threadId), admitted, () => ++this.#lastPosition);
    return this.#lastPosition;
  }

  async saveExtra(
    threadId: string,
    extra: JsonObject,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    this.#enter("saveExtra", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const changes = copyJsonObject(extra, "extra");
    this.#checkRevision(threadId, expected);
    mergeExtra(this.#thread(threadId), changes);
  }

  async claimRun(threadId: string, runId: string): Promise<void> {
    this.#enter("claimRun", threadId);
    checkNewRunId(runId);
    claimRun(threadId, this.#thread(threadId), runId);
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    this.#enter("markRunComplete", threadId);
    checkRunId(runId);
    completeRun(threadId, this.#threads.get(threadId), runId);
  }

  async snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]> {
    this.#enter("snapshot", threadId);
    return this.#contextAfter(threadId, options.afterRunId).messages;
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
    const source = this.#threads.get(sourceThreadId);
    const fork = forkOf(
      sourceThreadId,
      source,
      { afterRunId: options.afterRunId, metadata },
      () => ++this.#lastPosition,
    );
    if (hasAnything(this.#threads.get(newThreadId))) throw new ThreadAlreadyExistsError(newThreadId);
    this.#threads.set(newThreadId, fork);
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
    this.#checkRevision(threadId, expected);
    if (pending || this.#threads.has(threadId)) this.#thread(threadId).pending = pending;
  }

  async loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    this.#enter("loadPending", threadId);
    const pending = this.#threads.get(threadId)?.pending;
    return pending && { request: JSON.parse(pending.json), runId: pending.runId };
  }

  async clearPendingRequestIfMatches(
    threadId: string,
    match: { questionId: string; runId: string | null },
  ): Promise<boolean> {
    this.#enter("clearPendingRequestIfMatches", threadId);
    checkQuestionId(match.questionId);
    return takePending(this.#threads.get(threadId), match.questionId, checkOptionalRunId(match.runId));
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
    const thread = this.#threads.get(threadId);
    if (!takePending(thread, given.questionId, runId)) return false;
    thread.answers.set(answerKey(runId, given.questionId), answer);
    thread.pending = next;
    return true;
  }

  async saveHitlAnswer(
    threadId: string,
    questionId: string,
    answer: JsonValue,
    options: { runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#enter("saveHitlAnswer", threadId);
    const key = answerKey(checkOptionalRunId(options.runId), checkQuestionId(questionId));
    this.#thread(threadId).answers.set(key, JSON.stringify(copyJson(answer, "answer")));
  }

  async loadHitlAnswer(
    threadId: string,
    questionId: string,
    options: { runId?: string | null | undefined } = {},
  ): Promise<JsonValue | undefined> {
    this.#enter("loadHitlAnswer", threadId);
    const key = answerKey(checkOptionalRunId(options.runId), checkQuestionId(questionId));
    const json = this.#threads.get(threadId)?.answers.get(key);
    return json === undefined ? undefined : JSON.parse(json);
  }

  async listHitlAnswers(threadId: string): Promise<RecordedAnswer[]> {
    this.#enter("listHitlAnswers", threadId);
    return answersOf(this.#threads.get(threadId));
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#enter("clearHitlAnswers", threadId);
    const runId = checkOptionalRunId(options.runId);
    const questionIds = options.questionIds?.map(checkQuestionId);
    const thread = this.#threads.get(threadId);
    if (thread) clearAnswers(thread, runId, questionIds);
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    this.#enter("listMessages", threadId);
    const after = checkRevision(page.after, "after") ?? 0;
    const limit = checkLimit(page.limit);
    const rest = (this.#threads.get(threadId)?.messages ?? []).filter(({ position }) => position > after);
    const items = rest.slice(0, limit).map(entryOf);
    return { items, next: rest.length > limit ? (items.at(-1)?.position ?? after) : null };
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    this.#assertOpen("listThreads");
    const prefix = checkText(page.prefix, "prefix") ?? "";
    const threads = [...this.#threads].filter(([id, thread]) => id.startsWith(prefix) && hasAnything(thread));
    const { items, next } = pageById(threads, page, ([id]) => id);
    return { items: items.map(([id, thread]) => threadInfo(id, thread)), next };
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    this.#enter("listRuns", threadId);
    const runs = this.#threads.get(threadId)?.runs.values() ?? [];
    const { items, next } = pageById(runs, page, ({ runId }) => runId);
    return { items: items.map(runInfo), next };
  }

  async importThread(
    threadId: string,
    part: ThreadPart,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    this.#enter("importThread", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitPart(part);
    this.#checkRevision(threadId, expected);
    const thread = this.#thread(threadId);
    putPart(thread, admitted, () => ++this.#lastPosition);
    return revisionOf(thread);
  }

  async deleteThread(threadId: string): Promise<boolean> {
    this.#enter("deleteThread", threadId);
    const thread = this.#threads.get(threadId);
    this.#threads.delete(threadId);
    return hasAnything(thread);
  }

  async backup(_path: string): Promise<void> {
    this.#assertOpen("backup");
    throw new UnsupportedError("memory", "backup", GONE.reason);
  }

  async checkIntegrity(): Promise<string[]> {
    this.#assertOpen("checkIntegrity");
    throw new UnsupportedError("memory", "checkIntegrity", ONLY_ROWS.reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #assertOpen(operation: string): void {
    if (this.#closed) throw new StoreClosedError(operation);
  }

  #enter(operation: string, threadId: string): void {
    this.#assertOpen(operation);
    checkThreadId(threadId);
  }

  #thread(threadId: string): Thread {
    let thread = this.#threads.get(threadId);
    if (!thread) {
      thread = emptyThread();
      this.#threads.set(threadId, thread);
    }
    return thread;
  }

  #checkRevision(threadId: string, expected: number | undefined): number {
    return checkExpected(threadId, this.#threads.get(threadId), expected);
  }

  #contextAfter(threadId: string, afterRunId: string): ContextAfter {
    checkRunId(afterRunId);
    return contextAfter(this.#threads.get(threadId), threadId, afterRunId, readMessage);
  }
}
