/** Messages as the prompt of an AI SDK language model, specification v4; `ai-sdk-v3.ts` takes it back to v3. */
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { isJsonObject, type JsonObject } from "../messages/json.ts";
import type { AssistantMessage, ImageBlock, Message, ToolResultMessage, UserBlock } from "../messages/schema.ts";
import type { AiSdkBlock } from "./ai-sdk-blocks.ts";
import { ModelBadRequestError } from "./errors.ts";

/** Whom the prompt is for. */
export interface PromptTarget {
  providerId: string;
  modelId: string;
  /** The names under which the provider keeps its data in `provider_options`. */
  optionKeys: readonly string[];
}

type AssistantContent = Extract<LanguageModelV4Message, { role: "assistant" }>["content"];
type AssistantPart = AssistantContent[number];
type ContentValue = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"];

/**
 * Builds the prompt. The same messages give the same prompt, whether they were just made or read back from a store.
 * Blocks of types that nobody here knows, and messages of which nothing is left, are not sent.
 *
 * @param messages the model view of a thread
 * @throws ModelBadRequestError when an image's source is no URL though it begins like one
 */
export function toPrompt(
  system: string | undefined,
  messages: readonly Message[],
  target: PromptTarget,
): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = system ? [{ role: "system", content: system }] : [];
  // What a provider noted on a call (an item, a caller) it reads on the call's result as well.
  const callOptions = new Map<string, JsonObject | undefined>();
  for (const message of messages) {
    if (message.role === "user") {
      const content = message.content.flatMap(userPart);
      if (content.length > 0) prompt.push({ role: "user", content });
    } else if (message.role === "assistant") {
      for (const block of message.content) {
        if (block.type === "tool_call") callOptions.set(block.id, block.provider_options);
      }
      const content = assistantContent(message, target);
      if (content.length > 0) prompt.push({ role: "assistant", content });
    } else {
      const part: LanguageModelV4ToolResultPart = {
        type: "tool-result",
        toolCallId: message.tool_call_id,
        toolName: message.tool_name,
        output: toolOutput(message),
        ...options(callOptions.get(message.tool_call_id)),
      };
      const last = prompt.at(-1);
      if (last?.role === "tool") last.content.push(part);
      else prompt.push({ role: "tool", content: [part] });
    }
  }
  return prompt;
}

function userPart(block: UserBlock): (LanguageModelV4TextPart | LanguageModelV4FilePart)[] {
  if (block.type === "text") return [{ type: "text", text: block.text, ...options(block.provider_options) }];
  return block.type === "image" ? [filePart(block)] : [];
}

function assistantContent(message: AssistantMessage, target: PromptTarget): AssistantContent {
  const own = message.provider_id === target.providerId;
  const blocks: AiSdkBlock[] = message.content;
  const resultIds = new Set(blocks.map((block) => (block.type === "provider_tool_result" ? block.id : undefined)));
  const callIds = new Set(blocks.map((block) => (block.type === "provider_tool_call" ? block.id : undefined)));

  const part = (block: AiSdkBlock): AssistantPart | undefined => {
    switch (block.type) {
      case "text":
        return { type: "text", text: block.text, ...options(block.provider_options) };
      case "thinking":
        return mayThink(block.provider_options, message, target)
          ? { type: "reasoning", text: block.thinking, ...options(block.provider_options) }
          : undefined;
      case "tool_call":
        return {
          type: "tool-call",
          toolCallId: block.id,
          toolName: block.name,
          input: inputOf(block),
          ...options(block.provider_options),
        };
    }
    // What a model made beyond these is of use to its own provider only.
    if (!own) return undefined;
    switch (block.type) {
      case "image":
      case "file":
        return filePart(block);
      case "thinking_file":
        return { ...filePart(block), type: "reasoning-file", data: fileData(block) };
      case "custom":
        return { type: "custom", kind: block.kind, ...options(block.provider_options) };
      case "provider_tool_call":
        // Providers refuse half of such a pair.
        return resultIds.has(block.id)
          ? {
              type: "tool-call",
              toolCallId: block.id,
              toolName: block.name,
              input: inputOf(block),
              providerExecuted: true,
              ...options(block.provider_options),
            }
          : undefined;
      case "provider_tool_result":
        return callIds.has(block.id)
          ? {
              type: "tool-result",
              toolCallId: block.id,
              toolName: block.name,
              output: { type: block.is_error ? "error-json" : "json", value: block.result },
              ...options(block.provider_options),
            }
          : undefined;
      default:
        return undefined;
    }
  };
  return blocks.map(part).filter((made) => made !== undefined);
}

