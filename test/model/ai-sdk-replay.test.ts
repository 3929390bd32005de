/**
 * What a provider is sent on the second turn, by the real provider packages over HTTP: after a reload from disk the very
 * bytes that an uninterrupted program would send.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { image, text, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import type { Model, ToolSpec } from "../../src/model/model.ts";
import {
  type AnthropicBlock,
  anthropicStream,
  chatStream,
  eventStream,
  type ProviderServer,
  startProviderServer,
} from "../support/provider-server.ts";
import { viaJsonFile, viaMsgpack } from "../support/reload.ts";
import { ask } from "../support/turns.ts";

const tools: ToolSpec[] = [
  {
    name: "read",
    description: "Reads a file",
    inputSchema: { type: "object", properties: { path: { type: "string" } } },
  },
];
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
// The letter e and a combining accent, and an emoji of several code points: no step may compose or cut them.
const NFD = "Cafe\u0301 \u{1F469}\u200D\u{1F680}";

let server: ProviderServer;
beforeEach(async () => {
  server = await startProviderServer();
});
afterEach(() => server.close());

/** Sends the same second turn from memory, from a JSON file and from msgpack; gives the body that all three sent. */
async function sentAgain(model: Model, messages: Message[], answer: () => void) {
  const first = server.requests.length;
  for (const sent of [messages, await viaJsonFile(messages), viaMsgpack(messages)]) {
    answer();
    await ask(model, sent, { system: "Be brief.", tools });
  }
  const [memory, json, msgpack] = server.requests.slice(first);
  expect(json?.bytes.equals(memory?.bytes as Buffer)).toBe(true);
  expect(msgpack?.bytes.equals(memory?.bytes as Buffer)).toBe(true);
  return memory?.body;
}

