/** What an agent reports while it works: events in order, streams left early, and failures that reach everyone. */
import { describe, expect, expectTypeOf, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import type { AgentEvent } from "../../src/agent/events.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { text, thinking, toolCall } from "../../src/messages/construct.ts";
import type { Message, ToolResultMessage } from "../../src/messages/schema.ts";
import { ModelUnavailableError } from "../../src/model/errors.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { collect, endlessModel, failureOf, lines, TestFile, THREAD, tool, types, watched } from "./support.ts";

const turn = [thinking("hm"), text("Let me look."), toolCall("c1", "look", { at: "sky" })];
const look = tool("look", (_args, { update }) => {
  update({ percent: 50 });
  return "blue";
});

describe("events", () => {
  test("all go to the agent's own onEvent as well, before the prompt's", async () => {
    const seen: string[] = [];
    const agent = new Agent({
      model: new ScriptedModel(["One.", "Two."]),
      checkpointer: new MemoryCheckpointer(),
      threadId: THREAD,
      onEvent: ({ type }) => seen.push(`agent ${type}`),
    });
    await agent.prompt("first", { runId: "one", onEvent: ({ type }) => seen.push(`prompt ${type}`) });
    const types = seen.filter((_, i) => i % 2 === 0).map((name) => name.replace("agent ", ""));
    expect(seen).toEqual(types.flatMap((type) => [`agent ${type}`, `prompt ${type}`]));
    expect(types.at(-1)).toBe("run_end");
    seen.length = 0;
    await agent.forkOnce("aside", { afterRunId: "one" });
    expect(seen).toEqual(types.map((type) => `agent ${type}`));
  });

  test("come in order, each with its run's id, and messages only when they are stored", async () => {
    const file = new TestFile();
    const stored: number[] = [];
    const agent = await file.agent([turn, "It is blue."], { tools: [look] });
    const { events, result } = await collect(
      agent.stream("What colour is the sky?", {
        runId: "run-1",
        onEvent: (event) => {
          if (event.type === "message") stored.push(file.messages().length);
        },
      }),
    );
    expect(types(events)).toEqual([
      "run_start",
      "message",
      "thinking_delta",
      "text_delta",
      "text_delta",
      "text_delta",
      "tool_call_delta",
      "message",
      "tool_start",
      "tool_update",
      "tool_end",
      "message",
      "turn_end",
      "text_delta",
      "text_delta",
      "text_delta",
      "message",
      "turn_end",
      "run_end",
    ]);
    expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set(["run-1"]));
    expect(stored).toEqual([1, 2, 3, 4]);
    const messages = events.flatMap((event) => (event.type === "message" ? event.message : []));
    expect(messages).toEqual(file.messages());
    expect(result.messages).toEqual(messages);
    expect(result).toMatchObject({ status: "completed", text: "It is blue.", stopReason: "stop", unused: [] });
    const at = (i: number) => events[i] as AgentEvent & Record<string, unknown>;
    expect(at(0)).toEqual({ type: "run_start", runId: "run-1", threadId: THREAD });
    expect(at(6)).toMatchObject({ id: "c1", name: "look" });
    expect(at(8)).toMatchObject({ toolCallId: "c1", toolName: "look", arguments: { at: "sky" } });
    expect(at(9)).toMatchObject({ toolCallId: "c1", progress: { percent: 50 } });
    expect(at(10)).toMatchObject({ result: { ...(messages[2] as Message), timestamp: expect.any(Number) } });
    expect(at(12)).toMatchObject({ message: { role: "assistant" }, toolResults: [{ tool_call_id: "c1" }] });
    expect(at(18)).toMatchObject({ result: { status: "completed" } });
  });

  test("are one typed union", () => {
    expectTypeOf<Extract<AgentEvent, { type: "tool_end" }>["result"]>().toEqualTypeOf<ToolResultMessage>();
    expectTypeOf<Extract<AgentEvent, { type: "text_delta" }>["delta"]>().toEqualTypeOf<string>();
    expectTypeOf<AgentEvent["runId"]>().toEqualTypeOf<string>();
    const seen = (event: AgentEvent) => (event.type === "pending" ? event.request.question_id : undefined);
    expect(seen({ type: "run_start", runId: "r", threadId: undefined })).toBeUndefined();
  });

  test("of prompt() are those of stream()", async () => {
    const seen: AgentEvent[] = [];
    const agent = new Agent({ model: new ScriptedModel([turn, "blue"]), tools: [look] });
    await agent.prompt("?", { onEvent: (event) => seen.push(event) });
    const streamed = await collect(new Agent({ model: new ScriptedModel([turn, "blue"]), tools: [look] }).stream("?"));
    expect(types(seen)).toEqual(types(streamed.events));
  });

  test("of a suspended run and its answer tell the question, then the answer", async () => {
    const file = new TestFile();
    const agent = await file.agent([turn, "done"], { tools: [look], approve: () => "ask" });
    const asked = await collect(agent.stream("?", { runId: "r" }));
    expect(types(asked.events).slice(-2)).toEqual(["pending", "run_end"]);
    const answered = await collect(agent.streamRespond("c1", { decision: "approve" }));
    expect(types(answered.events).slice(0, 3)).toEqual(["run_start", "answer", "tool_start"]);
    expect(answered.events[1]).toEqual({
      type: "answer",
      runId: "r",
      questionId: "c1",
      answer: { decision: "approve" },
    });
    expect(new Set(answered.events.map(({ runId }) => runId))).toEqual(new Set(["r"]));
  });

  test("tell of each attempt at a model that fails for the moment", async () => {
    const model = new ScriptedModel([new ModelUnavailableError("busy"), "here"]);
    const { events } = await collect(new Agent({ model, retry: { baseDelayMs: 0 } }).stream("?"));
    const retry = events.find((event) => event.type === "model_retry");
    expect(retry).toMatchObject({ attempt: 1, error: { code: "model_unavailable" } });
  });

  test("a message that an event shows can be changed without changing the thread", async () => {
    const agent = new Agent({ model: new ScriptedModel(["one", "two"]) });
    await agent.prompt("first", {
      onEvent: (event) => {
        if (event.type === "message") event.message.content = [];
      },
    });
    expect(lines(agent.messages)).toEqual(["user first", "assistant one"]);
  });
});

