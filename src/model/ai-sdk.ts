/** Any AI SDK language model (specifications v3 and v4) as a Model: Anthropic, OpenAI, local ones and others. */
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { InvalidArgumentError } from "../errors.ts";
import type { JsonObject } from "../messages/json.ts";
import type { Usage } from "../messages/schema.ts";
import { type ErrorSubject, toModelError } from "./ai-sdk-errors.ts";
import { type PromptTarget, toPrompt } from "./ai-sdk-prompt.ts";
import { type StreamPart, Turn } from "./ai-sdk-turn.ts";
import { toV3Prompt } from "./ai-sdk-v3.ts";
import { ContentFilterError, ModelUnavailableError } from "./errors.ts";
import type { Model, ModelEvent, ModelRequest, ToolSpec } from "./model.ts";

/** What is needed of an AI SDK language model. Its own types fit, of any version that has them. */
export interface AiSdkLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<{ stream: ReadableStream<{ type: string }> }>;
}

/** Settings that go with every request. What is left out is the provider's to decide. */
export interface AiSdkModelOptions {
  /** The most tokens an answer may have. */
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  /** The model stops where it would write one of these. */
  stopSequences?: string[];
  /** Whether the model may, must not or must call a tool, or which. Left out when no tools are offered. (Default: "auto") */
  toolChoice?: "auto" | "none" | "required" | { toolName: string };
  /** Settings of one provider, such as `{ anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } } }`. */
  providerOptions?: Record<string, JsonObject>;
  /** HTTP headers beside the provider's own. */
  headers?: Record<string, string>;
  /** Told what the provider's package left out or changed of a request, such as a setting the model does not know. */
  onWarning?: (warning: string) => void;
}

/**
 * Adapts a language model of the AI SDK.
 *
 * `providerId` is its provider's name without the API at its end ("anthropic.messages" is "anthropic"). Thinking
 * signatures and other provider data are kept on the blocks under `provider_options` and sent back unchanged.
 *
 * @param languageModel such as `createAnthropic()("claude-sonnet-4-6")`
 * @throws InvalidArgumentError when it is no language model, or one of another specification than v3 and v4
 */
export function aiSdkModel(languageModel: AiSdkLanguageModel, options: AiSdkModelOptions = {}): Model {
  return new AiSdkModel(checkLanguageModel(languageModel), options);
}

class AiSdkModel implements Model {
  readonly providerId: string;
  readonly modelId: string;
  readonly #sdk: LanguageModelV3 | LanguageModelV4;
  readonly #options: AiSdkModelOptions;
  readonly #target: PromptTarget;
  readonly #subject: ErrorSubject;

  constructor(sdk: LanguageModelV3 | LanguageModelV4, options: AiSdkModelOptions) {
    this.providerId = sdk.provider.replace(/(?<=.)\.[^.]*$/, "");
    this.modelId = sdk.modelId;
    this.#sdk = sdk;
    this.#options = options;
    const { providerId, modelId } = this;
    this.#target = { providerId, modelId, optionKeys: optionKeys(providerId) };
    const secrets = Object.values(options.headers ?? {}).filter((value) => value.length >= 8);
    this.#subject = { providerId, modelId, secrets };
  }

  async *stream(request: ModelRequest): AsyncGenerator<ModelEvent> {
    const { signal } = request;
    signal?.throwIfAborted();
    const turn = new Turn();
    let finish: (StreamPart & { type: "finish" }) | undefined;
    let reader: ReadableStreamDefaultReader<StreamPart> | undefined;
    try {
      const opening = this.#open(request);
      // A model that answers although it was told to stop must not be left streaming.
      opening.then(({ stream }) => (signal?.aborted ? stream.cancel() : undefined)).catch(ignore);
      reader = (await untilAborted(opening, signal)).stream.getReader();
      for (;;) {
        const { done, value: part } = await untilAborted(reader.read(), signal);
        if (done) break;
        if (part.type === "error") throw part.error;
        if (part.type === "finish") finish = part;
        if (part.type === "stream-start") this.#warn(part.warnings);
        const event = turn.take(part);
        if (event) yield event;
      }
    } catch (error) {
      signal?.throwIfAborted();
      // A connection that breaks after the last word has taken nothing away.
      if (!finish) throw toModelError(error, this.#subject);
    } finally {
      reader?.cancel().catch(ignore);
    }
    yield this.#finished(turn, finish);
  }

  async #open(request: ModelRequest): Promise<{ stream: ReadableStream<StreamPart> }> {
    const prompt = toPrompt(request.system, request.messages, this.#target);
    const settings = this.#settings(request);
    // Two calls, since each specification's prompt is its own.
    return this.#sdk.specificationVersion === "v3"
      ? this.#sdk.doStream({ ...settings, prompt: toV3Prompt(prompt) })
      : this.#sdk.doStream({ ...settings, prompt });
  }

  #settings(request: ModelRequest): Omit<LanguageModelV3CallOptions & LanguageModelV4CallOptions, "prompt"> {
    const { toolChoice, onWarning: _, ...settings } = this.#options;
    return {
      ...settings,
      ...(request.tools.length > 0 && {
        tools: request.tools.map(functionTool),
        toolChoice:
          typeof toolChoice === "object"
            ? { type: "tool" as const, toolName: toolChoice.toolName }
            : { type: toolChoice ?? ("auto" as const) },
      }),
      ...(request.signal && { abortSignal: request.signal }),
    };
  }

