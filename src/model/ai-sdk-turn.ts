/** The parts of an AI SDK stream, collected into the blocks of one assistant turn. */
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { copyJson, copyJsonObject, isJsonObject, type JsonObject, type JsonValue } from "../messages/json.ts";
import type { AssistantBlock, ToolCallBlock } from "../messages/schema.ts";
import type { AiSdkBlock, ProviderToolCallBlock } from "./ai-sdk-blocks.ts";
import type { ModelEvent } from "./model.ts";

export type StreamPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart;

type CallBlock = ToolCallBlock | ProviderToolCallBlock;
interface OpenCall {
  block: CallBlock;
  /** The input as it streamed in. */
  input: string;
  whole: boolean;
}

export class Turn {
  responseId: string | null = null;
  /** In the order in which they began. */
  readonly #blocks: AiSdkBlock[] = [];
  readonly #texts = new Map<string, Extract<AssistantBlock, { type: "text" }>>();
  readonly #thoughts = new Map<string, Extract<AssistantBlock, { type: "thinking" }>>();
  readonly #calls = new Map<string, OpenCall>();

  /** Takes the next part and gives what to show of it. Parts of unknown types are passed over. */
  take(part: StreamPart): ModelEvent | undefined {
    switch (part.type) {
      case "response-metadata":
        this.responseId = part.id ?? this.responseId;
        return undefined;
      case "text-start":
        this.#beginText(part.id, part.providerMetadata);
        return undefined;
      case "text-delta": {
        const block = this.#texts.get(part.id) ?? this.#beginText(part.id);
        block.text += part.delta;
        note(block, part.providerMetadata);
        return part.delta === "" ? undefined : { type: "text_delta", delta: part.delta };
      }
      case "text-end": {
        const block = this.#texts.get(part.id);
        if (block) note(block, part.providerMetadata);
        return undefined;
      }
      case "reasoning-start":
        this.#beginThought(part.id, part.providerMetadata);
        return undefined;
      case "reasoning-delta": {
        const block = this.#thoughts.get(part.id) ?? this.#beginThought(part.id);
        block.thinking += part.delta;
        note(block, part.providerMetadata);
        return part.delta === "" ? undefined : { type: "thinking_delta", delta: part.delta };
      }
      case "reasoning-end": {
        const block = this.#thoughts.get(part.id);
        if (block) note(block, part.providerMetadata);
        return undefined;
      }
      case "tool-input-start":
        note(this.#beginCall(part.id, part.toolName, part.providerExecuted).block, part.providerMetadata);
        return undefined;
      case "tool-input-delta": {
        const call = this.#calls.get(part.id);
        if (!call) return undefined;
        call.input += part.delta;
        note(call.block, part.providerMetadata);
        return show(call.block, part.delta);
      }
      case "tool-call": {
        const call =
          this.#calls.get(part.toolCallId) ?? this.#beginCall(part.toolCallId, part.toolName, part.providerExecuted);
        const unseen = call.input === "" ? part.input : "";
        call.whole = true;
        Object.assign(call.block, { name: part.toolName }, parseInput(part.input));
        note(call.block, part.providerMetadata);
        return show(call.block, unseen);
      }
      default:
        this.#keep(part);
        return undefined;
    }
  }

  /**
   * The whole blocks, as they will be stored: plain JSON, so that a turn in memory and one read back are the same.
   *
   * @param cutShort whether the model ran into its limit: a call it was just beginning is then no call to run
   */
  content(cutShort: boolean): AssistantBlock[] {
    const last = this.#blocks.at(-1);
    for (const call of this.#calls.values()) {
      // Providers complete an input of which nothing came to {}.
      const justBegun = cutShort && call.block === last && call.input === "";
      if (!call.whole || justBegun) call.block.invalid_arguments = call.input;
    }
    const content = JSON.parse(JSON.stringify(this.#blocks.filter(saysSomething)));
    return copyJson(content, "content") as unknown as AssistantBlock[];
  }

  /** Whether the turn asks the program to run a tool. */
  get callsTools(): boolean {
    return this.#blocks.some((block) => block.type === "tool_call");
  }

  #beginText(id: string, metadata?: unknown) {
    const block: AssistantBlock & { type: "text" } = { type: "text", text: "" };
    return this.#begin(this.#texts, id, block, metadata);
  }

  #beginThought(id: string, metadata?: unknown) {
    const block: AssistantBlock & { type: "thinking" } = { type: "thinking", thinking: "" };
    return this.#begin(this.#thoughts, id, block, metadata);
  }

  /** Some providers use one id for several blocks in a row: the last one of an id is open. */
  #begin<B extends AiSdkBlock>(open: Map<string, B>, id: string, block: B, metadata: unknown): B {
    note(block, metadata);
    open.set(id, block);
    this.#blocks.push(block);
    return block;
  }

