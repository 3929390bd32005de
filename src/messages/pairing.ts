/**
 * Which tool result answers which tool call. Providers reuse ids ("call_0" in every turn), so a result belongs to the
 * nearest call before it that has its id and no answer yet, not to any call of that id in the thread.
 */
import { toolCallsOf } from "./construct.ts";
import type { AssistantMessage, Message, ToolCallBlock } from "./schema.ts";

/** One tool call of a log, with the index of its answer when it has one. */
export interface PairedCall {
  call: ToolCallBlock;
  /** Index of the assistant message that made the call. */
  index: number;
  message: AssistantMessage;
  /** Index of the result message, or undefined while the call is unanswered. */
  result?: number;
}

export interface Pairing {
  /** Every tool call, in log order. */
  calls: PairedCall[];
  /** Indexes of results whose call is not before them. */
  orphans: number[];
  /** Indexes of results to calls that have an answer already. */
  duplicates: number[];
}

/** Pairs the tool calls of a log with their results. Pure; the log is left as it is. */
export function pairToolCalls(messages: readonly Message[]): Pairing {
  const calls: PairedCall[] = [];
  const orphans: number[] = [];
  const duplicates: number[] = [];
  const open = new Map<string, PairedCall[]>();
  messages.forEach((message, index) => {
    if (message.role === "assistant") {
      const made = toolCallsOf(message).map((call): PairedCall => ({ call, index, message }));
      calls.push(...made);
      // Later turns answer first; within one turn the calls are answered in their order.
      for (const paired of made.toReversed()) {
        const stack = open.get(paired.call.id);
        if (stack) stack.push(paired);
        else open.set(paired.call.id, [paired]);
      }
    } else if (message.role === "tool_result") {
      const stack = open.get(message.tool_call_id);
      if (!stack) orphans.push(index);
      else {
        const paired = stack.pop();
        if (paired) paired.result = index;
        else duplicates.push(index);
      }
    }
  });
  return { calls, orphans, duplicates };
}

/** The tool calls that have no result. */
export function danglingCalls(messages: readonly Message[]): PairedCall[] {
  return pairToolCalls(messages).calls.filter((paired) => paired.result === undefined);
}
