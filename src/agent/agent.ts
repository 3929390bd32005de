/**
 * The agent: a model with tools on one durable thread. It holds the thread in memory and checks the store's revision at
 * each prompt, so several processes may take turns on one thread.
 */
import type { ArchiveInfo, ContextAfter } from "../checkpoint/archives.ts";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import { InvalidArgumentError } from "../errors.ts";
import { assistantMessage, text, toolCallsOf, toolResultMessage } from "../messages/construct.ts";
import { copyJson, type JsonObject, type JsonValue } from "../messages/json.ts";
import { danglingCalls } from "../messages/pairing.ts";
import type { AssistantMessage, Message, UserMessage } from "../messages/schema.ts";
import { type ThreadState, threadState } from "../messages/state.ts";
import { UNKNOWN_OUTCOME } from "../messages/view.ts";
import type { Model } from "../model/model.ts";
import type { RetryPolicy } from "../model/retry.ts";
import { checkNewRunId, checkThreadId, newId } from "../util/ids.ts";
import { type ApprovalPolicy, type Batch, pendingRequest } from "./approvals.ts";
import {
  type CompactionOptions,
  type CompactionSettings,
  checkArchives,
  checkCompaction,
  checkInstructions,
  checkWhole,
  compact,
} from "./compaction.ts";
import {
  AgentBusyError,
  AgentIdleError,
  HitlMismatchError,
  HitlNoPendingRequestError,
  HitlPendingError,
  HitlStaleAnswerError,
} from "./errors.ts";
import type { AgentEvent, AgentResult, Ending } from "./events.ts";
import { ThreadLog } from "./log.ts";
import { Hooks, type Middleware } from "./middleware.ts";
import { type Prompt, toUserMessages } from "./prompt.ts";
import { resultOf } from "./result.ts";
import { type OnPending, Run, type RunConfig } from "./run.ts";
import { type AgentStream, streamed } from "./stream.ts";
import { errorResult, indexTools, type Tool, toolSpec } from "./tools.ts";

export interface AgentOptions {
  model: Model;
  /** The system prompt. (Default: none) */
  system?: string | undefined;
  /** (Default: none) */
  tools?: readonly Tool[] | undefined;
  /** Decides about each tool call. (Default: allow all) */
  approve?: ApprovalPolicy | undefined;
  /** (Default: none) */
  middleware?: readonly Middleware[] | undefined;
  /** How a model that fails for the moment is asked again. (Default: up to 4 attempts, see RetryPolicy) */
  retry?: RetryPolicy | undefined;
  /** When the older part of the context is set aside, and a summary put in its place. (Default: only by compact()) */
  compaction?: CompactionOptions | undefined;
  /** Where the thread is kept; goes with threadId. (Default: nowhere: the conversation ends with the process) */
  checkpointer?: Checkpointer | undefined;
  threadId?: string | undefined;
  /** Called with each event of everything that the agent does, before a prompt's own; must not throw. (Default: none) */
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

export interface CompactNowOptions {
  /** What the model that writes the summary is told this time. (Default: the agent's) */
  instructions?: string | undefined;
  /** How many tokens of the newest turns stay as they are, from 0. (Default: the agent's; without compaction options 0) */
  keepTokens?: number | undefined;
  /** Stops it, and leaves the thread as it was. (Default: none) */
  signal?: AbortSignal | undefined;
}

export interface PromptOptions {
  /** Names the run: a request that is tried again with the same id is not done twice. 1 to 64 characters. (Default: a new id) */
  runId?: string | undefined;
  /** Stops the model and the tools, and leaves a thread that loads. (Default: none) */
  signal?: AbortSignal | undefined;
  /** Asks the person in this process. What it gives is recorded like any answer; undefined suspends. (Default: suspend) */
  onPending?: OnPending | undefined;
  /** Called with each event, in order; must not throw. (Default: none) */
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

const OPTIONS = [
  ...[
    "model",
    "system",
    "tools",
    "approve",
    "middleware",
    "retry",
    "compaction",
    "checkpointer",
    "threadId",
    "onEvent",
  ],
];
const COMPACT_OPTIONS = ["instructions", "keepTokens", "signal"];
const PROMPT_OPTIONS = ["runId", "signal", "onPending", "onEvent"];

export class Agent {
  readonly threadId: string | undefined;
  readonly #options: AgentOptions;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #hooks: Hooks;
  readonly #compaction: CompactionSettings;
  readonly #log: ThreadLog;
  #steering: UserMessage[] = [];
  #busy = false;
  #takesSteering = false;

