/** Constructors: they fill in the defaults of a record, as CubeLoop's models do. */
import type { JsonObject, JsonValue } from "./json.ts";
import type {
  AssistantBlock,
  AssistantMessage,
  ImageBlock,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  ToolResultMessage,
  UserBlock,
  UserMessage,
} from "./schema.ts";

export const text = (text: string): TextBlock => ({ type: "text", text });
export const thinking = (thinking: string): ThinkingBlock => ({ type: "thinking", thinking });

/** @param source base64 data, a data URL or a URL @param mediaType such as "image/png" */
export const image = (source: string, mediaType: string): ImageBlock => ({
  type: "image",
  source,
  media_type: mediaType,
});

export const toolCall = (id: string, name: string, args: JsonObject = {}): ToolCallBlock => ({
  type: "tool_call",
  id,
  name,
  arguments: args,
});

/** The present time as messages keep it: seconds since 1970, with a fraction. */
export const now = (): number => Date.now() / 1000;

/** What a person says. @param content text, or blocks @param fields other fields (Default: now, no metadata, no run) */
export function userMessage(content: string | UserBlock[], fields: Partial<UserMessage> = {}): UserMessage {
  return { role: "user", content: blocks(content), timestamp: now(), metadata: {}, run_id: null, ...fields };
}

/** What a model says. @param content text, or blocks @param fields other fields (Default: stopped, no usage, no run) */
export function assistantMessage(
  content: string | AssistantBlock[],
  fields: Partial<AssistantMessage> = {},
): AssistantMessage {
  return {
    role: "assistant",
    content: blocks(content),
    stop_reason: "stop",
    error_message: null,
    usage: null,
    timestamp: now(),
    provider_id: "",
    model_id: "",
    response_id: null,
    metadata: {},
    run_id: null,
    ...fields,
  };
}

/** What a tool answered to the call with the given id. @param details any JSON, for programs (Default: null) */
export function toolResultMessage(
  call: { id: string; name: string },
  content: string | UserBlock[],
  fields: Partial<Omit<ToolResultMessage, "details">> & { details?: JsonValue } = {},
): ToolResultMessage {
  return {
    role: "tool_result",
    tool_call_id: call.id,
    tool_name: call.name,
    content: blocks(content),
    details: null,
    is_error: false,
    timestamp: now(),
    metadata: {},
    run_id: null,
    ...fields,
  };
}

function blocks<T>(content: string | T[]): (T | TextBlock)[] {
  return typeof content === "string" ? [text(content)] : content;
}

/** The text blocks of a message as one string. */
export function textOf(message: { content: readonly { type: string; text?: unknown }[] }): string {
  return message.content.map((block) => (block.type === "text" ? String(block.text) : "")).join("");
}

/** The tool calls of a message, in order. */
export function toolCallsOf(message: { role: string; content: readonly { type: string }[] }): ToolCallBlock[] {
  return message.role === "assistant"
    ? message.content.filter((block): block is ToolCallBlock => block.type === "tool_call")
    : [];
}
