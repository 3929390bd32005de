/**
 * M11 What a provider signed is not sent once what stood before it is gone, by the real provider packages over HTTP: neither
 * in a later prompt nor in the middle of a run, and the same bytes by whoever loads the thread.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import type { Model } from "../../src/model/model.ts";
import {
  type AnthropicBlock,
  anthropicError,
  anthropicStream,
  eventStream,
  openaiError,
  type ProviderResponse,
  type ProviderServer,
  startProviderServer,
} from "../support/provider-server.ts";
import { stores, summariser } from "./compacting.ts";
import { THREAD, tool } from "./support.ts";

let server: ProviderServer;
beforeEach(async () => {
  server = await startProviderServer();
});
afterEach(() => server.close());

interface Provider {
  name: string;
  model(): Model;
  /** A turn that thinks, signed by a text that only it has, then says something or calls the tool; and its input tokens. */
  turn(signature: string, said: { text: string } | { call: string }, tokens: number): ProviderResponse;
  refusal: ProviderResponse;
  /** What of a request comes after the summary, each as its kinds of content. */
  kinds(body: never): string[];
}

const usageOf = (tokens: number) => ({ input_tokens: tokens, output_tokens: 5 });

const anthropic: Provider = {
  name: "Anthropic",
  model: () =>
    aiSdkModel(createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "test-key" })("claude-sonnet-4-6"), {
      maxOutputTokens: 4000,
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } } },
    }),
  turn(signature, said, tokens) {
    const blocks: AnthropicBlock[] = [
      { type: "thinking", thinking: `thinking of ${signature}`, signature },
      "text" in said
        ? { type: "text", text: said.text }
        : { type: "tool_use", id: said.call, name: "look", input: { at: said.call } },
    ];
    return anthropicStream(blocks, { usage: usageOf(tokens) });
  },
  refusal: anthropicError(400, "invalid_request_error", "no"),
  kinds: ({ messages }: { messages: { role: string; content: { type: string }[] }[] }) =>
    messages.map(({ role, content }) => `${role}: ${content.map(({ type }) => type).join(" ")}`),
};

const response = { id: "resp_1", created_at: 1_700_000_000, model: "gpt-5" };
const openai: Provider = {
  name: "OpenAI Responses",
  model: () =>
    aiSdkModel(createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "k" }).responses("gpt-5"), {
      providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
    }),
  turn(signature, said, tokens) {
    const items: { type: string; [field: string]: unknown }[] = [
      { type: "reasoning", id: `rs_${signature}`, encrypted_content: signature, summary: [] },
      "text" in said
        ? {
            ...{ type: "message", id: `msg_${signature}`, role: "assistant", status: "completed" },
            content: [{ type: "output_text", text: said.text, annotations: [] }],
          }
        : {
            ...{ type: "function_call", id: `fc_${signature}`, call_id: said.call, name: "look", status: "completed" },
            arguments: `{"at":"${said.call}"}`,
          },
    ];
    const usage = { ...usageOf(tokens), input_tokens_details: { cached_tokens: 2 } };
    return eventStream([
      { type: "response.created", response },
      ...items.flatMap((item, output_index) => {
        const said = item.type === "message" ? (item.content as { text: string }[])[0]?.text : undefined;
        return [
          { type: "response.output_item.added", output_index, item: { ...item, encrypted_content: null } },
          ...(said
            ? [{ type: "response.output_text.delta", item_id: String(item.id), output_index, delta: said }]
            : []),
          { type: "response.output_item.done", output_index, item },
        ];
      }),
      { type: "response.completed", response: { ...response, usage, incomplete_details: null } },
    ]);
  },
  refusal: openaiError(400, "invalid", "no"),
  kinds: ({ input }: { input: { type?: string; role?: string }[] }) =>
    input.map(({ type, role }) => [role, type].filter((word) => word !== undefined).join(" ")),
};

const cases = [anthropic, openai].flatMap((provider) =>
  stores.map(([store, start]) => [`${provider.name}, ${store}`, provider, start] as const),
);

