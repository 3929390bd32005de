/** Models that fail, and agents that are made or asked wrongly. */
import { describe, expect, test } from "vitest";
import { Agent, type AgentOptions } from "../../src/agent/agent.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { text, toolCall, userMessage } from "../../src/messages/construct.ts";
import {
  ContentFilterError,
  ContextOverflowError,
  ModelAuthenticationError,
  ModelBadRequestError,
  ModelRateLimitError,
  ModelUnavailableError,
} from "../../src/model/errors.ts";
import type { Model, ModelEvent } from "../../src/model/model.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { failureOf, lines, notingTool, TestFile, THREAD } from "./support.ts";

const streaming = (stream: () => AsyncIterable<ModelEvent>): Model => ({ providerId: "test", modelId: "m", stream });

describe("a model that fails", () => {
  test.each([
    [new ModelAuthenticationError("bad key"), "model_authentication"],
    [new ModelRateLimitError("too many"), "model_rate_limit"],
    [new ContextOverflowError("too long"), "context_overflow"],
    [new ContentFilterError("not this"), "content_filter"],
    [new ModelBadRequestError("what?"), "model_bad_request"],
    [new ModelUnavailableError("gone"), "model_unavailable"],
    [new Error("a bug"), null],
  ])("ends the run as failed with %s, stored on the message; the next prompt works", async (error, code) => {
    const file = new TestFile();
    const model = new ScriptedModel([error, "better"]);
    const agent = await file.agent([], { model, retry: { maxAttempts: 1 } });
    const result = await agent.prompt("go", { runId: "r" });
    expect(result).toMatchObject({ status: "failed", text: "", stopReason: "error" });
    expect(result.error).toBe(error);
    expect(file.messages()[1]).toMatchObject({
      role: "assistant",
      content: [],
      stop_reason: "error",
      error_message: error.message,
      error_code: code,
      provider_id: "scripted",
      model_id: "script",
      run_id: "r",
    });
    expect(await agent.prompt("again")).toMatchObject({ status: "completed", text: "better" });
    expect(lines(model.requests[1]?.messages ?? [])).toEqual(["user go", "user again"]);
  });

  test("is asked again only as often as the policy says", async () => {
    const model = new ScriptedModel([new ModelUnavailableError("1"), new ModelUnavailableError("2"), "late"]);
    const agent = new Agent({ model, retry: { maxAttempts: 2, baseDelayMs: 0 } });
    expect(await agent.prompt("go")).toMatchObject({ status: "failed", error: { message: "2" } });
    expect(model.requests).toHaveLength(2);
  });

  test("in the middle of its answer keeps what it said", async () => {
    const file = new TestFile();
    const model = streaming(async function* () {
      yield { type: "thinking_delta", delta: "hm" };
      yield { type: "text_delta", delta: "The answer is " };
      throw new ModelUnavailableError("connection lost");
    });
    const agent = await file.agent([], { model });
    expect(await agent.prompt("go")).toMatchObject({ status: "failed", text: "The answer is " });
    expect(file.messages()[1]).toMatchObject({ content: [text("The answer is ")], stop_reason: "error" });
    const next = new ScriptedModel(["done"]);
    await (await file.agent([], { model: next })).prompt("go on");
    expect(lines(next.requests[0]?.messages ?? [])).toEqual(["user go", "assistant The answer is ", "user go on"]);
  });

  test("after some turns keeps those", async () => {
    const file = new TestFile();
    const agent = await file.agent([[toolCall("c", "note")], new ModelBadRequestError("no"), "done"], {
      tools: [notingTool("note")],
    });
    expect(await agent.prompt("go")).toMatchObject({ status: "failed" });
    expect(lines(file.messages())).toEqual(["user go", "assistant note(c)", "tool_result c note did c", "assistant"]);
    expect(await agent.prompt("again")).toMatchObject({ status: "completed", text: "done" });
  });

  test.each<[string, () => AsyncIterable<ModelEvent>, RegExp]>([
    ["ends without a finish", async function* () {}, /ended without an answer/],
    [
      "throws no Error",
      async function* () {
        yield { type: "text_delta", delta: "x" };
        throw "a string";
      },
      /a string/,
    ],
    [
      "gives what can't be stored",
      async function* () {
        const content = [toolCall("c", "note", { id: 1n as never })];
        yield { type: "finish", content, stop_reason: "stop", usage: null, response_id: null };
      },
      /content\[0\]\.arguments\.id: a BigInt is not JSON/,
    ],
    [
      "gives a block that is none",
      async function* () {
        const content = [{ type: "text" }] as never;
        yield { type: "finish", content, stop_reason: "stop", usage: null, response_id: null };
      },
      /content\[0\]\.text is missing|content\[0\]\.text: is missing/,
    ],
    [
      "throws before it gives a stream",
      () => {
        throw new Error("no connection");
      },
      /no connection/,
    ],
  ])("since its stream %s fails the run, and the thread goes on", async (_what, stream, problem) => {
    const file = new TestFile();
    const agent = await file.agent([], { model: streaming(stream) });
    const result = await agent.prompt("go");
    expect(result.status).toBe("failed");
    expect(result.error?.message).toMatch(problem);
    expect(file.messages()[1]).toMatchObject({ role: "assistant", stop_reason: "error" });
    expect(await (await file.agent(["fine"])).prompt("again")).toMatchObject({ status: "completed" });
  });

  test("its usage, reason and ids are kept when it doesn't, and the tokens of a prompt are added up", async () => {
    const file = new TestFile();
    const usage = { input_tokens: 10, output_tokens: 5, cache_read_tokens: 2, cache_write_tokens: 1 };
    const agent = await file.agent(
      [
        { content: [toolCall("c", "note")], usage, response_id: "m1" },
        { content: [text("done")], usage, stop_reason: "length" },
      ],
      { tools: [notingTool("note")] },
    );
    const result = await agent.prompt("go");
    expect(result).toMatchObject({
      status: "completed",
      stopReason: "length",
      usage: { input_tokens: 20, output_tokens: 10, cache_read_tokens: 4, cache_write_tokens: 2 },
    });
    expect(file.messages()[1]).toMatchObject({ usage, response_id: "m1", stop_reason: "tool_use" });
  });
});

