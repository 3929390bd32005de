/**
 * One run, from the user's message to a settled end. Every finished message is stored before the next step: the user's
 * before the model is called, the assistant's before any tool runs, each tool result as it settles.
 */
import type { PendingRequest } from "../checkpoint/pending.ts";
import { messageOf } from "../errors.ts";
import { admitMessage } from "../messages/admit.ts";
import { assistantMessage, toolCallsOf } from "../messages/construct.ts";
import { copyJson, type JsonValue } from "../messages/json.ts";
import type {
  AssistantMessage,
  Message,
  ToolCallBlock,
  ToolResultMessage,
  Usage,
  UserMessage,
} from "../messages/schema.ts";
import { modelView } from "../messages/view.ts";
import type { ModelError } from "../model/errors.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { type RetryPolicy, streamWithRetry } from "../model/retry.ts";
import { type ApprovalPolicy, Approvals, type Batch, type Plan, pendingRequest } from "./approvals.ts";
import { type CompactionSettings, compact, isDue } from "./compaction.ts";
import { contextOf, contextSize } from "./context.ts";
import { HitlStaleAnswerError, HitlUnavailableError } from "./errors.ts";
import type { AgentEvent, AgentResult, Ending, Outgoing } from "./events.ts";
import type { ThreadLog } from "./log.ts";
import type { HookContext, Hooks } from "./middleware.ts";
import { PartialAnswer, resultOf } from "./result.ts";
import { errorResult, executeTool, type Tool, toolSpec, untilStopped, withDecision } from "./tools.ts";

/** Answers a question within the process; undefined leaves it pending, and the run suspended. */
export type OnPending = (
  request: PendingRequest,
  context: { signal: AbortSignal },
) => JsonValue | undefined | Promise<JsonValue | undefined>;

export interface RunConfig {
  model: Model;
  system: string;
  tools: ReadonlyMap<string, Tool>;
  hooks: Hooks;
  approve: ApprovalPolicy | undefined;
  retry: RetryPolicy | undefined;
  compaction: CompactionSettings;
  log: ThreadLog;
  runId: string;
  signal: AbortSignal;
  onPending: OnPending | undefined;
  emit(event: AgentEvent): void;
  /** Takes the messages that wait to be taken up. */
  takeSteering(): UserMessage[];
}

interface GivenAnswer {
  questionId: string;
  answer: JsonValue;
}

export class Run {
  readonly #config: RunConfig;
  readonly #added: Message[] = [];
  readonly #usage: Usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
  /** Where the thread stood before this run began; undefined for one that goes on. */
  #begunAfter: number | undefined;
  #mayCompact: boolean;

  constructor(config: RunConfig) {
    this.#config = config;
    this.#mayCompact = Number.isFinite(config.compaction.triggerTokens);
  }

  /**
   * A new run: stores the user's messages, then works until it settles.
   *
   * @param stored what was stored for it already: results of interrupted calls
   */
  async start(messages: readonly UserMessage[], stored: readonly Message[] = []): Promise<AgentResult> {
    this.#emit({ type: "run_start", threadId: this.#config.log.store?.threadId });
    for (const message of stored) this.#report(message);
    if (messages.length > 0) this.#begunAfter = this.#config.log.revision;
    for (const message of messages) await this.#append(message);
    return await this.#finish(await this.#work());
  }

