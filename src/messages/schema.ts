/**
 * The shape of a message: one schema that gives the TypeScript types, the check at the door and on load, and the JSON
 * Schema in `schema/message.schema.json`. A message in memory is exactly its stored JSON, so names are snake_case, and
 * fields or blocks that this version doesn't know are kept as they are.
 */
import * as v from "valibot";
import type { JsonObject, JsonValue } from "./json.ts";

// The check comes first: looseObject takes an array too, and hands on a copy that is none.
const jsonObject = v.pipe(
  v.unknown(),
  v.check((value) => !Array.isArray(value), "must be an object, not an array."),
  v.looseObject({}),
);
const json = v.unknown();

const textBlock = v.looseObject({ type: v.literal("text"), text: v.string() });
/** `source` is a data URL, a URL, or base64 data of the given media type. */
const imageBlock = v.looseObject({ type: v.literal("image"), source: v.string(), media_type: v.string() });
const thinkingBlock = v.looseObject({ type: v.literal("thinking"), thinking: v.string() });
const toolCallBlock = v.looseObject({
  type: v.literal("tool_call"),
  id: v.string(),
  name: v.string(),
  arguments: jsonObject,
});
const OTHER_TYPE = /^(?!(?:text|image|thinking|tool_call)$)/;
/**
 * A block of a kind that a newer version or another program wrote. The check comes before the string, so that a fault
 * within a block of a known kind is reported as that, and not as a kind that is not allowed; the pattern says the same
 * in the JSON Schema.
 */
const unknownBlock = v.looseObject({
  type: v.pipe(
    v.unknown(),
    v.check((type) => typeof type === "string" && OTHER_TYPE.test(type), "is not allowed here."),
    v.string(),
    v.regex(OTHER_TYPE),
  ),
});

const timestamp = v.nullish(v.number());
const common = {
  /** Seconds since 1970. Time is for display; order is the log's. */
  timestamp,
  metadata: v.optional(jsonObject),
  run_id: v.nullish(v.string()),
};

const content = v.array(v.union([v.variant("type", [textBlock, imageBlock]), unknownBlock]));

const userMessageSchema = v.looseObject({ role: v.literal("user"), content, ...common });

const usageSchema = v.looseObject({
  input_tokens: v.number(),
  output_tokens: v.number(),
  cache_read_tokens: v.number(),
  cache_write_tokens: v.number(),
});

const assistantMessageSchema = v.looseObject({
  role: v.literal("assistant"),
  content: v.array(v.union([v.variant("type", [textBlock, imageBlock, thinkingBlock, toolCallBlock]), unknownBlock])),
  stop_reason: v.optional(v.string()),
  error_message: v.nullish(v.string()),
  usage: v.nullish(usageSchema),
  provider_id: v.optional(v.string()),
  model_id: v.optional(v.string()),
  response_id: v.nullish(v.string()),
  ...common,
});

const toolResultMessageSchema = v.looseObject({
  role: v.literal("tool_result"),
  tool_call_id: v.string(),
  tool_name: v.string(),
  content,
  details: v.optional(json),
  is_error: v.optional(v.boolean()),
  ...common,
});

export const messageSchema = v.variant("role", [userMessageSchema, assistantMessageSchema, toolResultMessageSchema]);

// The types name the fields this version knows. Others are there at run time all the same, and are kept.
type Known<T extends { type: string }> = T & {
  /** What the provider must get back unchanged with this block: signatures, encrypted reasoning, cache marks. */
  provider_options?: JsonObject;
};
export type TextBlock = Known<{ type: "text"; text: string }>;
export type ImageBlock = Known<{ type: "image"; source: string; media_type: string }>;
export type ThinkingBlock = Known<{ type: "thinking"; thinking: string }>;
export type ToolCallBlock = Known<{
  type: "tool_call";
  id: string;
  name: string;
  arguments: JsonObject;
  /** The input as the model wrote it, when that was not a JSON object; `arguments` is then {}. */
  invalid_arguments?: string;
}>;
export type UserBlock = TextBlock | ImageBlock;
export type AssistantBlock = TextBlock | ImageBlock | ThinkingBlock | ToolCallBlock;
export type Block = AssistantBlock;
export type Usage = Pick<
  v.InferOutput<typeof usageSchema>,
  "input_tokens" | "output_tokens" | "cache_read_tokens" | "cache_write_tokens"
>;

interface Common {
  timestamp?: number | null;
  metadata?: JsonObject;
  run_id?: string | null;
}

export interface UserMessage extends Common {
  role: "user";
  content: UserBlock[];
}

export interface AssistantMessage extends Common {
  role: "assistant";
  content: AssistantBlock[];
  /** Why the model stopped: "stop", "tool_use", "length", "content_filter", "aborted", "error", or a provider's own word. */
  stop_reason?: string;
  error_message?: string | null;
  usage?: Usage | null;
  provider_id?: string;
  model_id?: string;
  response_id?: string | null;
}

export interface ToolResultMessage extends Common {
  role: "tool_result";
  tool_call_id: string;
  tool_name: string;
  content: UserBlock[];
  /** Any JSON for programs; the model sees `content` only. */
  details?: JsonValue;
  is_error?: boolean;
}

export type Message = UserMessage | AssistantMessage | ToolResultMessage;
