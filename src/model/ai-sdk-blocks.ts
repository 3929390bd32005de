/**
 * Blocks that AI SDK models bring forth beyond text, thinking and tool calls. They are kept in the log as blocks of
 * their own types; `ai-sdk-turn.ts` makes them and `ai-sdk-prompt.ts` gives back those that a provider reads again.
 */
import type { JsonObject, JsonValue } from "../messages/json.ts";
import type { AssistantBlock } from "../messages/schema.ts";

interface Extra {
  provider_options?: JsonObject;
}

/** A tool call that the provider runs itself, such as a web search. */
export interface ProviderToolCallBlock extends Extra {
  type: "provider_tool_call";
  id: string;
  name: string;
  arguments: JsonObject;
  invalid_arguments?: string;
}

/** What came of a provider's own tool call with the same id, in the same message. */
export interface ProviderToolResultBlock extends Extra {
  type: "provider_tool_result";
  id: string;
  name: string;
  result: JsonValue;
  is_error: boolean;
}

/** A file that the model made; images are `image` blocks. `source` is base64 data or a URL. */
export interface FileBlock extends Extra {
  type: "file" | "thinking_file";
  source: string;
  media_type: string;
}

/** Content that only its provider understands. */
export interface CustomBlock extends Extra {
  type: "custom";
  kind: `${string}.${string}`;
}

/** For people only, and never sent: a source that an answer rests on, or an approval that the provider asks for. */
export interface NoteBlock extends Extra {
  type: "source" | "provider_approval_request";
  [field: string]: JsonValue;
}

export type ExtraBlock = ProviderToolCallBlock | ProviderToolResultBlock | FileBlock | CustomBlock | NoteBlock;

/** A block of an assistant message as these files read and write it. */
export type AiSdkBlock = AssistantBlock | ExtraBlock;