describe("an agent made wrongly", () => {
  const model = new ScriptedModel([]);
  const checkpointer = new MemoryCheckpointer();
  test.each<[string, object, RegExp]>([
    ["a checkpointer without a threadId", { model, checkpointer }, /a checkpointer and no threadId/],
    ["a threadId without a checkpointer", { model, threadId: "t" }, /a threadId and no checkpointer/],
    ["an unknown option", { model, sytem: "x" }, /no option sytem\. It has model, system, tools/],
    ["no model", {}, /needs a model/],
    ["a model that is a name", { model: "gpt" }, /needs a model/],
    ["two tools of one name", { model, tools: [notingTool("a"), notingTool("a")] }, /Two tools are called "a"/],
    ["a tool without a name", { model, tools: [{ ...notingTool("a"), name: "" }] }, /needs a name/],
    ["a tool that does nothing", { model, tools: [{ name: "a", parameters: {} }] }, /an execute function/],
    ["a tool without parameters", { model, tools: [{ name: "a", execute: () => "" }] }, /"a" needs parameters/],
  ])("with %s is a TypeError", (_what, options, problem) => {
    expect(() => new Agent(options as AgentOptions)).toThrow(TypeError);
    expect(() => new Agent(options as AgentOptions)).toThrow(problem);
  });

  test.each([[""], ["a\0"], ["\ud800"], ["x".repeat(256)], [null], [5]])(
    "with the thread id %j is refused",
    (threadId) => {
      expect(() => new Agent({ model, checkpointer, threadId: threadId as string })).toThrow(
        expect.objectContaining({ code: "invalid_id" }),
      );
    },
  );
});