  /**
   * @throws TypeError for a checkpointer without a threadId or the reverse, for an unknown option, for tools of one name
   * @throws InvalidArgumentError, UnsupportedError for a compaction that is none, or that the store can't do
   */
  constructor(options: AgentOptions) {
    const unknown = Object.keys(options).find((key) => !OPTIONS.includes(key));
    if (unknown !== undefined) throw new TypeError(`Agent has no option ${unknown}. It has ${OPTIONS.join(", ")}.`);
    const { checkpointer, threadId, model } = options;
    if (typeof model?.stream !== "function")
      throw new TypeError("Agent needs a model: an object with a stream method.");
    if (checkpointer && threadId === undefined) {
      throw new TypeError("Agent has a checkpointer and no threadId, so it would save nothing. Give both, or neither.");
    }
    if (!checkpointer && threadId !== undefined) {
      throw new TypeError("Agent has a threadId and no checkpointer, so it would save nothing. Give both, or neither.");
    }
    this.threadId = threadId === undefined ? undefined : checkThreadId(threadId);
    this.#options = options;
    this.#compaction = checkCompaction(options.compaction, model, checkpointer);
    this.#hooks = new Hooks(options.middleware ?? []);
    this.#tools = indexTools([...(options.tools ?? []), ...this.#hooks.tools]);
    this.#log = new ThreadLog(checkpointer && threadId !== undefined ? { checkpointer, threadId } : undefined);
  }

  /** The thread's active messages as this agent last saw them; a copy of the list. */
  get messages(): Message[] {
    return [...this.#log.messages];
  }

  /** What stands for the messages that were set aside, as this agent last saw it; undefined while none were. */
  get summary(): string | undefined {
    return this.#log.summary;
  }

  /** The thread's JSON state as this agent last saw it. */
  get extra(): JsonObject {
    return this.#log.extra;
  }

  /** Whether a prompt or an answer is being worked on. */
  get busy(): boolean {
    return this.#busy;
  }

  /**
   * Runs one prompt to a settled end.
   *
   * With a `runId` that has completed before, nothing is done again: the result is what it came to then (`replayed`). When
   * the model failed in it, the model is asked again; the user's message is not stored twice.
   *
   * @throws AgentBusyError, HitlPendingError when the thread waits on a person, ThreadConflictError when another writer
   *   moved the thread meanwhile, RunAlreadyClaimedError, InvalidMessageError, and whatever the store throws. A model's
   *   failure is no throw: the result has status "failed".
   */
  prompt(input: Prompt, options: PromptOptions = {}): Promise<AgentResult> {
    return this.#exclusively(options, () => this.#prompt(input, options));
  }

  /** As {@link Agent.prompt}, with the events as they come. The loop throws what prompt() would. */
  stream(input: Prompt, options: PromptOptions = {}): AgentStream {
    return streamed(options, (streamed) => this.prompt(input, streamed));
  }

  /**
   * Answers the thread's pending request and goes on with its run, in any process. While another call of the batch
   * needs an answer too, the result is suspended again, with the next question.
   *
   * @param questionId the pending request's `question_id`
   * @param answer for an approval { decision: "approve" | "deny" | "edit", … }, for questions an object from key to answer,
   *   for a confirmation a boolean
   * @throws HitlNoPendingRequestError, HitlStaleAnswerError (also for the later of two answers), HitlMismatchError,
   *   HitlInvalidAnswerError, AgentBusyError, ThreadConflictError
   */
  respond(questionId: string, answer: JsonValue, options: Omit<PromptOptions, "runId"> = {}): Promise<AgentResult> {
    return this.#exclusively(options, () => this.#respond(questionId, copyJson(answer, "answer"), options));
  }

  /** As {@link Agent.respond}, with the events as they come. */
  streamRespond(questionId: string, answer: JsonValue, options: Omit<PromptOptions, "runId"> = {}): AgentStream {
    return streamed(options, (streamed) => this.respond(questionId, answer, streamed));
  }

  /** The question that the thread waits on, if any. */
  async pending(): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
    return await this.#log.store?.checkpointer.loadPending(this.#log.store.threadId);
  }