  #warn(warnings: (StreamPart & { type: "stream-start" })["warnings"]): void {
    for (const warning of warnings) {
      if ("message" in warning) this.#options.onWarning?.(warning.message);
      else {
        const details = warning.details ? `: ${warning.details}` : ".";
        this.#options.onWarning?.(`${this.providerId} does not fully support ${warning.feature}${details}`);
      }
    }
  }

  #finished(turn: Turn, finish: (StreamPart & { type: "finish" }) | undefined): ModelEvent {
    const { unified, raw } = finish?.finishReason ?? { unified: "interrupted", raw: undefined };
    const word = raw ? ` (${raw})` : "";
    if (!finish || unified === "interrupted") {
      throw new ModelUnavailableError(`${this.providerId} broke off its answer: the stream ended without a finish.`);
    }
    if (unified === "content-filter") {
      throw new ContentFilterError(`The filter of ${this.providerId} stopped the answer${word}. Reword the request.`);
    }
    if (unified === "error") {
      throw new ModelUnavailableError(`${this.providerId} ended its answer with an error${word}. Ask again later.`);
    }
    const stopReasons = { stop: "stop", "tool-calls": "tool_use", length: "length", other: raw ?? "other" };
    return {
      type: "finish",
      content: turn.content(unified === "length"),
      // Some servers say "stop" after tool calls.
      stop_reason: unified === "stop" && turn.callsTools ? "tool_use" : stopReasons[unified],
      usage: usageOf(finish.usage),
      response_id: turn.responseId,
    };
  }
}

function checkLanguageModel(value: AiSdkLanguageModel): LanguageModelV3 | LanguageModelV4 {
  // Callers without types hand in model names, providers or models of older packages.
  const model = Object(value) as Partial<AiSdkLanguageModel>;
  const { specificationVersion: version } = model;
  if (typeof model.doStream !== "function" || typeof model.provider !== "string" || typeof model.modelId !== "string") {
    const what = typeof value === "string" ? `the string "${value}"` : `a value of type ${typeof value}`;
    throw new InvalidArgumentError(
      `aiSdkModel takes a language model of the AI SDK, such as createAnthropic()("claude-sonnet-4-6"), not ${what}.`,
    );
  }
  if (version !== "v3" && version !== "v4") {
    throw new InvalidArgumentError(
      `The language model ${model.modelId} has specification ${version}; v3 and v4 are taken. Install a newer version of its provider's package.`,
    );
  }
  return value as unknown as LanguageModelV3 | LanguageModelV4;
}

/** "google.vertex" keeps its data under "google" or "vertex", "amazon-bedrock" under "bedrock", "my-ai" under "myAi". */
function optionKeys(providerId: string): string[] {
  const camelCase = providerId.replace(/[-_.](\w)/g, (_, letter: string) => letter.toUpperCase());
  return [providerId, camelCase, ...providerId.split(/[-_.]/)];
}

function functionTool({ name, description, inputSchema }: ToolSpec) {
  return { type: "function" as const, name, description, inputSchema };
}

/** Providers count input with or without what the cache held; here it is always without. */
function usageOf({ inputTokens: input, outputTokens: output }: LanguageModelV4Usage): Usage | null {
  if (input.total === undefined && input.noCache === undefined && output.total === undefined) return null;
  const cached = { read: input.cacheRead ?? 0, write: input.cacheWrite ?? 0 };
  return {
    input_tokens: input.noCache ?? Math.max(0, (input.total ?? 0) - cached.read - cached.write),
    output_tokens: output.total ?? 0,
    cache_read_tokens: cached.read,
    cache_write_tokens: cached.write,
  };
}

/** The promise, or the signal's reason as soon as it fires; not every model listens to its signal. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
  });
}

function ignore(): void {}
