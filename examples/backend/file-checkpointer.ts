/**
 * An example of a backend of one's own: a directory with one JSON file a thread, replaced as a whole by every change.
 * Simple rather than fast: an append costs the whole thread, and a listing reads every file.
 */
import {
  admitMessages,
  admitPart,
  admitPending,
  type Capabilities,
  type Checkpoint,
  type Checkpointer,
  checkLimit,
  checkNewRunId,
  checkOptionalRunId,
  checkQuestionId,
  checkRevision,
  checkRunId,
  checkText,
  checkThreadId,
  compareCodePoints,
  copyJson,
  copyJsonObject,
  EverthreadError,
  type JsonObject,
  type JsonValue,
  type LogEntry,
  type Message,
  messageToJson,
  type Page,
  type PageOptions,
  type PendingRequest,
  type RecordedAnswer,
  RunAlreadyClaimedError,
  RunAlreadyCompletedError,
  type RunInfo,
  RunNotClaimedError,
  StoreClosedError,
  StoreError,
  ThreadAlreadyExistsError,
  type ThreadInfo,
  ThreadNotFoundError,
  type ThreadPart,
  UnsupportedError,
} from "everthread";
import { pageById, pageOf } from "./pages.ts";
import { ThreadFiles } from "./thread-files.ts";
import {
  BACKEND,
  entryOf,
  expectOpenRun,
  expectRevision,
  hasAnything,
  infoOf,
  isPending,
  isTo,
  putAnswer,
  putPart,
  type QuestionOfRun,
  readMessage,
  revisionOf,
  type ThreadRecord,
  upToRun,
} from "./thread-record.ts";

const NO_BACKUP = { reason: "Copy the directory while no program uses it." };
const NO_CHECK = { reason: "A file is either whole or reported as damaged when it is read." };

export class FileCheckpointer implements Checkpointer {
  readonly capabilities: Capabilities = {
    backend: BACKEND,
    durable: true,
    multiProcess: { reason: "Two processes would overwrite each other's changes to a thread's file." },
    archives: { reason: "The example keeps no archives." },
    search: { reason: "The example keeps no archives." },
    backup: NO_BACKUP,
    integrityCheck: NO_CHECK,
  };
  readonly #files: ThreadFiles;
  /** Settles when the work so far has; one thing is done at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(files: ThreadFiles) {
    this.#files = files;
  }

  /** @param directory where the threads' files are; it is made when it is not there */
  static async open(directory: string): Promise<FileCheckpointer> {
    return new FileCheckpointer(await ThreadFiles.open(directory));
  }