  /** Where the thread stands, as the store has it now. */
  async state(): Promise<ThreadState> {
    if (!this.#busy) await this.#log.refresh();
    const pending = (await this.pending()) !== undefined;
    const { messages, summary } = this.#log;
    if (messages.length > 0 || summary === undefined) return threadState(messages, pending);
    // All of it was set aside, so no call of it is open: how it ended is what its last message says.
    const last = await this.#log.lastMessage();
    return last || pending ? threadState(last ? [last] : [], pending) : "complete";
  }

  /**
   * Sets aside the older part of the context now, whatever its size, and puts a summary in its place. The newest turns that
   * `keepTokens` have room for stay, and so does what waits: see `docs/agent.md`.
   *
   * @returns the archive, or undefined when there is nothing to set aside. Where nothing is stored: what it would have
   *   been, emptied, since what is set aside is gone
   * @throws AgentBusyError, UnsupportedError when the store keeps no archives, ThreadConflictError or CompactionConflictError
   *   when another writer came first, ModelError when no summary was given, the signal's reason. The thread is then as it was.
   */
  compact(options: CompactNowOptions = {}): Promise<ArchiveInfo | undefined> {
    return this.#alone(options, COMPACT_OPTIONS, async () => {
      const { checkpointer, system = "", retry } = this.#options;
      checkArchives(checkpointer);
      const { instructions, keepTokens } = { ...this.#compaction, ...withoutUndefined(options) };
      checkInstructions(instructions);
      checkWhole(keepTokens, "keepTokens", 0);
      const { signal = new AbortController().signal } = options;
      await this.#log.refresh();
      return await compact(
        this.#log,
        { ...this.#compaction, instructions, keepTokens },
        {
          ...{ system, retry, signal, tools: [...this.#tools.values()].map(toolSpec) },
          emit: (event) => this.#options.onEvent?.({ ...event, runId: "" } as AgentEvent),
        },
      );
    });
  }

  /**
   * Closes a conversation that waits on a person: every open call is denied, and the run ends as aborted without asking
   * the model again.
   *
   * @param reason what the thread keeps as the reason (Default: "aborted by the host")
   * @throws HitlNoPendingRequestError, HitlStaleAnswerError when an answer came first, AgentBusyError
   */
  abortPending(reason = "aborted by the host"): Promise<AgentResult> {
    return this.#exclusively({}, () => this.#abortPending(reason));
  }

  /**
   * Adds a user's message to the run under way: it is taken up before the next model call.
   *
   * @throws AgentIdleError when no run is under way, InvalidMessageError
   */
  steer(input: Prompt): void {
    if (!this.#takesSteering) throw new AgentIdleError();
    this.#steering.push(...toUserMessages(input));
  }

  /**
   * Makes a new thread that starts with a copy of this one's completed runs.
   *
   * @param options.afterRunId the last run to copy
   * @param options.metadata stored under `extra.fork` (Default: nothing)
   * @throws ThreadNotFoundError, RunNotCompletedError, ThreadAlreadyExistsError, TypeError when nothing is stored
   */
  async fork(newThreadId: string, options: { afterRunId: string; metadata?: JsonObject | undefined }): Promise<void> {
    const { checkpointer, threadId } = this.#needStore("fork");
    await checkpointer.fork(threadId, newThreadId, options);
  }

  /**
   * Asks something on the side: a prompt on a copy of the completed runs. Nothing is written, and nobody is asked.
   *
   * @throws HitlUnavailableError when a tool call needs a person; nothing of the batch was run
   * @throws ArchivePrunedError when retention has removed messages of that time
   */
  async forkOnce(
    input: Prompt,
    options: { afterRunId: string; signal?: AbortSignal | undefined; onEvent?: PromptOptions["onEvent"] },
  ): Promise<AgentResult> {
    const { checkpointer, threadId } = this.#needStore("forkOnce");
    const { afterRunId, ...promptOptions } = options;
    const archives = checkpointer.capabilities.archives === true ? checkpointer.archives : undefined;
    const context: ContextAfter = archives
      ? await archives.contextAfter(threadId, { afterRunId })
      : { messages: await checkpointer.snapshot(threadId, { afterRunId }) };
    const extra = (await checkpointer.load(threadId))?.extra ?? {};
    const config = this.#runConfig(newId(), promptOptions);
    // Which of them were there before the compaction is not told. They are of runs that ended, so all can do without signatures.
    const kept = context.summary === undefined ? 0 : context.messages.length;
    const log = new ThreadLog(undefined, { ...context, kept, extra });
    const result = await new Run({ ...config, log, takeSteering: () => [] }).start(toUserMessages(input));
    config.emit({ type: "run_end", runId: config.runId, result });
    return result;
  }

  async #prompt(input: Prompt, options: PromptOptions): Promise<AgentResult> {
    const runId = options.runId === undefined ? newId() : checkNewRunId(options.runId);
    let messages = toUserMessages(input, runId);
    await this.#log.refresh();
    const { store } = this.#log;
    if (store) {
      const pending = await this.pending();
      if (pending?.runId === runId) return await this.#replay(runId, { status: "suspended", pending: pending.request });
      // A run that the thread knows was begun before: then claiming it changes nothing, and says what became of it.
      const begun = pending && (await this.#log.runMessages(runId)).length > 0;
      if (pending && !begun) throw new HitlPendingError(store.threadId, pending.request.question_id);
      const earlier = await this.#claim(store.checkpointer, store.threadId, runId);
      if (earlier === "failed") messages = [];
      else if (earlier) return earlier;
      if (pending) throw new HitlPendingError(store.threadId, pending.request.question_id);
    }
    const stored = await this.#answerInterrupted();
    return await this.#work(this.#runConfig(runId, options), (run) => run.start(messages, stored));
  }

  /**
   * Begins the run. Gives what it came to when it had completed before, and "failed" when the model had failed in it: then
   * nobody works on it, the user's messages are there, and only the model is to be asked again. Of two that do so at once
   * one loses, since each append passes the revision.
   */
  async #claim(
    checkpointer: Checkpointer,
    threadId: string,
    runId: string,
  ): Promise<AgentResult | "failed" | undefined> {
    try {
      await checkpointer.claimRun(threadId, runId);
      return undefined;
    } catch (error) {
      if (codeOf(error) === "run_already_completed") return await this.#replay(runId, { status: "completed" });
      if (codeOf(error) !== "run_already_claimed") throw error;
      const last = await this.#log.lastMessage();
      if (last?.role === "assistant" && last.run_id === runId && last.stop_reason === "error") return "failed";
      throw error;
    }
  }

  async #replay(runId: string, ending: Ending): Promise<AgentResult> {
    return { ...resultOf(runId, await this.#log.runMessages(runId), ending), replayed: true };
  }

  /** After a crash: tells the model that the outcome of unanswered calls is unknown. Nothing is run again. */
  async #answerInterrupted(): Promise<Message[]> {
    const stored: Message[] = [];
    for (const [runId, calls] of Map.groupBy(
      danglingCalls(this.#log.messages),
      ({ message }) => message.run_id ?? null,
    )) {
      const results = calls.map(({ call }) => ({
        ...toolResultMessage(call, UNKNOWN_OUTCOME, { is_error: true }),
        run_id: runId,
      }));
      try {
        stored.push(...(await this.#log.appendAll(results)));
        await this.#log.store?.checkpointer.clearHitlAnswers(this.#log.store.threadId, { runId });
      } catch (error) {
        // A completed run takes no more messages, and another program's run may have an id that is none here; the model
        // view answers their calls in the same words.
        if (codeOf(error) !== "run_already_completed" && codeOf(error) !== "invalid_id") throw error;
      }
    }
    return stored;
  }

  async #respond(questionId: string, answer: JsonValue, options: PromptOptions): Promise<AgentResult> {
    const { checkpointer, threadId } = this.#needStore("respond");
    const pending = await checkpointer.loadPending(threadId);
    if (!pending) throw new HitlNoPendingRequestError(threadId);
    const { request, runId: askedBy } = pending;
    if (request.question_id !== questionId) throw new HitlStaleAnswerError(questionId, request.question_id);
    await this.#log.refresh();
    // Asked again, so that the messages are neither older than the question nor newer than an answer to it.
    if (JSON.stringify(await checkpointer.loadPending(threadId)) !== JSON.stringify(pending)) {
      throw new HitlStaleAnswerError(questionId, undefined);
    }
    const { message, batch } = this.#openBatch();
    const madeBy = message.run_id ?? null;
    if (askedBy !== null && madeBy !== null && askedBy !== madeBy) {
      throw new HitlMismatchError(
        `The question belongs to run ${JSON.stringify(askedBy)}, and the open tool calls to run ${JSON.stringify(madeBy)}.`,
      );
    }
    // A request from before runs existed belongs to none: what follows is a run of its own.
    const runId = askedBy ?? newId();
    const config = this.#runConfig(runId, options);
    const { approvals } = new Run(config);
    const answeredId = await approvals.match(batch, request, answer);
    // Read once: the ledger of a request without a run is emptied below, before the batch is decided again.
    const ledger = new Map<string, JsonValue | undefined>([[answeredId, answer]]);
    const answers = async (id: string) => {
      if (!ledger.has(id)) ledger.set(id, await checkpointer.loadHitlAnswer(threadId, id, { runId: askedBy }));
      return ledger.get(id);
    };
    const plans = await approvals.decide(batch, answers);
    const asking = plans.find((plan) => plan.kind === "ask");
    const next = asking?.kind === "ask" ? pendingRequest(asking, threadId) : null;
    const won = await checkpointer.answerPending(threadId, { questionId, runId: askedBy, answer, next });
    if (!won) throw new HitlStaleAnswerError(questionId, undefined);
    if (askedBy === null && !next) {
      await checkpointer.claimRun(threadId, runId);
      await checkpointer.clearHitlAnswers(threadId, { runId: null });
    }
    const given = { questionId, answer };
    // Without a run there is nothing yet to ask on for: the next question waits for a respond() of its own.
    const suspend = next && (askedBy === null || !options.onPending);
    return await this.#work(config, async (run) =>
      suspend ? await run.suspended(given, next) : await run.resume(given, message, batch, answers),
    );
  }

  async #abortPending(reason: string): Promise<AgentResult> {
    const { checkpointer, threadId } = this.#needStore("abortPending");
    const pending = await checkpointer.loadPending(threadId);
    if (!pending) throw new HitlNoPendingRequestError(threadId);
    await this.#log.refresh();
    const match = { questionId: pending.request.question_id, runId: pending.runId };
    if (!(await checkpointer.clearPendingRequestIfMatches(threadId, match))) {
      throw new HitlStaleAnswerError(match.questionId, undefined);
    }
    const run_id = pending.runId;
    // Only of the turn that asks: what an older turn left open may have run.
    const { message, batch } = this.#openBatch();
    const denials = batch.open.map((call) => ({
      ...errorResult(call, `Not run: ${reason}`, { hitl: { decision: "aborted", reason } }),
      run_id: message.run_id ?? run_id,
    }));
    const last = assistantMessage([text(`The conversation was stopped: ${reason}`)], {
      stop_reason: "aborted",
      run_id,
    });
    const messages = await this.#log.appendAll([...denials, last]);
    await checkpointer.clearHitlAnswers(threadId, { runId: run_id });
    return resultOf(run_id ?? "", messages, { status: "aborted" });
  }

  /** The last turn that has unanswered calls; the pending request is about one of them. */
  #openBatch(): { message: AssistantMessage; batch: Batch } {
    const dangling = danglingCalls(this.#log.messages);
    const last = dangling.at(-1);
    if (!last) {
      // The question stays pending, and abortPending() can remove it: nothing is guessed.
      return { message: assistantMessage([]), batch: { calls: [], open: [] } };
    }
    const open = dangling.filter(({ index }) => index === last.index).map(({ call }) => call);
    return { message: last.message, batch: { calls: toolCallsOf(last.message), open } };
  }

  /** Works on a run, and reports what it came to. */
  async #work(config: RunConfig, work: (run: Run) => Promise<AgentResult>): Promise<AgentResult> {
    const result = await work(new Run(config));
    result.unused = this.#endSteering();
    config.emit({ type: "run_end", runId: config.runId, result });
    return result;
  }

  #runConfig(runId: string, options: PromptOptions): RunConfig {
    const { model, system = "", approve, retry } = this.#options;
    return {
      model,
      system,
      approve,
      retry,
      compaction: this.#compaction,
      tools: this.#tools,
      hooks: this.#hooks,
      log: this.#log,
      runId,
      signal: options.signal ?? new AbortController().signal,
      onPending: options.onPending,
      emit: (event) => {
        this.#options.onEvent?.(event);
        options.onEvent?.(event);
      },
      takeSteering: () => this.#steering.splice(0),
    };
  }

  /** A prompt or an answer, which takes up what steer() is given meanwhile. */
  #exclusively(options: object, work: () => Promise<AgentResult>): Promise<AgentResult> {
    return this.#alone(options, PROMPT_OPTIONS, async () => {
      this.#takesSteering = true;
      try {
        const result = await work();
        // Where no run was worked on, such as for a replay.
        result.unused.push(...this.#endSteering());
        return result;
      } finally {
        this.#endSteering();
      }
    });
  }

  /** One thing at a time: a second one fails at once, before anything is read or written. */
  async #alone<T>(options: object, known: readonly string[], work: () => Promise<T>): Promise<T> {
    const unknown = Object.keys(options).find((key) => !known.includes(key));
    if (unknown !== undefined) {
      throw new InvalidArgumentError(`There is no option ${unknown}. There is ${known.join(", ")}.`);
    }
    if (this.#busy) throw new AgentBusyError();
    this.#busy = true;
    try {
      return await work();
    } catch (error) {
      // What is in memory may no longer be what the store holds.
      this.#log.forget();
      throw error;
    } finally {
      this.#busy = false;
    }
  }

  /** Takes what was not taken up; from then on nothing is accepted that would be lost. */
  #endSteering(): UserMessage[] {
    this.#takesSteering = false;
    return this.#steering.splice(0);
  }

  #needStore(operation: string): { checkpointer: Checkpointer; threadId: string } {
    if (!this.#log.store) {
      throw new TypeError(`${operation}() needs a stored thread. Give the agent a checkpointer and a threadId.`);
    }
    return this.#log.store;
  }
}

function withoutUndefined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code;
}
