/** What an AI SDK model's stream becomes, and what is asked of it; errors and replays have test files of their own. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { InvalidArgumentError } from "../../src/errors.ts";
import { admitMessage } from "../../src/messages/admit.ts";
import { image, text, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { AssistantMessage } from "../../src/messages/schema.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import {
  anthropicStream,
  chatStream,
  cutAfter,
  type ProviderServer,
  startProviderServer,
} from "../support/provider-server.ts";
import { viaJsonFile } from "../support/reload.ts";
import { finish, modelV3, modelV4 } from "../support/sdk-models.ts";
import { ask, failure, streamedText } from "../support/turns.ts";

const hi = [userMessage("hi")];
const read = { name: "read", description: "Reads", inputSchema: { type: "object" } };

describe("over HTTP", () => {
  let server: ProviderServer;
  beforeEach(async () => {
    server = await startProviderServer();
  });
  afterEach(() => server.close());
  const anthropic = () => aiSdkModel(createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "k" })("claude-test"));

  test("Anthropic: events, usage with the cache apart, stop reason, response id", async () => {
    server.enqueue(
      anthropicStream(
        [
          { type: "thinking", thinking: "Let me see", signature: "sig" },
          { type: "text", text: "Hello there" },
          { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a" } },
        ],
        {
          id: "msg_7",
          usage: { input_tokens: 5, output_tokens: 9, cache_read_input_tokens: 70, cache_creation_input_tokens: 30 },
        },
      ),
    );
    const model = anthropic();
    const { events, finish, message } = await ask(model, hi, { tools: [read] });
    expect([model.providerId, model.modelId]).toEqual(["anthropic", "claude-test"]);
    expect(events.slice(0, -1)).toEqual([
      { type: "thinking_delta", delta: "Let m" },
      { type: "thinking_delta", delta: "e see" },
      { type: "text_delta", delta: "Hello " },
      { type: "text_delta", delta: "there" },
      { type: "tool_call_delta", id: "toolu_1", name: "read", delta: '{"path' },
      { type: "tool_call_delta", id: "toolu_1", name: "read", delta: '":"a"}' },
    ]);
    expect(finish).toEqual({
      type: "finish",
      content: [
        { type: "thinking", thinking: "Let me see", provider_options: { anthropic: { signature: "sig" } } },
        { type: "text", text: "Hello there" },
        { type: "tool_call", id: "toolu_1", name: "read", arguments: { path: "a" } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 5, output_tokens: 9, cache_read_tokens: 70, cache_write_tokens: 30 },
      response_id: "msg_7",
    });
    expect(admitMessage(message)).toEqual(message);
  });

  test("OpenAI-compatible: cached tokens are not counted twice", async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 60 } };
    server.enqueue(chatStream({ text: "Hello there", usage, finishReason: "length" }));
    const model = aiSdkModel(createOpenAICompatible({ name: "my-ai", baseURL: server.url })("m"));
    const { events, finish } = await ask(model, hi);
    expect(model.providerId).toBe("my-ai");
    expect(streamedText(events)).toBe("Hello there");
    expect(finish.stop_reason).toBe("length");
    expect(finish.usage).toEqual({
      input_tokens: 40,
      output_tokens: 8,
      cache_read_tokens: 60,
      cache_write_tokens: 0,
    });
    expect(finish.response_id).toBe("chatcmpl-1");
  });

  test("an answer that ran into its limit does not run the call it was just beginning", async () => {
    const start = { type: "tool_use", id: "t", name: "read", input: "" } as const;
    server.enqueue(anthropicStream([start], { stopReason: "max_tokens" }), anthropicStream([start]));
    const cut = await ask(anthropic(), hi, { tools: [read] });
    expect(cut.finish.stop_reason).toBe("length");
    expect(cut.message.content).toEqual([
      { type: "tool_call", id: "t", name: "read", arguments: {}, invalid_arguments: "" },
    ]);
    const whole = await ask(anthropic(), hi, { tools: [read] });
    expect(whole.message.content).toEqual([{ type: "tool_call", id: "t", name: "read", arguments: {} }]);
  });

  test("settings, tools and headers go with the request", async () => {
    server.enqueue(anthropicStream([{ type: "text", text: "ok" }]), anthropicStream([{ type: "text", text: "ok" }]));
    const provider = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "k" });
    const model = aiSdkModel(provider("claude-sonnet-4-5"), {
      maxOutputTokens: 77,
      temperature: 0.5,
      stopSequences: ["END"],
      toolChoice: { toolName: "read" },
      headers: { "x-team": "blue" },
      providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } },
    });
    await ask(model, hi, { tools: [read], system: "Be brief." });
    await ask(model, hi);
    const [withTools, without] = server.requests;
    expect(withTools?.headers["x-team"]).toBe("blue");
    expect(withTools?.body).toMatchObject({
      max_tokens: 77,
      temperature: 0.5,
      stop_sequences: ["END"],
      tool_choice: { type: "tool", name: "read" },
      tools: [{ name: "read", description: "Reads", input_schema: { type: "object" } }],
      system: [{ type: "text", text: "Be brief." }],
      cache_control: { type: "ephemeral" },
    });
    expect(without?.body.tool_choice).toBeUndefined();
    expect(without?.body.tools).toBeUndefined();
  });

  test("what the provider's package leaves out of a request is told", async () => {
    server.enqueue(anthropicStream([{ type: "text", text: "ok" }]));
    const warnings: string[] = [];
    const provider = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "k" });
    const onWarning = (warning: string) => warnings.push(warning);
    await ask(aiSdkModel(provider("claude-sonnet-4-5"), { temperature: 7, onWarning }), hi);
    expect(warnings).toEqual([expect.stringMatching(/^anthropic does not fully support temperature: ./)]);
  });

  test("an abort ends the stream with its reason and drops the connection", async () => {
    const stream = anthropicStream([{ type: "text", text: "Hello there" }]);
    server.enqueue(cutAfter(stream, 4, "hang"));
    const controller = new AbortController();
    const reason = new Error("the user pressed Ctrl-C");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of anthropic().stream({ messages: hi, tools: [], signal: controller.signal })) {
        seen.push(event.type);
        controller.abort(reason);
      }
    })();
    expect(await failure(reading)).toBe(reason);
    expect(seen).toEqual(["text_delta"]);
    await server.disconnected();
  });

  test("an abort before the first byte, and one before the request", async () => {
    server.enqueue({ chunks: [], end: "hang" });
    const controller = new AbortController();
    server.nextRequest().then(() => controller.abort("stop"));
    expect(await failure(ask(anthropic(), hi, { signal: controller.signal }))).toBe("stop");
    expect(await failure(ask(anthropic(), hi, { signal: AbortSignal.abort("early") }))).toBe("early");
    expect(server.requests).toHaveLength(1);
  });

  test("a model that does not listen to the signal is left, and its late stream closed", async () => {
    const controller = new AbortController();
    const opened = Promise.withResolvers<{ stream: ReadableStream }>();
    const { model } = modelV4([]);
    const deaf = { ...model, doStream: () => opened.promise };
    const answer = ask(aiSdkModel(deaf), hi, { signal: controller.signal });
    controller.abort("stop");
    expect(await failure(answer)).toBe("stop");
    const cancelled = Promise.withResolvers<void>();
    opened.resolve({ stream: new ReadableStream({ cancel: () => cancelled.resolve() }) });
    await cancelled.promise;
  });

  test("a reader that stops early drops the connection", async () => {
    server.enqueue(cutAfter(anthropicStream([{ type: "text", text: "Hello there" }]), 4, "hang"));
    for await (const _ of anthropic().stream({ messages: hi, tools: [] })) break;
    await server.disconnected();
  });
});

describe("streams of other shapes", () => {
  test("blocks come in the order in which they began, also when a provider uses an id again", async () => {
    const { model } = modelV4([
      { type: "text-start", id: "0" },
      { type: "tool-input-start", id: "c1", toolName: "read" },
      { type: "text-delta", id: "0", delta: "a" },
      { type: "text-end", id: "0" },
      { type: "reasoning-start", id: "0", providerMetadata: { test: { a: 1, b: 1 } } },
      { type: "reasoning-delta", id: "0", delta: "r" },
      { type: "reasoning-end", id: "0", providerMetadata: { test: { b: 2 }, other: { c: 3 } } },
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "b" },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "unannounced", delta: "c" },
      { type: "tool-call", toolCallId: "c1", toolName: "read", input: "{}", providerMetadata: { test: { id: "i" } } },
      finish("stop"),
    ]);
    const { finish: end } = await ask(aiSdkModel(model), hi);
    expect(end.stop_reason).toBe("tool_use");
    expect(end.content).toEqual([
      { type: "text", text: "a" },
      { type: "tool_call", id: "c1", name: "read", arguments: {}, provider_options: { test: { id: "i" } } },
      { type: "thinking", thinking: "r", provider_options: { test: { a: 1, b: 2 }, other: { c: 3 } } },
      { type: "text", text: "b" },
      { type: "text", text: "c" },
    ]);
  });

  test.each([
    ["[1]", {}, "[1]"],
    ['"text"', {}, '"text"'],
    ["{", {}, "{"],
    ['{"n":1e999}', {}, '{"n":1e999}'],
    [`{"deep":${"[".repeat(600)}${"]".repeat(600)}}`, {}, expect.stringContaining('{"deep"')],
    ['{"__proto__":{"x":1}}', JSON.parse('{"__proto__":{"x":1}}'), undefined],
    [" ", {}, undefined],
  ])("the tool input %.40s", async (input, args, invalid) => {
    const { model } = modelV4([{ type: "tool-call", toolCallId: "c", toolName: "read", input }, finish("tool-calls")]);
    const { message } = await ask(aiSdkModel(model), hi);
    expect(message.content).toEqual([
      { type: "tool_call", id: "c", name: "read", arguments: args, ...(invalid && { invalid_arguments: invalid }) },
    ]);
    expect(await viaJsonFile([message])).toEqual([message]);
  });

  test("a call whose input broke off is no call to run", async () => {
    const { model } = modelV4([
      { type: "tool-input-start", id: "c", toolName: "read" },
      { type: "tool-input-delta", id: "c", delta: "{}" },
      finish("length"),
    ]);
    const { message } = await ask(aiSdkModel(model), hi);
    expect(message.content).toEqual([
      { type: "tool_call", id: "c", name: "read", arguments: {}, invalid_arguments: "{}" },
    ]);
  });

  test("text is well-formed and metadata plain JSON, as a store would make them", async () => {
    const { model } = modelV4([
      { type: "text-start", id: "0", providerMetadata: { test: { gone: undefined, zero: -0, cut: "\ud83d" } } },
      { type: "text-delta", id: "0", delta: "half \ud83d" },
      { type: "text-delta", id: "0", delta: "\ude00 and \ud83d" },
      finish("stop"),
    ]);
    const { message } = await ask(aiSdkModel(model), hi);
    expect(message.content).toEqual([
      {
        type: "text",
        text: "half \u{1F600} and \ufffd",
        provider_options: { test: { zero: 0, cut: "\ufffd" } },
      },
    ]);
    expect(await viaJsonFile([message])).toEqual([message]);
  });

  test("what providers do themselves is kept, and given back to the same provider only", async () => {
    const bytes = new Uint8Array([1, 2, 255]);
    const { model } = modelV4([
      { type: "ping" },
      { type: "custom", kind: "test.note", providerMetadata: { test: { n: 1 } } },
      { type: "tool-input-start", id: "s", toolName: "web_search", providerExecuted: true },
      { type: "tool-input-delta", id: "s", delta: '{"q":1}' },
      { type: "tool-call", toolCallId: "s", toolName: "web_search", input: '{"q":1}', providerExecuted: true },
      { type: "tool-result", toolCallId: "s", toolName: "web_search", result: ["draft"], preliminary: true },
      { type: "tool-result", toolCallId: "s", toolName: "web_search", result: [{ url: "u" }] },
      { type: "tool-call", toolCallId: "half", toolName: "web_search", input: "{}", providerExecuted: true },
      { type: "source", sourceType: "url", id: "1", url: "https://example.com" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: bytes } },
      { type: "file", mediaType: "text/plain", data: { type: "url", url: new URL("https://example.com/f") } },
      { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "AA==" } },
      { type: "tool-approval-request", approvalId: "a", toolCallId: "half" },
      { type: "from-the-future" } as never,
      finish("stop"),
    ]);
    const { events, message } = await ask(aiSdkModel(model), hi);
    expect(events.map((event) => event.type)).toEqual(["finish"]);
    expect(message.stop_reason).toBe("stop");
    expect(message.content).toEqual([
      { type: "custom", kind: "test.note", provider_options: { test: { n: 1 } } },
      { type: "provider_tool_call", id: "s", name: "web_search", arguments: { q: 1 } },
      { type: "provider_tool_result", id: "s", name: "web_search", result: [{ url: "u" }], is_error: false },
      { type: "provider_tool_call", id: "half", name: "web_search", arguments: {} },
      { type: "source", sourceType: "url", id: "1", url: "https://example.com" },
      { type: "image", source: "AQL/", media_type: "image/png" },
      { type: "file", source: "https://example.com/f", media_type: "text/plain" },
      { type: "thinking_file", source: "AA==", media_type: "image/png" },
      { type: "provider_approval_request", approval_id: "a", id: "half" },
    ]);

    const [reloaded] = await viaJsonFile([message]);
    const own = modelV4([finish("stop")]);
    await ask(aiSdkModel(own.model), [...hi, reloaded as AssistantMessage]);
    expect(own.calls[0]?.prompt[1]?.content).toEqual([
      { type: "custom", kind: "test.note", providerOptions: { test: { n: 1 } } },
      { type: "tool-call", toolCallId: "s", toolName: "web_search", input: { q: 1 }, providerExecuted: true },
      {
        type: "tool-result",
        toolCallId: "s",
        toolName: "web_search",
        output: { type: "json", value: [{ url: "u" }] },
      },
      { type: "file", data: { type: "data", data: "AQL/" }, mediaType: "image/png" },
      { type: "file", data: { type: "url", url: new URL("https://example.com/f") }, mediaType: "text/plain" },
      { type: "reasoning-file", data: { type: "data", data: "AA==" }, mediaType: "image/png" },
    ]);
    const other = modelV4([finish("stop")], { provider: "other.chat" });
    await ask(aiSdkModel(other.model), [...hi, reloaded as AssistantMessage]);
    expect(other.calls[0]?.prompt).toHaveLength(1);
  });

  test("M12 null, missing and empty provider data stay three different things", async () => {
    const data = [{ summary: null }, {}, { summary: [] }, { summary: "" }];
    const parts = data.flatMap((test, i) => [
      { type: "reasoning-start" as const, id: `${i}`, providerMetadata: { test } },
      { type: "reasoning-end" as const, id: `${i}` },
    ]);
    const first = await ask(aiSdkModel(modelV4([...parts, finish("stop")]).model), hi);
    const { model, calls } = modelV4([finish("stop")]);
    const messages = [...hi, first.message, userMessage("more")];
    for (const sent of [messages, await viaJsonFile(messages)]) await ask(aiSdkModel(model), sent);
    for (const { prompt } of calls) {
      expect(prompt[1]?.content).toEqual(
        data.map((test) => ({ type: "reasoning", text: "", providerOptions: { test } })),
      );
    }
    expect(JSON.stringify(calls[1])).toBe(JSON.stringify(calls[0]));
  });

  test("a call's provider data goes with its result", async () => {
    const call = { type: "tool-call", toolCallId: "c", toolName: "read", input: "{}" } as const;
    const first = await ask(
      aiSdkModel(modelV4([{ ...call, providerMetadata: { test: { group: "g" } } }, finish("tool-calls")]).model),
      hi,
    );
    const { model, calls } = modelV4([finish("stop")]);
    await ask(aiSdkModel(model), [...hi, first.message, toolResultMessage({ id: "c", name: "read" }, "done")]);
    expect(calls[0]?.prompt[2]?.content).toMatchObject([{ providerOptions: { test: { group: "g" } } }]);
  });

  test("usage that a provider does not give is null", async () => {
    const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
    const usage = { inputTokens: none, outputTokens: { total: undefined, text: undefined, reasoning: undefined } };
    const { finish: end } = await ask(aiSdkModel(modelV4([{ ...finish("other", "pause"), usage }]).model), hi);
    expect(end).toMatchObject({ usage: null, stop_reason: "pause", content: [], response_id: null });
  });
});

describe("specification v3", () => {
  test("streams, and gets files in its own shape", async () => {
    const { model, calls } = modelV3([
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "ok" },
      { type: "file", mediaType: "image/png", data: new Uint8Array([0]) },
      finish("stop", "end"),
    ]);
    const { message } = await ask(aiSdkModel(model), hi);
    expect(message.content).toEqual([
      { type: "text", text: "ok" },
      { type: "image", source: "AA==", media_type: "image/png" },
    ]);
    const custom = { type: "custom", kind: "test.x" } as never;
    await ask(
      aiSdkModel(model),
      [
        userMessage([image("AQ==", "image/png"), image("https://example.com/i.png", "image/png")]),
        { ...message, content: [...message.content, custom] },
        toolResultMessage(
          { id: "c", name: "read" },
          [text("see"), image("AQ==", "image/png"), image("https://example.com/i.png", "image/png")],
          { is_error: true },
        ),
        toolResultMessage({ id: "d", name: "read" }, "plain"),
      ],
      { system: "Be brief." },
    );
    expect(calls[1]?.prompt).toEqual([
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "file", data: "AQ==", mediaType: "image/png" },
          { type: "file", data: new URL("https://example.com/i.png"), mediaType: "image/png" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "ok" },
          { type: "file", data: "AA==", mediaType: "image/png" },
        ],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c",
            toolName: "read",
            output: {
              type: "content",
              value: [
                { type: "text", text: "The tool failed." },
                { type: "text", text: "see" },
                { type: "image-data", data: "AQ==", mediaType: "image/png" },
                { type: "image-url", url: "https://example.com/i.png" },
              ],
            },
          },
          { type: "tool-result", toolCallId: "d", toolName: "read", output: { type: "text", value: "plain" } },
        ],
      },
    ]);
  });
});

describe("construction", () => {
  test.each([
    ["a model name", "claude-sonnet-4-6", 'the string "claude-sonnet-4-6"'],
    ["nothing", undefined, "a value of type undefined"],
    ["a provider", createAnthropic({ apiKey: "k" }), "a value of type function"],
    ["an older model", { ...modelV3([]).model, specificationVersion: "v2" }, "specification v2; v3 and v4 are taken"],
    ["a newer model", { ...modelV3([]).model, specificationVersion: "v5" }, "specification v5"],
  ])("refuses %s", (_, value, words) => {
    const make = () => aiSdkModel(value as never);
    expect(make).toThrow(InvalidArgumentError);
    expect(make).toThrow(words);
  });

  test.each([
    ["anthropic.messages", "anthropic"],
    ["google.vertex.chat", "google.vertex"],
    ["gateway", "gateway"],
  ])("the provider of %s is %s", (provider, providerId) => {
    expect(aiSdkModel(modelV3([], { provider }).model).providerId).toBe(providerId);
  });
});