describe("Anthropic", () => {
  const anthropic = () =>
    aiSdkModel(createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "test-key" })("claude-sonnet-4-6"), {
      maxOutputTokens: 4000,
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } } },
    });

  test("M10 thinking, signatures and redacted data come back byte for byte, in their order", async () => {
    const redacted = Buffer.from(Array.from({ length: 3750 }, (_, i) => (i * 89) % 256)).toString("base64");
    expect(redacted).toHaveLength(5000);
    const blocks: AnthropicBlock[] = [
      { type: "thinking", thinking: `${NFD}: first,\n\n`, signature: "EqQBCgIYAhIkM+/abc==" },
      { type: "redacted_thinking", data: redacted },
      { type: "text", text: `I'll look. ${NFD}\n` },
      { type: "thinking", thinking: "", signature: "a+b/c=" },
      { type: "tool_use", id: "toolu_1", name: "read", input: { zeta: 1, a: [null, ""], "10": { "2": NFD } } },
    ];
    server.enqueue(anthropicStream(blocks));
    const model = anthropic();
    const user = userMessage(`Read ${NFD}`);
    const { message, finish } = await ask(model, [user], { system: "Be brief.", tools });
    expect(finish.content.map((block) => block.type)).toEqual([
      "thinking",
      "thinking",
      "text",
      "thinking",
      "tool_call",
    ]);

    const result = toolResultMessage({ id: "toolu_1", name: "read" }, [text("line\n"), image(PIXEL, "image/png")]);
    const messages = [user, message, result];
    const body = await sentAgain(model, messages, () =>
      server.enqueue(anthropicStream([{ type: "text", text: "ok" }])),
    );
    expect(body.messages[1]).toEqual({ role: "assistant", content: blocks });
    expect(JSON.stringify(body.messages[1].content[4].input)).toBe(
      JSON.stringify(blocks[4]?.type === "tool_use" && blocks[4].input),
    );
    expect(body.messages[2].content[0]).toEqual({
      type: "tool_result",
      tool_use_id: "toolu_1",
      content: [
        { type: "text", text: "line\n" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
      ],
    });
  });

  test("the first turn is what a second turn begins with, so that prompt caches hold", async () => {
    server.enqueue(anthropicStream([{ type: "text", text: "one" }]), anthropicStream([{ type: "text", text: "two" }]));
    const model = anthropic();
    const user = userMessage("hi");
    const { message } = await ask(model, [user], { system: "Be brief.", tools });
    await ask(model, [user, message, userMessage("more")], { system: "Be brief.", tools });
    const [one, two] = server.requests.map((request) => request.body);
    expect({ ...two, messages: two.messages.slice(0, 1) }).toEqual(one);
  });

  test("cache marks of the caller go with their blocks", async () => {
    const mark = { anthropic: { cacheControl: { type: "ephemeral" } } };
    const user = userMessage([{ ...text("long document"), provider_options: mark }]);
    const body = await sentAgain(anthropic(), [user], () =>
      server.enqueue(anthropicStream([{ type: "text", text: "ok" }])),
    );
    expect(body.messages[0].content[0].cache_control).toEqual({ type: "ephemeral" });
  });

  test("thinking without a signature, or by another provider, is not sent", async () => {
    const model = anthropic();
    const by = (provider_id: string, model_id: string, ...content: object[]) =>
      ({ role: "assistant", content: [...content, text("said")], provider_id, model_id }) as unknown as Message;
    const signed = { type: "thinking", thinking: "mine", provider_options: { anthropic: { signature: "sig" } } };
    const messages = [
      userMessage("hi"),
      by("anthropic", "claude-sonnet-4-6", { type: "thinking", thinking: "unsigned" }),
      userMessage("and"),
      by("openai", "gpt", { ...signed, provider_options: { openai: { itemId: "rs_1" } } }),
      userMessage("and"),
      by("anthropic", "claude-older", signed),
      userMessage("and"),
    ];
    const body = await sentAgain(model, messages, () =>
      server.enqueue(anthropicStream([{ type: "text", text: "ok" }])),
    );
    const sent = [1, 3, 5].map((i) => body.messages[i].content.map((block: { type: string }) => block.type));
    expect(sent).toEqual([["text"], ["text"], ["thinking", "text"]]);
  });

  test("input that is no JSON object is kept as it came and shown to the model inside one", async () => {
    const raw = '{"path": "a';
    server.enqueue(anthropicStream([{ type: "tool_use", id: "t1", name: "read", input: raw }]));
    const model = anthropic();
    const { message } = await ask(model, [userMessage("go")], { tools });
    expect(message.content).toEqual([
      { type: "tool_call", id: "t1", name: "read", arguments: {}, invalid_arguments: raw },
    ]);
    const messages = [
      userMessage("go"),
      message,
      toolResultMessage({ id: "t1", name: "read" }, "bad", { is_error: true }),
    ];
    const body = await sentAgain(model, messages, () =>
      server.enqueue(anthropicStream([{ type: "text", text: "ok" }])),
    );
    expect(body.messages[1].content[0].input).toEqual({ invalid_arguments: raw });
    expect(body.messages[2].content[0]).toMatchObject({ content: "bad", is_error: true });
  });
});

