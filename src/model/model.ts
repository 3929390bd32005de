/** The small contract between the agent loop and whatever answers: a provider, a script, or rules. */
import type { JsonObject } from "../messages/json.ts";
import type { AssistantBlock, Message, Usage } from "../messages/schema.ts";

/** A tool as a model is told of it. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments, an object. */
  inputSchema: JsonObject;
}

export interface ModelRequest {
  system?: string | undefined;
  /** The model view of the thread: pairs whole, ids unique, no blank text. */
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  /** Aborts the request: the stream then ends by throwing. */
  signal?: AbortSignal | undefined;
}

/**
 * What a model streams: any number of deltas, which are for show, then one `finish`, which holds the whole turn. What the
 * provider must see again unchanged (signatures, encrypted reasoning) rides in the blocks' `provider_options`.
 */
export type ModelEvent =
  | { type: "text_delta"; delta: string }
  | { type: "thinking_delta"; delta: string }
  | { type: "tool_call_delta"; id: string; name: string; delta: string }
  | {
      type: "finish";
      content: AssistantBlock[];
      /** "stop", "tool_use", "length", or a provider's own word. A filtered answer throws ContentFilterError instead. */
      stop_reason: string;
      usage: Usage | null;
      response_id: string | null;
    };

export interface Model {
  /** Stored with each answer, such as "anthropic". */
  readonly providerId: string;
  /** Stored with each answer, such as "claude-sonnet-4-6". */
  readonly modelId: string;
  /**
   * Answers a request. Must throw a ModelError for what the provider refused, and must stop soon after `signal` fires.
   * A stream that throws before its first event may be asked again.
   */
  stream(request: ModelRequest): AsyncIterable<ModelEvent>;
}
