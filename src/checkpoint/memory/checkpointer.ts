/** The in-memory engine: the whole contract in plain maps, for tests and for programs that keep nothing. */
import { StoreClosedError } from "../../db/errors.ts";
import { admitMessages } from "../../messages/admit.ts";
import { messageFromJson, messageToJson } from "../../messages/codec.ts";
import { copyJson, copyJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import {
  checkNewRunId,
  checkOptionalRunId,
  checkQuestionId,
  checkRunId,
  checkThreadId,
  compareCodePoints,
  MAX_RUN_ID_LENGTH,
} from "../../util/ids.ts";
import { keptByFork } from "../archive-rules.ts";
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
  ThreadAlreadyExistsError,
  ThreadConflictError,
  UnsupportedError,
} from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitPart } from "../part.ts";
import type { PendingRequest } from "../pending.ts";
import { activeContext, forkedArchives, MemoryArchives } from "./archives.ts";
import {
  answerKey,
  copyDate,
  emptyThread,
  hasAnything,
  logEntry,
  mergeExtra,
  putPart,
  revisionOf,
  storedPending,
  type Thread,
  taken,
} from "./thread.ts";

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
    const thread = this.#threads.get(threadId);
    if (!thread || (thread.messages.length === 0 && thread.extra === undefined)) return undefined;
    const { last, active } = activeContext(thread.messages, thread.archives);
    const begins = after === 0 && !last;
    const tail = after !== undefined && (begins || active.some(({ position }) => position === after));
    const messages = tail ? active.filter(({ position }) => position > after) : active;
    return {
      messages: messages.map(({ json }) => messageFromJson(json)),
      ...(last && {
        summary: last.summary,
        compactedUpTo: last.upTo,
        kept: messages.filter(({ position }) => position <= last.atRevision).length,
      }),
      extra: JSON.parse(thread.extra ?? "{}"),
      revision: revisionOf(thread),
      parentThreadId: thread.parentThreadId,
      tail,
    };
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
    for (const { run_id } of admitted) if (typeof run_id === "string") this.#checkOpenRun(threadId, run_id);
    const createdAt = new Date();
    const log = this.#thread(threadId).messages;
    for (const message of admitted) {
      const position = ++this.#lastPosition;
      log.push({ position, json: messageToJson(message), runId: message.run_id ?? null, createdAt });
    }
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
    const { runs } = this.#thread(threadId);
    const run = runs.get(runId);
    if (run?.completedAt) throw new RunAlreadyCompletedError(threadId, runId);
    if (run) throw new RunAlreadyClaimedError(threadId, runId);
    runs.set(runId, { runId, claimedAt: new Date(), completedAt: null, completionSeq: null });
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    this.#enter("markRunComplete", threadId);
    checkRunId(runId);
    const runs = this.#threads.get(threadId)?.runs;
    const run = runs?.get(runId);
    if (!runs || !run) throw new RunNotClaimedError(threadId, runId);
    if (run.completedAt) return;
    const last = Math.max(0, ...[...runs.values()].map(({ completionSeq }) => completionSeq ?? 0));
    runs.set(runId, { ...run, completedAt: new Date(), completionSeq: last + 1 });
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
    const { thread, messages, runs, cut } = taken(
      this.#threads.get(sourceThreadId),
      sourceThreadId,
      options.afterRunId,
    );
    keptByFork(sourceThreadId, thread.archives, cut);
    if (hasAnything(this.#threads.get(newThreadId))) throw new ThreadAlreadyExistsError(newThreadId);
    const extra: JsonObject = JSON.parse(thread.extra ?? "{}");
    if (metadata) extra.fork = metadata;
    const copies = messages.map((message) => ({ ...message, position: ++this.#lastPosition }));
    const positions = messages.map(({ position }, i): [number, number] => [position, copies[i]?.position ?? 0]);
    this.#threads.set(newThreadId, {
      ...emptyThread(),
      messages: copies,
      archives: forkedArchives(sourceThreadId, thread.archives, cut, positions),
      extra: JSON.stringify(extra),
      parentThreadId: sourceThreadId,
      runs: new Map(runs.map((run) => [run.runId, run])),
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
    return this.#takePending(threadId, match.questionId, checkOptionalRunId(match.runId));
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
    if (!this.#takePending(threadId, given.questionId, runId)) return false;
    const thread = this.#thread(threadId);
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
    return [...(this.#threads.get(threadId)?.answers ?? [])]
      .map(([key, json]) => {
        const [runId, questionId] = JSON.parse(key) as [string, string];
        return { runId: runId === "" ? null : runId, questionId, answer: JSON.parse(json) as JsonValue };
      })
      .sort((a, b) => compareCodePoints(a.runId ?? "", b.runId ?? "") || compareCodePoints(a.questionId, b.questionId));
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    this.#enter("clearHitlAnswers", threadId);
    const runId = checkOptionalRunId(options.runId);
    const keys = options.questionIds?.map((id) => answerKey(runId, checkQuestionId(id)));
    const answers = this.#threads.get(threadId)?.answers;
    for (const key of keys ?? [...(answers?.keys() ?? [])].filter((key) => JSON.parse(key)[0] === (runId ?? ""))) {
      answers?.delete(key);
    }
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    this.#enter("listMessages", threadId);
    const after = checkRevision(page.after, "after") ?? 0;
    const limit = checkLimit(page.limit);
    const rest = (this.#threads.get(threadId)?.messages ?? []).filter(({ position }) => position > after);
    const items = rest.slice(0, limit).map(logEntry);
    return { items, next: rest.length > limit ? (items.at(-1)?.position ?? after) : null };
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    this.#assertOpen("listThreads");
    const after = checkText(page.after, "after") ?? "";
    const prefix = checkText(page.prefix, "prefix") ?? "";
    const limit = checkLimit(page.limit);
    const rest = [...this.#threads]
      .filter(([id, thread]) => id.startsWith(prefix) && hasAnything(thread))
      .sort(([a], [b]) => compareCodePoints(a, b))
      .filter(([id]) => compareCodePoints(id, after) > 0);
    const items = rest.slice(0, limit).map(([threadId, thread]) => ({
      threadId,
      messageCount: thread.messages.length,
      revision: revisionOf(thread),
      parentThreadId: thread.parentThreadId,
      createdAt: copyDate(thread.messages[0]?.createdAt),
      updatedAt: copyDate(thread.messages.at(-1)?.createdAt),
      pending: thread.pending !== undefined,
    }));
    return { items, next: rest.length > limit ? (items.at(-1)?.threadId ?? after) : null };
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    this.#enter("listRuns", threadId);
    const after = checkText(page.after, "after") ?? "";
    const limit = checkLimit(page.limit);
    const rest = [...(this.#threads.get(threadId)?.runs.values() ?? [])]
      .filter(({ runId }) => compareCodePoints(runId, after) > 0)
      .sort((a, b) => compareCodePoints(a.runId, b.runId));
    const items = rest.slice(0, limit).map((run) => structuredClone(run));
    return { items, next: rest.length > limit ? (items.at(-1)?.runId ?? after) : null };
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
    const thread = this.#threads.get(threadId);
    const actual = thread ? revisionOf(thread) : 0;
    if (expected !== undefined && actual !== expected) throw new ThreadConflictError(threadId, expected, actual);
    return actual;
  }

  #checkOpenRun(threadId: string, runId: string): void {
    const run = this.#threads.get(threadId)?.runs.get(runId);
    if (run?.completedAt) throw new RunAlreadyCompletedError(threadId, runId);
    if (!run && runId.length > MAX_RUN_ID_LENGTH) checkNewRunId(runId);
  }

  #contextAfter(threadId: string, afterRunId: string): ContextAfter {
    checkRunId(afterRunId);
    const { thread, messages, cut } = taken(this.#threads.get(threadId), threadId, afterRunId);
    const { last, active } = activeContext(messages, keptByFork(threadId, thread.archives, cut));
    return {
      messages: active.map(({ json }) => messageFromJson(json)),
      ...(last && { summary: last.summary }),
    };
  }

  #takePending(threadId: string, questionId: string, runId: string | null): boolean {
    const thread = this.#threads.get(threadId);
    if (!thread?.pending || thread.pending.questionId !== questionId || thread.pending.runId !== runId) return false;
    thread.pending = undefined;
    return true;
  }
}