/**
 * Whether a thinking block is sent. A provider refuses thinking that it can't verify, so another provider's goes only
 * where the block holds data under this provider's own name. Anthropic verifies every block.
 */
function mayThink(data: JsonObject | undefined, message: AssistantMessage, target: PromptTarget): boolean {
  if (target.optionKeys.includes("anthropic")) {
    const proof = data?.anthropic;
    return isJsonObject(proof) && (typeof proof.signature === "string" || typeof proof.redactedData === "string");
  }
  if (message.provider_id === target.providerId && message.model_id === target.modelId) return true;
  return target.optionKeys.some((key) => isJsonObject(data?.[key]));
}

/** Providers want an object as the input of a call; what was none is shown to the model inside one. */
function inputOf(block: { arguments: JsonObject; invalid_arguments?: unknown }): JsonObject {
  const { invalid_arguments: raw } = block;
  return typeof raw === "string" ? { invalid_arguments: raw } : block.arguments;
}

function toolOutput(message: ToolResultMessage): LanguageModelV4ToolResultOutput {
  const blocks = message.content.filter((block) => block.type === "text" || block.type === "image");
  if (blocks.every((block) => block.type === "text")) {
    return {
      type: message.is_error ? "error-text" : "text",
      value: blocks.map((block) => block.text).join("\n"),
      ...options(blocks.find((block) => block.provider_options)?.provider_options),
    };
  }
  const value = blocks.map((block): ContentValue[number] =>
    block.type === "text"
      ? { type: "text", text: block.text, ...options(block.provider_options) }
      : { ...filePart(block), type: "file" },
  );
  // An output with images can't be marked as an error, so it says so.
  return { type: "content", value: message.is_error ? [{ type: "text", text: "The tool failed." }, ...value] : value };
}

type Sourced = Pick<ImageBlock, "source" | "media_type" | "provider_options">;

function filePart(block: Sourced): LanguageModelV4FilePart {
  return {
    type: "file",
    data: fileData(block),
    mediaType: dataUrl(block.source)?.mediaType || block.media_type,
    ...options(block.provider_options),
  };
}

function fileData({ source }: Sourced): { type: "data"; data: string } | { type: "url"; url: URL } {
  const inline = dataUrl(source);
  if (inline) return { type: "data", data: inline.base64 };
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) return { type: "data", data: source };
  if (!URL.canParse(source)) throw new ModelBadRequestError(`The image source ${source.slice(0, 200)} is not a URL.`);
  return { type: "url", url: new URL(source) };
}

function dataUrl(source: string): { mediaType: string; base64: string } | undefined {
  if (!/^data:/i.test(source)) return undefined;
  const comma = source.indexOf(",");
  const [mediaType = "", ...parameters] = source.slice("data:".length, comma).split(";");
  const data = source.slice(comma + 1);
  const isBase64 = parameters.some((parameter) => parameter.trim().toLowerCase() === "base64");
  return { mediaType, base64: isBase64 ? data : Buffer.from(decodeURIComponent(data)).toString("base64") };
}

/** Only objects per provider can be options; a block of another program may hold anything there. */
function options(data: JsonObject | undefined): { providerOptions?: Record<string, JsonObject> } {
  if (!isJsonObject(data)) return {};
  const entries = Object.entries(data).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]));
  return entries.length > 0 ? { providerOptions: Object.fromEntries(entries) } : {};
}
