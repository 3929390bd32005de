/** Middleware: hooks into a run. Each may change `extra`, the thread's JSON state, which is saved after the turn. */
import { copyJsonObject, type JsonObject } from "../messages/json.ts";
import type { AssistantMessage, Message, ToolCallBlock, ToolResultMessage } from "../messages/schema.ts";
import type { AgentResult } from "./events.ts";
import type { Tool } from "./tools.ts";

export interface HookContext {
  threadId: string | undefined;
  runId: string;
  /** The thread's JSON state. Keep to keys of your own. */
  extra: JsonObject;
  signal: AbortSignal;
  /** The run's messages so far, in order, also those that a compaction has set aside meanwhile. */
  runMessages(): Promise<Message[]>;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a hook that returns nothing leaves things as they are
type Maybe<T> = T | undefined | void | Promise<T | undefined | void>;

/**
 * Hooks run in the order of the agent's list. What a hook throws ends the run and is thrown by prompt(), except in
 * beforeToolCall and afterToolCall, where it becomes that call's error result. Return nothing to leave things as they are.
 */
export interface Middleware {
  /** Tools that come with it. */
  tools?: readonly Tool[];
  /** Changes the system prompt of one model call; not stored. */
  systemPrompt?(system: string, context: HookContext): Maybe<string>;
  /** Changes what one model call is sent of the thread; not stored. Gets a copy of the list; don't change its messages. */
  context?(messages: Message[], context: HookContext): Maybe<Message[]>;
  /** Changes an answer before it is stored and acted on. */
  afterModelResponse?(message: AssistantMessage, context: HookContext): Maybe<AssistantMessage>;
  /**
   * Blocks a call, with a reason for the model, or changes its arguments, before it is approved. The whole batch is decided
   * before any of it runs, and again when a suspended run is resumed: give the same answer to the same call.
   */
  beforeToolCall?(call: ToolCallBlock, context: HookContext): Maybe<{ block: string } | { arguments: JsonObject }>;
  /** Changes a result before it is stored. */
  afterToolCall?(result: ToolResultMessage, call: ToolCallBlock, context: HookContext): Maybe<ToolResultMessage>;
  /** Ends the run after a turn whose tool calls are all answered, when it gives true. */
  stopAfterTurn?(
    turn: { message: AssistantMessage; toolResults: ToolResultMessage[] },
    context: HookContext,
  ): Maybe<boolean>;
  /** Runs at the end, however the run ended, before extra is saved for the last time. A suspended run has not ended. */
  endOfRun?(result: AgentResult, context: HookContext): Maybe<undefined>;
}

/** All middleware of an agent as one. */
export class Hooks {
  readonly #list: readonly Middleware[];

  constructor(list: readonly Middleware[]) {
    this.#list = list;
  }

  get tools(): Tool[] {
    return this.#list.flatMap((item) => item.tools ?? []);
  }

  async systemPrompt(system: string, context: HookContext): Promise<string> {
    for (const item of this.#list) system = (await item.systemPrompt?.(system, context)) ?? system;
    return system;
  }

  async context(messages: readonly Message[], context: HookContext): Promise<readonly Message[]> {
    for (const item of this.#list) {
      if (item.context) messages = (await item.context([...messages], context)) ?? messages;
    }
    return messages;
  }

  async afterModelResponse(message: AssistantMessage, context: HookContext): Promise<AssistantMessage> {
    for (const item of this.#list) message = (await item.afterModelResponse?.(message, context)) ?? message;
    return message;
  }

  async beforeToolCall(call: ToolCallBlock, context: HookContext): Promise<{ call: ToolCallBlock; block?: string }> {
    for (const item of this.#list) {
      // A copy: only what the hook returns changes the call.
      const decision = await item.beforeToolCall?.(
        { ...call, arguments: copyJsonObject(call.arguments, "arguments") },
        context,
      );
      if (!decision) continue;
      if ("block" in decision) return { call, block: String(decision.block ?? "") };
      call = { ...call, arguments: decision.arguments };
    }
    return { call };
  }

  async afterToolCall(
    result: ToolResultMessage,
    call: ToolCallBlock,
    context: HookContext,
  ): Promise<ToolResultMessage> {
    for (const item of this.#list) result = (await item.afterToolCall?.(result, call, context)) ?? result;
    return result;
  }

  async stopAfterTurn(
    turn: { message: AssistantMessage; toolResults: ToolResultMessage[] },
    context: HookContext,
  ): Promise<boolean> {
    let stop = false;
    for (const item of this.#list) if (await item.stopAfterTurn?.(turn, context)) stop = true;
    return stop;
  }

  async endOfRun(result: AgentResult, context: HookContext): Promise<void> {
    for (const item of this.#list) await item.endOfRun?.(result, context);
  }
}