describe("OpenAI-compatible chat", () => {
  const local = () =>
    aiSdkModel(createOpenAICompatible({ name: "local", baseURL: `${server.url}/v1`, apiKey: "k" })("local-test"));

  test("reasoning, text and calls come back; images go as data and as URLs", async () => {
    server.enqueue(
      chatStream({
        reasoning: `hm ${NFD}\n`,
        text: NFD,
        toolCalls: [
          { id: "call_0", name: "read", arguments: '{"path":"a"}' },
          { id: "call_1", name: "read", arguments: "" },
        ],
      }),
    );
    const model = local();
    const user = userMessage([
      text("see"),
      image(PIXEL, "image/png"),
      image(`data:image/gif;base64,${PIXEL}`, "image/png"),
      image("https://example.com/a b.png", "image/png"),
    ]);
    const { message, finish } = await ask(model, [user], { tools });
    expect(finish.stop_reason).toBe("tool_use");
    const messages = [
      user,
      message,
      toolResultMessage({ id: "call_0", name: "read" }, [text("one"), text("two")]),
      toolResultMessage({ id: "call_1", name: "read" }, [], { is_error: true }),
    ];
    const body = await sentAgain(model, messages, () => server.enqueue(chatStream({ text: "ok" })));
    const [system, sentUser, assistant, ...results] = body.messages;
    expect(system).toEqual({ role: "system", content: "Be brief." });
    expect(sentUser.content.slice(1).map((part: { image_url: { url: string } }) => part.image_url.url)).toEqual([
      `data:image/png;base64,${PIXEL}`,
      `data:image/gif;base64,${PIXEL}`,
      "https://example.com/a%20b.png",
    ]);
    expect(assistant).toEqual({
      role: "assistant",
      content: NFD,
      reasoning_content: `hm ${NFD}\n`,
      tool_calls: [
        { id: "call_0", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
        { id: "call_1", type: "function", function: { name: "read", arguments: "{}" } },
      ],
    });
    expect(results).toEqual([
      { role: "tool", tool_call_id: "call_0", content: "one\ntwo" },
      { role: "tool", tool_call_id: "call_1", content: "" },
    ]);
  });

  test("thinking of another model is not sent; blocks and messages that nothing is left of are not either", async () => {
    const other = (content: object[]) =>
      ({ role: "assistant", content, provider_id: "local", model_id: "other" }) as unknown as Message;
    const messages = [
      userMessage("hi"),
      other([{ type: "thinking", thinking: "secret" }]),
      userMessage([{ type: "video_v9", foo: 1 } as never]),
      other([{ type: "thinking", thinking: "secret" }, { type: "hologram" }, text("yes")]),
      userMessage("and"),
    ];
    const body = await sentAgain(local(), messages, () => server.enqueue(chatStream({ text: "ok" })));
    expect(body.messages.slice(1)).toEqual([
      { role: "user", content: "hi" },
      { role: "assistant", content: "yes" },
      { role: "user", content: "and" },
    ]);
  });
});

describe("OpenAI Responses", () => {
  const openai = () =>
    aiSdkModel(createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "k" }).responses("gpt-5"), {
      providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
    });
  const response = { id: "resp_1", created_at: 1_700_000_000, model: "gpt-5" };
  const usage = { input_tokens: 30, input_tokens_details: { cached_tokens: 20 }, output_tokens: 9 };
  const item = (output_index: number, item: object) => [
    { type: "response.output_item.added", output_index, item: { ...item, encrypted_content: null } },
    { type: "response.output_item.done", output_index, item },
  ];
  const answer = (...items: ReturnType<typeof item>) =>
    eventStream([
      { type: "response.created", response },
      ...items,
      { type: "response.completed", response: { ...response, usage, incomplete_details: null } },
    ]);

  test("encrypted reasoning and item ids come back", async () => {
    server.enqueue(
      answer(
        ...item(0, { type: "reasoning", id: "rs_1", encrypted_content: "gAAA+/=", summary: [] }),
        ...item(1, {
          type: "function_call",
          id: "fc_1",
          call_id: "call_1",
          name: "read",
          arguments: '{"path":"a"}',
          status: "completed",
        }),
      ),
    );
    const model = openai();
    const { message, finish } = await ask(model, [userMessage("go")], { tools });
    expect(model.providerId).toBe("openai");
    expect(message.content.map((block) => block.provider_options?.openai)).toMatchObject([
      { itemId: "rs_1" },
      { itemId: "fc_1" },
    ]);
    expect(finish).toMatchObject({
      response_id: "resp_1",
      stop_reason: "tool_use",
      usage: { input_tokens: 10, output_tokens: 9, cache_read_tokens: 20, cache_write_tokens: 0 },
    });
    const messages = [userMessage("go"), message, toolResultMessage({ id: "call_1", name: "read" }, "text")];
    const body = await sentAgain(model, messages, () => server.enqueue(answer()));
    expect(body.input.slice(2)).toEqual([
      { type: "reasoning", id: "rs_1", encrypted_content: "gAAA+/=", summary: [] },
      // The package names the item only where the provider stores it.
      { type: "function_call", call_id: "call_1", name: "read", arguments: '{"path":"a"}' },
      { type: "function_call_output", call_id: "call_1", output: "text" },
    ]);
  });
});
