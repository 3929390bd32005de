/** What an agent reports while it works, and what a prompt comes to. */
import type { PendingRequest } from "../checkpoint/pending.ts";
import type { JsonObject, JsonValue } from "../messages/json.ts";
import type { AssistantMessage, Message, ToolResultMessage, Usage, UserMessage } from "../messages/schema.ts";
import type { ModelError } from "../model/errors.ts";

/**
 * How a run settled:
 * - `completed`: it ended whole
 * - `suspended`: it waits on a person (`pending`); any process can go on with respond()
 * - `aborted`: its signal fired, or its pending request was aborted
 * - `failed`: the model failed (`error`); the error is stored on the last message too
 */
export type Ending =
  | { status: "completed" | "aborted"; pending?: never; error?: never }
  | { status: "suspended"; pending: PendingRequest; error?: never }
  | { status: "failed"; pending?: never; error: Error };

export type AgentResult = Ending & {
  runId: string;
  /** The text of the last answer; "" when there is none. */
  text: string;
  /** What this call added to the thread, in order. */
  messages: Message[];
  /** Why the model stopped last; null when it did not answer. */
  stopReason: string | null;
  /** Tokens of all model calls of this call, added up. */
  usage: Usage;
  /** Messages given to steer() that the run ended without taking up. */
  unused: UserMessage[];
  /** Whether the run had completed (or suspended) before and this is what it came to then. */
  replayed?: true;
};

/** In order, each with the id of its run ("" for a compaction outside of one). `message` comes after the message is durable, deltas before. */
export type AgentEvent = { runId: string } & (
  | { type: "run_start"; threadId: string | undefined }
  | { type: "text_delta"; delta: string }
  | { type: "thinking_delta"; delta: string }
  | { type: "tool_call_delta"; id: string; name: string; delta: string }
  | { type: "model_retry"; attempt: number; delayMs: number; error: ModelError }
  | { type: "message"; message: Message }
  | { type: "tool_start"; toolCallId: string; toolName: string; arguments: JsonObject }
  | { type: "tool_update"; toolCallId: string; toolName: string; progress: unknown }
  | { type: "tool_end"; toolCallId: string; toolName: string; result: ToolResultMessage }
  | { type: "turn_end"; message: AssistantMessage; toolResults: ToolResultMessage[] }
  | { type: "pending"; request: PendingRequest }
  | { type: "answer"; questionId: string; answer: JsonValue }
  | ({ type: "compaction_start"; tokensBefore: number } & CompactionCounts)
  | ({
      type: "compaction_end";
      archiveId: string;
      /** The position of the last message that was set aside. */
      upTo: number;
      tokensBefore: number;
      summary: string;
      /** What writing the summary took; no part of the run's usage. */
      usage: Usage | null;
    } & CompactionCounts)
  /** `usage` is what a summary took that could not be used. */
  | { type: "compaction_failed"; error: Error; usage: Usage | null }
  | { type: "retention_failed"; error: Error }
  | { type: "run_end"; result: AgentResult }
);

interface CompactionCounts {
  /** How many messages are set aside. */
  messageCount: number;
  /** How many stay. */
  kept: number;
}

/** An event before it has its run's id. */
export type Outgoing = AgentEvent extends infer Event ? (Event extends unknown ? Omit<Event, "runId"> : never) : never;