  /** A suspended run that has an answer now: decides about its open calls again, then goes on. */
  async resume(
    given: GivenAnswer,
    message: AssistantMessage,
    batch: Batch,
    answers: (questionId: string) => Promise<JsonValue | undefined>,
  ): Promise<AgentResult> {
    this.#emit({ type: "run_start", threadId: this.#config.log.store?.threadId });
    this.#emit({ type: "answer", ...given });
    const ending = (await this.#settleCalls(message, batch, answers)) ?? (await this.#work());
    return await this.#finish(ending);
  }

  /** What a suspension comes to when nothing was run: its end, for a caller that replaced one question by the next. */
  async suspended(given: GivenAnswer, request: PendingRequest): Promise<AgentResult> {
    this.#emit({ type: "run_start", threadId: this.#config.log.store?.threadId });
    this.#emit({ type: "answer", ...given });
    this.#emit({ type: "pending", request });
    return await this.#finish({ status: "suspended", pending: request });
  }

  get approvals(): Approvals {
    const { tools, hooks, approve, log } = this.#config;
    return new Approvals({ tools, hooks, approve, hookContext: this.#hookContext, messages: log.messages });
  }

  async #work(): Promise<Ending> {
    const { hooks, signal, takeSteering } = this.#config;
    for (;;) {
      for (const message of takeSteering()) await this.#append(message);
      if (signal.aborted) return { status: "aborted" };
      const answer = await this.#callModel();
      if ("status" in answer) return answer;
      const { message } = answer;
      const calls = toolCallsOf(message);
      if (calls.length > 0) {
        const ending = await this.#settleCalls(message, { calls, open: calls }, () => Promise.resolve(undefined));
        if (ending) return ending;
        continue;
      }
      this.#emit({ type: "turn_end", message, toolResults: [] });
      const stop = await hooks.stopAfterTurn({ message, toolResults: [] }, this.#hookContext);
      const late = stop ? [] : takeSteering();
      if (late.length === 0) return { status: "completed" };
      for (const steered of late) await this.#append(steered);
    }
  }

  async #callModel(): Promise<{ message: AssistantMessage } | Ending> {
    const { model, hooks, log, tools, signal, retry } = this.#config;
    const system = await hooks.systemPrompt(this.#config.system, this.#hookContext);
    const specs = [...tools.values()].map(toolSpec);
    await this.#compactIfDue(system, specs);
    if (signal.aborted) return { status: "aborted" };
    const messages = await hooks.context(contextOf(log, tools.has("memory_search")), this.#hookContext);
    const request: ModelRequest = {
      ...(system === "" ? {} : { system }),
      messages: modelView(messages).messages,
      tools: specs,
      signal,
    };
    const said = new PartialAnswer();
    const origin = { provider_id: model.providerId, model_id: model.modelId, run_id: this.#runId };
    try {
      const onRetry = (wait: { attempt: number; delayMs: number; error: ModelError }) =>
        this.#emit({ type: "model_retry", ...wait });
      for await (const event of streamWithRetry(model, request, retry, onRetry)) {
        if (event.type !== "finish") {
          said.add(event);
          this.#emit(event);
          // For a model that doesn't listen.
          signal.throwIfAborted();
          continue;
        }
        const { content, stop_reason, usage, response_id } = event;
        const fields = { stop_reason, usage, response_id, ...origin };
        // Admitted here: what a model gives that can't be stored is the model's failure, not the store's.
        said.message = admitMessage(assistantMessage(content, fields)) as AssistantMessage;
      }
      if (!said.message) throw new Error("The model's stream ended without an answer.");
    } catch (error) {
      return await this.#storeFailure(said, origin, error);
    }
    const changed = await hooks.afterModelResponse(said.message, this.#hookContext);
    if (changed.role !== "assistant") throw new TypeError("afterModelResponse must give an assistant message.");
    const message = await this.#append(changed);
    for (const key of Object.keys(this.#usage) as (keyof Usage)[]) this.#usage[key] += message.usage?.[key] ?? 0;
    return { message };
  }

  /** Never fails the run: without a compaction it goes on with the whole context, and tries no other. */
  async #compactIfDue(system: string, tools: ModelRequest["tools"]): Promise<void> {
    const { log, compaction, retry, signal } = this.#config;
    if (!this.#mayCompact || !isDue(contextSize(log, { system, tools }), compaction)) return;
    try {
      await compact(log, compaction, { system, tools, retry, signal, emit: (event) => this.#emit(event) });
    } catch {
      // It was reported. If another process has compacted the thread, that compaction serves as well.
      this.#mayCompact = false;
      await log.followCompaction().catch(() => {});
    }
  }

  /** What was said before the model failed or was stopped is kept; calls it had begun to make are not. */
  async #storeFailure(said: PartialAnswer, origin: Partial<AssistantMessage>, error: unknown): Promise<Ending> {
    const { signal } = this.#config;
    const aborted = signal.aborted;
    const failure = {
      ...assistantMessage(said.blocks(), { ...origin, stop_reason: aborted ? "aborted" : "error" }),
      error_message: aborted ? null : messageOf(error),
      ...(aborted ? {} : { error_code: codeOf(error) }),
    };
    await this.#append(failure);
    return aborted
      ? { status: "aborted" }
      : { status: "failed", error: error instanceof Error ? error : new Error(String(error)) };
  }

  /** Decides about the open calls of a turn and answers them. Gives an ending when the run stops here. */
  async #settleCalls(
    message: AssistantMessage,
    batch: Batch,
    recorded: (questionId: string) => Promise<JsonValue | undefined>,
  ): Promise<Ending | undefined> {
    const { log, hooks, signal } = this.#config;
    const given = new Map<string, JsonValue>();
    const answerTo = async (id: string) => (given.has(id) ? given.get(id) : await recorded(id));
    let plans = await this.approvals.decide(batch, answerTo);
    for (let asking = firstAsk(plans); asking && !signal.aborted; asking = firstAsk(plans)) {
      const request = pendingRequest(asking, log.store?.threadId);
      const answer = await this.#askPerson(request, batch);
      if (answer === undefined) return { status: "suspended", pending: request };
      given.set(asking.questionId, answer);
      plans = await this.approvals.decide(batch, answerTo);
    }
    const toolResults = await this.#answerCalls(plans);
    if (log.store) await log.store.checkpointer.clearHitlAnswers(log.store.threadId, { runId: this.#runId });
    await log.saveExtra();
    this.#emit({ type: "turn_end", message, toolResults });
    if (signal.aborted) return { status: "aborted" };
    if (await hooks.stopAfterTurn({ message, toolResults }, this.#hookContext)) return { status: "completed" };
    return undefined;
  }

  /** Stores the question, then asks whoever is there. Undefined when the run is to wait. */
  async #askPerson(request: PendingRequest, batch: Batch): Promise<JsonValue | undefined> {
    const { log, onPending } = this.#config;
    const runId = this.#runId;
    if (!log.store && !onPending) {
      throw new HitlUnavailableError(
        `Tool call ${JSON.stringify(request.question_id)} needs a person's answer, and this run stores nothing, so it can't wait for one. Give the agent a checkpointer and a threadId, or onPending; forkOnce() has neither.`,
      );
    }
    if (log.store) {
      await log.saveExtra();
      await log.store.checkpointer.savePendingRequest(log.store.threadId, request, {
        runId,
        expectedRevision: log.revision,
      });
    }
    this.#emit({ type: "pending", request });
    const answer = await this.#askHere(request);
    if (answer === undefined) return undefined;
    await this.approvals.match(batch, request, answer);
    if (log.store) {
      const questionId = request.question_id;
      const won = await log.store.checkpointer.answerPending(log.store.threadId, { questionId, runId, answer });
      if (!won) throw new HitlStaleAnswerError(questionId, undefined);
    }
    this.#emit({ type: "answer", questionId: request.question_id, answer });
    return answer;
  }

  async #askHere(request: PendingRequest): Promise<JsonValue | undefined> {
    const { onPending, signal } = this.#config;
    if (!onPending || signal.aborted) return undefined;
    const stopped = Promise.withResolvers<undefined>();
    const onAbort = () => stopped.resolve(undefined);
    signal.addEventListener("abort", onAbort);
    try {
      const asking = Promise.resolve(onPending(request, { signal }));
      const answer = await Promise.race([asking, stopped.promise]);
      return answer === undefined ? undefined : copyJson(answer, "answer");
    } catch (error) {
      // Stopping while a person is being asked leaves the question for later.
      if (signal.aborted) return undefined;
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Answers all calls at once; each result is stored as it settles. A failure of the store is thrown when all have. */
  async #answerCalls(plans: readonly Plan[]): Promise<ToolResultMessage[]> {
    const failed = new AbortController();
    const signal = AbortSignal.any([this.#config.signal, failed.signal]);
    const lastOf = new Map<string, Promise<unknown>>();
    const settled = await Promise.allSettled(
      plans.map((plan) => {
        const before = lastOf.get(plan.call.id);
        const answer = async () => {
          try {
            const result = await this.#answerCall(plan, signal);
            // Results to calls of one id are told apart by their order only.
            await before;
            return await this.#append(result);
          } catch (error) {
            // Nothing can be stored any more, so the others had better stop.
            failed.abort(error);
            throw error;
          }
        };
        const answering = answer();
        lastOf.set(plan.call.id, answering);
        return answering;
      }),
    );
    const lost = settled.find((item) => item.status === "rejected");
    if (lost) throw lost.reason;
    return settled.flatMap((item) => (item.status === "fulfilled" ? item.value : []));
  }

  async #answerCall(plan: Plan, signal: AbortSignal): Promise<ToolResultMessage> {
    const { call } = plan;
    const about = { toolCallId: call.id, toolName: call.name };
    let result: ToolResultMessage;
    if (plan.kind === "answered") result = plan.result;
    else if (plan.kind === "ask" || signal.aborted) {
      result = errorResult(call, "This call was not run: the run was stopped first.");
    } else {
      this.#emit({ type: "tool_start", ...about, arguments: plan.shown });
      let running = true;
      const { runMessages: _, ...ofRun } = this.#hookContext;
      const context = {
        ...ofRun,
        toolCallId: call.id,
        signal,
        // A tool that went on after the run had stopped has nobody to report to.
        update: (progress: unknown) => running && this.#emit({ type: "tool_update", ...about, progress }),
      };
      const output = await untilStopped(executeTool(plan.tool, call, plan.args, context), call, signal);
      running = false;
      result = await this.#afterToolCall(withDecision(output, plan.decision), call);
    }
    const stamped = { ...result, run_id: this.#runId };
    if (plan.kind === "run") this.#emit({ type: "tool_end", ...about, result: stamped });
    return stamped;
  }

  async #afterToolCall(result: ToolResultMessage, call: ToolCallBlock): Promise<ToolResultMessage> {
    try {
      const changed = admitMessage(await this.#config.hooks.afterToolCall(result, call, this.#hookContext));
      if (changed.role !== "tool_result") throw new TypeError("afterToolCall must give a tool result.");
      return { ...changed, tool_call_id: call.id, tool_name: call.name };
    } catch (error) {
      return errorResult(call, messageOf(error));
    }
  }

  async #finish(ending: Ending): Promise<AgentResult> {
    const { hooks, log } = this.#config;
    const result = { ...resultOf(this.#runId, this.#added, ending), usage: this.#usage };
    if (result.status !== "suspended") await hooks.endOfRun(result, this.#hookContext);
    await log.saveExtra();
    if (result.status === "completed" && log.store)
      await log.store.checkpointer.markRunComplete(log.store.threadId, this.#runId);
    return result;
  }

  get #runId(): string {
    return this.#config.runId;
  }

  get #hookContext(): HookContext {
    const { log, runId, signal } = this.#config;
    const runMessages = () => log.runMessages(runId, this.#begunAfter);
    return { threadId: log.store?.threadId, runId, extra: log.extra, signal, runMessages };
  }

  async #append<M extends Message>(message: M): Promise<M> {
    const stored = await this.#config.log.append({ ...message, run_id: this.#runId });
    this.#report(stored);
    return stored;
  }

  #report(stored: Message): void {
    this.#added.push(stored);
    this.#emit({ type: "message", message: stored });
  }

  #emit(event: Outgoing): void {
    this.#config.emit({ ...event, runId: this.#runId } as AgentEvent);
  }
}

function firstAsk(plans: readonly Plan[]): Extract<Plan, { kind: "ask" }> | undefined {
  return plans.find((plan): plan is Extract<Plan, { kind: "ask" }> => plan.kind === "ask");
}

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : null;
}