describe("a prompt", () => {
  test.each<[string, unknown, object]>([
    ["an empty list", [], { code: "invalid_argument" }],
    ["blank text", " \n", { code: "invalid_argument" }],
    ["a list of no messages", ["a", null], { code: "invalid_message" }],
    ["nothing", undefined, { code: "invalid_message" }],
    ["a number", 5, { code: "invalid_message" }],
    ["an assistant's message", { role: "assistant", content: [] }, { code: "invalid_argument" }],
    [
      "a message of an unknown role",
      { role: "developer", content: [] },
      { code: "invalid_message", path: "message.role" },
    ],
    ["a block without text", [{ type: "text" }], { path: "message.content[0].text" }],
    ["a BigInt", [userMessage([{ ...text("a"), n: 1n } as never])], { path: "message.content[0].n" }],
  ])("of %s is refused before anything is written, and the agent keeps what it knows", async (_what, input, error) => {
    const file = new TestFile();
    const agent = await file.agent(["one", "two"]);
    await agent.prompt("first");
    expect(await failureOf(agent.prompt(input as string))).toMatchObject(error);
    expect(lines(agent.messages)).toEqual(["user first", "assistant one"]);
    expect(file.query("SELECT * FROM runs")).toHaveLength(1);
    expect(await agent.prompt("second")).toMatchObject({ status: "completed", text: "two" });
    expect(lines(file.messages())).toEqual(["user first", "assistant one", "user second", "assistant two"]);
  });

  test("may be text, blocks, a message or several", async () => {
    const agent = new Agent({ model: new ScriptedModel(["1", "2", "3", "4"]) });
    await agent.prompt("a");
    await agent.prompt([text("b"), text("c")]);
    await agent.prompt(userMessage("d", { metadata: { from: "ada" }, timestamp: null }));
    await agent.prompt([userMessage("e"), userMessage("f")]);
    const said = agent.messages.filter(({ role }) => role === "user");
    expect(said.map(({ content }) => content.length)).toEqual([1, 2, 1, 1, 1]);
    expect(said[2]).toMatchObject({ metadata: { from: "ada" }, timestamp: null });
  });

  test("a message changed afterwards changes nothing", async () => {
    const file = new TestFile();
    const message = userMessage("before");
    const model = new ScriptedModel([
      () => {
        message.content = [text("after")];
        return "one";
      },
      "two",
    ]);
    const agent = await file.agent([], { model });
    await agent.prompt(message);
    await agent.prompt("next");
    expect(lines(model.requests[1]?.messages ?? [])[0]).toBe("user before");
    expect(lines(file.messages())[0]).toBe("user before");
  });

  test("to a closed store is a typed error", async () => {
    const file = new TestFile();
    const checkpointer = await file.open();
    const agent = await file.agent(["x"], { checkpointer });
    await checkpointer.close();
    expect(await failureOf(agent.prompt("go"))).toMatchObject({ code: "store_closed" });
    expect(agent.busy).toBe(false);
  });

  test("an agent without a store keeps the conversation, also after a failure", async () => {
    const model = new ScriptedModel(["one", "two", "three"]);
    let broken = false;
    const agent = new Agent({
      model,
      middleware: [
        {
          context: () => {
            if (broken) throw new Error("broken hook");
          },
        },
      ],
    });
    await agent.prompt("first");
    broken = true;
    await expect(agent.prompt("second")).rejects.toThrow("broken hook");
    broken = false;
    await agent.prompt("third");
    expect(lines(model.requests[1]?.messages ?? [])).toEqual([
      "user first",
      "assistant one",
      "user second",
      "user third",
    ]);
  });

  test("L30 X1 ids that look like SQL or paths are plain data", async () => {
    const file = new TestFile();
    for (const threadId of ["x') OR 1=1 --", "../../etc/passwd", "agent:main", "a\u0001b", "DROP TABLE messages;"]) {
      const agent = await file.agent(["ok"], { threadId });
      expect(await agent.prompt("go", { runId: `${threadId} run` })).toMatchObject({ status: "completed" });
      expect(lines(file.messages(threadId))).toEqual(["user go", "assistant ok"]);
    }
    expect(file.messages(THREAD)).toEqual([]);
  });
});