describe.each(cases)("%s", (_name, provider, start) => {
  const agentOn = (checkpointer: Checkpointer, keepTokens: number) =>
    new Agent({
      model: provider.model(),
      tools: [tool("look", (_args, { toolCallId }) => `seen by ${toolCallId}`)],
      compaction: { triggerTokens: 1000, keepTokens, model: summariser() },
      checkpointer,
      threadId: THREAD,
    });
  const bodies = () => server.requests.map(({ bytes }) => bytes.toString());
  const last = () => bodies().at(-1) ?? "";

  /** Asks once more and is refused, then lets another agent that has just loaded the thread ask the same. */
  async function askedByTwo(one: Agent, other: Agent) {
    server.enqueue(provider.refusal, provider.refusal);
    expect((await one.prompt("And now?", { runId: "again" })).status).toBe("failed");
    expect((await other.prompt("And now?", { runId: "again" })).status).toBe("failed");
    const [first, second] = server.requests.slice(-2);
    expect(second?.bytes.equals(first?.bytes as Buffer)).toBe(true);
  }

  test("M11 turns that were kept go without what was signed before the compaction; the log keeps it", async () => {
    const open = start();
    const agent = agentOn(await open(), 120);
    server.enqueue(provider.turn("sigA", { text: "x".repeat(2000) }, 600));
    server.enqueue(provider.turn("sigB", { call: "c1" }, 700), provider.turn("sigC", { text: "two" }, 1000));
    server.enqueue(provider.turn("sigD", { text: "three" }, 300), provider.turn("sigE", { text: "four" }, 310));
    await agent.prompt("first");
    await agent.prompt("second");
    // Until then all of it goes back unchanged.
    expect(last()).toContain("sigA");
    expect(last()).toContain("sigB");
    await agent.prompt("third");
    expect(last()).not.toContain("sig");
    expect(last()).not.toContain("thinking of");
    expect(last()).toContain("summary 1");
    expect(last()).toContain("seen by c1");
    const afterwards = last();

    // What is signed behind the summary goes back as ever.
    await agent.prompt("fourth");
    expect(last()).toContain("sigD");
    expect(last()).not.toMatch(/sig[ABC]/);
    const [kindsThen, kindsNow] = [JSON.parse(afterwards), JSON.parse(last())].map((body) =>
      provider.kinds(body as never),
    );
    expect(kindsNow?.slice(0, kindsThen?.length)).toEqual(kindsThen);

    const checkpointer = await open();
    const stored = (await checkpointer.listMessages(THREAD)).items.map(({ message }) => JSON.stringify(message));
    for (const signature of ["sigA", "sigB", "sigC", "sigD", "sigE"]) {
      expect(stored.some((json) => json.includes(signature))).toBe(true);
    }
    const kept = (await checkpointer.load(THREAD))?.messages.map((message) => JSON.stringify(message)) ?? [];
    expect(stored.slice(-kept.length)).toEqual(kept);
    await askedByTwo(agent, agentOn(checkpointer, 120));
    expect(last()).not.toMatch(/sig[ABC]/);
    expect(last()).toMatch(/sigD.*sigE/s);
  });

  test("M11 in the middle of a run its signed steps are set aside whole: no call goes without its reasoning", async () => {
    const open = start();
    const agent = agentOn(await open(), 120);
    server.enqueue(provider.turn("sigA", { text: "one" }, 100), provider.turn("sigB", { call: "c1" }, 1000));
    server.enqueue(provider.turn("sigC", { call: "c2" }, 300), provider.turn("sigD", { text: "done" }, 400));
    await agent.prompt("x".repeat(2000));
    const result = await agent.prompt("look around");
    expect(result).toMatchObject({ status: "completed", text: "done" });
    const [, , compacted = "", went = ""] = bodies();
    expect(compacted).not.toContain("sig");
    expect(compacted).toContain(`word for word (run ${result.runId}):\\nlook around`);
    expect(compacted).not.toContain("seen by c1");
    expect(provider.kinds(JSON.parse(compacted) as never)).toHaveLength(1);
    // The step that followed goes back with its own reasoning.
    expect(went).toContain("sigC");
    expect(went).toContain("seen by c2");
    expect(went).not.toMatch(/sig[AB]/);
    await askedByTwo(agent, agentOn(await open(), 120));
    expect(last()).not.toMatch(/sig[AB]/);
    expect(last()).toMatch(/sigC.*sigD/s);
  });
});