describe("a stream", () => {
  test("that is left early aborts its run, and the thread goes on", async () => {
    const file = new TestFile();
    const agent = await file.agent([], { model: endlessModel });
    const stream = agent.stream("count");
    for await (const event of stream) if (event.type === "text_delta") break;
    expect(agent.busy).toBe(false);
    expect(await stream.result).toMatchObject({ status: "aborted" });
    expect(file.messages().at(-1)).toMatchObject({ role: "assistant", stop_reason: "aborted" });
    const next = await file.agent(["back"]);
    expect(await next.prompt("again")).toMatchObject({ status: "completed", text: "back" });
  });

  test("that is left by a throw aborts its run too, and the throw comes through", async () => {
    const agent = new Agent({ model: endlessModel });
    const stream = agent.stream("count");
    const left = (async () => {
      for await (const event of stream) if (event.type === "text_delta") throw new Error("enough");
    })();
    await expect(left).rejects.toThrow("enough");
    expect(await stream.result).toMatchObject({ status: "aborted" });
  });

  test("that nobody reads still works to its end", async () => {
    const agent = new Agent({ model: new ScriptedModel(["fine"]) });
    expect(await agent.stream("?").result).toMatchObject({ status: "completed", text: "fine" });
  });

  // Vitest fails a file on an unhandled rejection, so these also show that there is none.
  test.each([
    ["append", 1],
    ["append", 2],
    ["append", 3],
    ["claimRun", 1],
    ["saveExtra", 1],
    ["markRunComplete", 1],
  ])("gives a throw of the store (%s no. %i) to the loop and to result", async (method, n) => {
    let seen = 0;
    const { checkpointer } = watched(new MemoryCheckpointer(), (called) => {
      if (called === method && ++seen === n) throw new Error("the disk is gone");
    });
    const counting = tool("look", (_args, { extra }) => {
      extra.looked = true;
      return "blue";
    });
    const model = new ScriptedModel([turn, "done", "later"]);
    const agent = new Agent({ model, tools: [counting], checkpointer, threadId: THREAD });
    const stream = agent.stream("?");
    await expect(
      (async () => {
        for await (const _ of stream);
      })(),
    ).rejects.toThrow("the disk is gone");
    await expect(stream.result).rejects.toThrow("the disk is gone");
    expect(agent.busy).toBe(false);
    expect(await agent.prompt("again")).toMatchObject({ status: "completed" });
  });

  test("whose failure is read in the loop only leaves no unhandled rejection", async () => {
    const { checkpointer } = watched(new MemoryCheckpointer(), (method) => {
      if (method === "append") throw new Error("the disk is gone");
    });
    const agent = new Agent({ model: new ScriptedModel(["x"]), checkpointer, threadId: THREAD });
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    try {
      await expect(
        (async () => {
          for await (const _ of agent.stream("?"));
        })(),
      ).rejects.toThrow("the disk is gone");
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off("unhandledRejection", note);
    }
    expect(unhandled).toEqual([]);
  });

  test("of a busy agent fails in the loop and in result", async () => {
    const gate = Promise.withResolvers<string>();
    const agent = new Agent({ model: new ScriptedModel([() => gate.promise]) });
    const first = agent.prompt("one");
    const second = agent.stream("two");
    expect(await failureOf(second.result)).toMatchObject({ code: "agent_busy" });
    await expect(second[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "agent_busy" });
    gate.resolve("done");
    expect(await first).toMatchObject({ status: "completed" });
  });
});