  async load(threadId: string, options: { after?: number | undefined } = {}): Promise<Checkpoint | undefined> {
    const after = checkRevision(options.after, "after");
    return this.#read("load", threadId, (record) => {
      const { messages, extra, parentThreadId } = record;
      if (messages.length === 0 && extra === null) return undefined;
      const tail = after !== undefined && (after === 0 || messages.some((stored) => stored.position === after));
      const wanted = tail ? messages.filter((stored) => stored.position > after) : messages;
      return {
        messages: wanted.map((stored) => readMessage(record, stored)),
        extra: extra ?? {},
        revision: revisionOf(record),
        parentThreadId,
        tail,
      };
    });
  }

  async append(
    threadId: string,
    messages: readonly Message[],
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    const admitted = admitMessages(messages);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    return this.#change("append", threadId, (record) => {
      expectRevision(record, expected);
      for (const { run_id } of admitted) if (typeof run_id === "string") expectOpenRun(record, run_id);
      const createdAt = new Date().toISOString();
      for (const message of admitted) {
        const position = ++record.lastPosition;
        record.messages.push({ position, runId: message.run_id ?? null, createdAt, message: messageToJson(message) });
      }
      return revisionOf(record);
    });
  }

  async saveExtra(
    threadId: string,
    extra: JsonObject,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    const changes = copyJsonObject(extra, "extra");
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    return this.#change("saveExtra", threadId, (record) => {
      expectRevision(record, expected);
      // To merge no keys stores nothing. A spread keeps a key called __proto__; Object.assign would lose it.
      if (Object.keys(changes).length > 0) record.extra = { ...record.extra, ...changes };
    });
  }

  async claimRun(threadId: string, runId: string): Promise<void> {
    checkNewRunId(runId);
    return this.#change("claimRun", threadId, ({ runs }) => {
      const run = runs.find((one) => one.runId === runId);
      if (run?.completedAt) throw new RunAlreadyCompletedError(threadId, runId);
      if (run) throw new RunAlreadyClaimedError(threadId, runId);
      runs.push({ runId, claimedAt: new Date().toISOString(), completedAt: null, completionSeq: null });
    });
  }

  async markRunComplete(threadId: string, runId: string): Promise<void> {
    checkRunId(runId);
    return this.#change("markRunComplete", threadId, ({ runs }) => {
      const run = runs.find((one) => one.runId === runId);
      if (!run) throw new RunNotClaimedError(threadId, runId);
      if (run.completedAt !== null) return;
      run.completedAt = new Date().toISOString();
      run.completionSeq = Math.max(0, ...runs.map((one) => one.completionSeq ?? 0)) + 1;
    });
  }

  async snapshot(threadId: string, options: { afterRunId: string }): Promise<Message[]> {
    const runId = checkRunId(options.afterRunId);
    return this.#read("snapshot", threadId, (record) => {
      if (!hasAnything(record)) throw new ThreadNotFoundError(threadId);
      return upToRun(record, runId).messages.map((stored) => readMessage(record, stored));
    });
  }

  async fork(
    sourceThreadId: string,
    newThreadId: string,
    options: { afterRunId: string; metadata?: JsonObject | undefined },
  ): Promise<void> {
    checkThreadId(newThreadId);
    const runId = checkRunId(options.afterRunId);
    const metadata = options.metadata && { fork: copyJsonObject(options.metadata, "metadata") };
    return this.#read("fork", sourceThreadId, async (source) => {
      if (!hasAnything(source)) throw new ThreadNotFoundError(sourceThreadId);
      const target = await this.#files.read(newThreadId);
      if (hasAnything(target)) throw new ThreadAlreadyExistsError(newThreadId);
      const { messages, runs } = upToRun(source, runId);
      const copies = messages.map((stored) => ({ ...stored, position: ++target.lastPosition }));
      const extra = source.extra || metadata ? { ...source.extra, ...metadata } : null;
      await this.#files.write({ ...target, parentThreadId: sourceThreadId, messages: copies, runs, extra });
    });
  }

  async savePendingRequest(
    threadId: string,
    request: PendingRequest | null,
    options: { runId?: string | null | undefined; expectedRevision?: number | undefined } = {},
  ): Promise<void> {
    const runId = checkOptionalRunId(options.runId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const pending = request === null ? null : { request: admitPending(request), runId };
    return this.#change("savePendingRequest", threadId, (record) => {
      expectRevision(record, expected);
      record.pending = pending;
    });
  }

  async loadPending(threadId: string): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    return this.#read("loadPending", threadId, ({ pending }) => pending ?? undefined);
  }

  async clearPendingRequestIfMatches(
    threadId: string,
    match: { questionId: string; runId: string | null },
  ): Promise<boolean> {
    const asked = checkQuestion(match);
    return this.#change("clearPendingRequestIfMatches", threadId, (record) => {
      if (!isPending(record, asked)) return false;
      record.pending = null;
      return true;
    });
  }

  async answerPending(
    threadId: string,
    given: { questionId: string; runId: string | null; answer: JsonValue; next?: PendingRequest | null | undefined },
  ): Promise<boolean> {
    const asked = checkQuestion(given);
    const answer = copyJson(given.answer, "answer");
    const next = given.next ? { request: admitPending(given.next), runId: asked.runId } : null;
    return this.#change("answerPending", threadId, (record) => {
      if (!isPending(record, asked)) return false;
      record.pending = next;
      putAnswer(record, asked, answer);
      return true;
    });
  }

  async saveHitlAnswer(
    threadId: string,
    questionId: string,
    answer: JsonValue,
    options: { runId?: string | null | undefined } = {},
  ): Promise<void> {
    const asked = checkQuestion({ questionId, runId: options.runId });
    const copy = copyJson(answer, "answer");
    return this.#change("saveHitlAnswer", threadId, (record) => putAnswer(record, asked, copy));
  }

  async loadHitlAnswer(
    threadId: string,
    questionId: string,
    options: { runId?: string | null | undefined } = {},
  ): Promise<JsonValue | undefined> {
    const asked = checkQuestion({ questionId, runId: options.runId });
    return this.#read("loadHitlAnswer", threadId, ({ answers }) => answers.find((one) => isTo(one, asked))?.answer);
  }

  async listHitlAnswers(threadId: string): Promise<RecordedAnswer[]> {
    return this.#read("listHitlAnswers", threadId, ({ answers }) =>
      answers.toSorted(
        (a, b) => compareCodePoints(a.runId ?? "", b.runId ?? "") || compareCodePoints(a.questionId, b.questionId),
      ),
    );
  }

  async clearHitlAnswers(
    threadId: string,
    options: { questionIds?: readonly string[] | undefined; runId?: string | null | undefined } = {},
  ): Promise<void> {
    const runId = checkOptionalRunId(options.runId);
    const ids = options.questionIds?.map(checkQuestionId);
    return this.#change("clearHitlAnswers", threadId, (record) => {
      record.answers = record.answers.filter((one) => one.runId !== runId || ids?.includes(one.questionId) === false);
    });
  }

  async listMessages(threadId: string, page: PageOptions<number> = {}): Promise<Page<LogEntry, number>> {
    const after = checkRevision(page.after, "after") ?? 0;
    const limit = checkLimit(page.limit);
    return this.#read("listMessages", threadId, (record) => {
      const stored = record.messages.filter((one) => one.position > after);
      const { items, next } = pageOf(stored, limit, (one) => one.position);
      return { items: items.map((one) => entryOf(record, one)), next };
    });
  }

  async listThreads(
    page: PageOptions<string> & { prefix?: string | undefined } = {},
  ): Promise<Page<ThreadInfo, string>> {
    const after = checkText(page.after, "after");
    const prefix = checkText(page.prefix, "prefix") ?? "";
    const limit = checkLimit(page.limit);
    return this.#oneAtATime("listThreads", async () => {
      const records = (await this.#files.readAll()).filter(hasAnything);
      const threads = records.map(infoOf).filter((thread) => thread.threadId.startsWith(prefix));
      return pageById(threads, after, limit, (thread) => thread.threadId);
    });
  }

  async listRuns(threadId: string, page: PageOptions<string> = {}): Promise<Page<RunInfo, string>> {
    const after = checkText(page.after, "after");
    const limit = checkLimit(page.limit);
    return this.#read("listRuns", threadId, (record) => {
      const runs = record.runs.map((run) => ({
        ...run,
        claimedAt: new Date(run.claimedAt),
        completedAt: run.completedAt === null ? null : new Date(run.completedAt),
      }));
      return pageById(runs, after, limit, (run) => run.runId);
    });
  }

  async importThread(
    threadId: string,
    part: ThreadPart,
    options: { expectedRevision?: number | undefined } = {},
  ): Promise<number> {
    const admitted = admitPart(part, this.capabilities);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    return this.#change("importThread", threadId, (record) => {
      expectRevision(record, expected);
      putPart(record, admitted);
      return revisionOf(record);
    });
  }

  async deleteThread(threadId: string): Promise<boolean> {
    checkThreadId(threadId);
    return this.#oneAtATime("deleteThread", async () => {
      const record = await this.#files.read(threadId);
      if (!hasAnything(record)) return false;
      await this.#files.erase(record);
      return true;
    });
  }

  async backup(_path: string): Promise<void> {
    return this.#oneAtATime("backup", async () => {
      throw new UnsupportedError(BACKEND, "backup", NO_BACKUP.reason);
    });
  }

  async checkIntegrity(): Promise<string[]> {
    return this.#oneAtATime("checkIntegrity", async () => {
      throw new UnsupportedError(BACKEND, "checkIntegrity", NO_CHECK.reason);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #read<T>(operation: string, threadId: string, work: (record: ThreadRecord) => T | Promise<T>): Promise<T> {
    checkThreadId(threadId);
    return this.#oneAtATime(operation, async () => work(await this.#files.read(threadId)));
  }

  /** Changes a thread's record and stores it, unless the work throws or changed nothing. */
  async #change<T>(operation: string, threadId: string, work: (record: ThreadRecord) => T): Promise<T> {
    return this.#read(operation, threadId, async (record) => {
      const before = JSON.stringify(record);
      const result = work(record);
      if (JSON.stringify(record) !== before) await this.#files.write(record);
      return result;
    });
  }

  async #oneAtATime<T>(operation: string, work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreClosedError(operation);
    const done = this.#last.then(work).catch((error: unknown) => {
      if (error instanceof EverthreadError) throw error;
      throw new StoreError(`The files failed: ${String(error)}. Nothing of this operation was written.`, {
        cause: error,
      });
    });
    this.#last = done.catch(() => undefined);
    return done;
  }
}

function checkQuestion(given: { questionId: string; runId?: string | null | undefined }): QuestionOfRun {
  return { questionId: checkQuestionId(given.questionId), runId: checkOptionalRunId(given.runId) };
}