  #beginCall(id: string, name: string, byProvider: boolean | undefined): OpenCall {
    const type = byProvider ? "provider_tool_call" : "tool_call";
    const call: OpenCall = { block: { type, id, name, arguments: {} }, input: "", whole: false };
    this.#calls.set(id, call);
    this.#blocks.push(call.block);
    return call;
  }

  #keep(part: StreamPart): void {
    const block = extraBlock(part);
    if (!block) return;
    if ("providerMetadata" in part) note(block, part.providerMetadata);
    // A provider may send results that are preliminary; each replaces the one before.
    const before =
      block.type === "provider_tool_result"
        ? this.#blocks.findIndex((other) => other.type === block.type && other.id === block.id)
        : -1;
    if (before >= 0) this.#blocks[before] = block;
    else this.#blocks.push(block);
  }
}

function extraBlock(part: StreamPart): AiSdkBlock | undefined {
  switch (part.type) {
    case "tool-result":
      return {
        type: "provider_tool_result",
        id: part.toolCallId,
        name: part.toolName,
        result: part.result as JsonValue,
        is_error: part.isError ?? false,
      };
    case "file": {
      const type = part.mediaType.startsWith("image/") ? "image" : "file";
      return { type, source: sourceOf(part.data), media_type: part.mediaType };
    }
    case "reasoning-file":
      return { type: "thinking_file", source: sourceOf(part.data), media_type: part.mediaType };
    case "custom":
      // A notice of the Anthropic provider at the head of each answer: no content, and never read again.
      return part.kind === "anthropic.message_start" ? undefined : { type: "custom", kind: part.kind };
    case "source": {
      const { providerMetadata: _, ...fields } = part;
      return { ...fields };
    }
    case "tool-approval-request":
      return { type: "provider_approval_request", approval_id: part.approvalId, id: part.toolCallId };
    default:
      return undefined;
  }
}

function sourceOf(data: Extract<StreamPart, { type: "file" }>["data"]): string {
  if (typeof data === "string") return data;
  if (data instanceof Uint8Array) return Buffer.from(data).toString("base64");
  return data.type === "url" ? data.url.toString() : sourceOf(data.data);
}

/** Adds what a provider says of a block: per provider, and the later word on a field counts. */
function note(block: AiSdkBlock, metadata: unknown): void {
  if (!isJsonObject(metadata)) return;
  const kept: JsonObject = { ...block.provider_options };
  for (const [provider, data] of Object.entries(metadata)) {
    const before = kept[provider];
    kept[provider] = isJsonObject(before) && isJsonObject(data) ? { ...before, ...data } : data;
  }
  block.provider_options = kept;
}

function show(block: CallBlock, delta: string): ModelEvent | undefined {
  if (delta === "" || block.type !== "tool_call") return undefined;
  return { type: "tool_call_delta", id: block.id, name: block.name, delta };
}

function parseInput(input: string): Pick<CallBlock, "arguments" | "invalid_arguments"> {
  if (input.trim() === "") return { arguments: {} };
  try {
    const value: unknown = JSON.parse(input);
    // As deep as in its message, which may not be stored when it is nested too deeply.
    copyJson([[[value]]], "input");
    return { arguments: copyJsonObject(value, "input") };
  } catch {
    return { arguments: {}, invalid_arguments: input };
  }
}

function saysSomething(block: AiSdkBlock): boolean {
  if (block.provider_options) return true;
  return block.type === "text" ? block.text !== "" : block.type !== "thinking" || block.thinking !== "";
}
