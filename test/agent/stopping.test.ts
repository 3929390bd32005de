/** Stopping a run by its signal, and steering it while it works. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { toolCall, userMessage } from "../../src/messages/construct.ts";
import { modelView } from "../../src/messages/view.ts";
import { ModelRateLimitError } from "../../src/model/errors.ts";
import type { Model } from "../../src/model/model.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { endlessModel, failureOf, lines, notingTool, TestFile, THREAD, tool } from "./support.ts";

const CALL = [toolCall("c", "work")];

/** After a stop the thread loads, and another agent goes on with it. */
async function goesOn(file: TestFile): Promise<void> {
  const next = await file.agent(["on we go"], { tools: [notingTool("work")] });
  expect(await next.prompt("and now?")).toMatchObject({ status: "completed", text: "on we go" });
  expect(modelView(file.messages()).findings.filter(({ kind }) => kind !== "empty_message")).toEqual([]);
}

describe("a signal that fires", () => {
  test("before the run starts: the user's message is kept, the model is not asked", async () => {
    const file = new TestFile();
    const model = new ScriptedModel([]);
    const agent = await file.agent([], { model });
    const result = await agent.prompt("go", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ status: "aborted", text: "", stopReason: null });
    expect(lines(file.messages())).toEqual(["user go"]);
    expect(model.requests).toEqual([]);
    await goesOn(file);
  });

  test("while the model streams: what it said so far is kept, begun calls are not", async () => {
    const file = new TestFile();
    const controller = new AbortController();
    const listening: Model = {
      providerId: "test",
      modelId: "listening",
      async *stream({ signal }) {
        yield { type: "thinking_delta", delta: "hm" };
        yield { type: "text_delta", delta: "As I was " };
        yield { type: "tool_call_delta", id: "c", name: "work", delta: "{" };
        controller.abort();
        signal?.throwIfAborted();
      },
    };
    const agent = await file.agent([], { model: listening });
    const result = await agent.prompt("go", { runId: "r", signal: controller.signal });
    expect(result).toMatchObject({ status: "aborted", text: "As I was ", stopReason: "aborted" });
    expect(result.error).toBeUndefined();
    expect(file.messages()[1]).toMatchObject({
      role: "assistant",
      content: [{ type: "text", text: "As I was " }],
      stop_reason: "aborted",
      error_message: null,
      run_id: "r",
    });
    expect(await agent.state()).toBe("partial");
    await goesOn(file);
  });

  test("while a model streams that doesn't listen", async () => {
    const file = new TestFile();
    const controller = new AbortController();
    const agent = await file.agent([], { model: endlessModel });
    const result = await agent.prompt("go", {
      signal: controller.signal,
      onEvent: ({ type }) => {
        if (type === "text_delta") controller.abort();
      },
    });
    expect(result).toMatchObject({ status: "aborted", text: "word " });
    await goesOn(file);
  });

  test("while tools work: those that listen end with what they say, later calls are not made", async () => {
    const file = new TestFile();
    const controller = new AbortController();
    const work = tool("work", (_args, { signal }) => {
      controller.abort();
      return new Promise((resolve) => {
        if (signal.aborted) resolve("stopped half-way");
        else signal.addEventListener("abort", () => resolve("stopped half-way"));
      });
    });
    const calls = [toolCall("c", "work"), toolCall("d", "work")];
    const agent = await file.agent([calls, "never"], { tools: [work] });
    expect(await agent.prompt("go", { signal: controller.signal })).toMatchObject({ status: "aborted" });
    expect(lines(file.messages()).slice(2).toSorted()).toEqual([
      "tool_result c stopped half-way",
      "tool_result d error This call was not run: the run was stopped first.",
    ]);
    await goesOn(file);
  });

  test.each(["at once", "later"])(
    "%s in a tool that never ends: its outcome is unknown, and the run ends",
    async (when) => {
      const file = new TestFile();
      const controller = new AbortController();
      const work = tool("work", async () => {
        if (when === "later") await Promise.resolve();
        controller.abort();
        return await new Promise<string>(() => {});
      });
      const agent = await file.agent([CALL, "never"], { tools: [work] });
      expect(await agent.prompt("go", { signal: controller.signal })).toMatchObject({ status: "aborted" });
      expect(lines(file.messages())[2]).toMatch(/^tool_result c error .*its outcome is unknown/);
      await goesOn(file);
    },
  );

  test("while it waits to ask the model again", async () => {
    const file = new TestFile();
    const controller = new AbortController();
    const model = new ScriptedModel([new ModelRateLimitError("slow down"), "never"]);
    const agent = await file.agent([], { model, retry: { baseDelayMs: 60_000, maxDelayMs: 60_000 } });
    const result = await agent.prompt("go", {
      signal: controller.signal,
      onEvent: ({ type }) => {
        if (type === "model_retry") queueMicrotask(() => controller.abort());
      },
    });
    expect(result).toMatchObject({ status: "aborted" });
    expect(model.requests).toHaveLength(1);
    await goesOn(file);
  });

  test("while calls are decided about: none is run, none is asked about", async () => {
    const file = new TestFile();
    const controller = new AbortController();
    const work = notingTool("work");
    const agent = await file.agent([CALL, "never"], {
      tools: [work],
      approve: () => {
        controller.abort();
        return "ask";
      },
    });
    expect(await agent.prompt("go", { signal: controller.signal })).toMatchObject({ status: "aborted" });
    expect(work.ran).toEqual([]);
    expect(await agent.pending()).toBeUndefined();
    await goesOn(file);
  });

  test("when all is said leaves the answer whole", async () => {
    const controller = new AbortController();
    const agent = new Agent({
      model: new ScriptedModel(["done"]),
      middleware: [{ afterModelResponse: () => controller.abort() }],
    });
    expect(await agent.prompt("go", { signal: controller.signal })).toMatchObject({
      status: "completed",
      text: "done",
    });
  });

  test("in an answered run stops it as well", async () => {
    const file = new TestFile();
    const work = notingTool("work");
    const agent = await file.agent([CALL, "never"], { tools: [work], approve: () => "ask" });
    await agent.prompt("go");
    const result = await agent.respond("c", { decision: "approve" }, { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ status: "aborted" });
    expect(work.ran).toEqual([]);
    expect(await agent.pending()).toBeUndefined();
    await goesOn(file);
  });
});

describe("steering", () => {
  test("is taken up before the next model call, stored, and stamped with the run", async () => {
    const file = new TestFile();
    const model = new ScriptedModel([CALL, "done"]);
    const work = tool("work", () => {
      agent.steer("Hurry.");
      agent.steer([userMessage("Please."), userMessage("Now.")]);
      return "ok";
    });
    const agent: Agent = await file.agent([], { model, tools: [work] });
    const result = await agent.prompt("go", { runId: "r" });
    const expected = ["user go", "assistant work(c)", "tool_result c ok", "user Hurry.", "user Please.", "user Now."];
    expect(lines(model.requests[1]?.messages ?? [])).toEqual(expected);
    expect(lines(file.messages())).toEqual([...expected, "assistant done"]);
    expect(new Set(file.messages().map(({ run_id }) => run_id))).toEqual(new Set(["r"]));
    expect(result).toMatchObject({ status: "completed", unused: [] });
  });

  test("during the last answer lets the run go on", async () => {
    const file = new TestFile();
    const agent: Agent = await file.agent([
      () => {
        agent.steer("One more thing.");
        return "done";
      },
      "that too",
    ]);
    expect(await agent.prompt("go")).toMatchObject({ status: "completed", text: "that too" });
    expect(lines(file.messages())).toEqual(["user go", "assistant done", "user One more thing.", "assistant that too"]);
  });

  test("right after prompt() is taken up by its first call", async () => {
    const model = new ScriptedModel(["done"]);
    const agent = new Agent({ model });
    const prompted = agent.prompt("go");
    agent.steer("and this");
    await prompted;
    expect(lines(model.requests[0]?.messages ?? [])).toEqual(["user go", "user and this"]);
  });

  test("that the run ended without is given back, also in the last event", async () => {
    const file = new TestFile();
    const agent: Agent = await file.agent(
      [
        () => {
          agent.steer("too late");
          return "done";
        },
        "next",
      ],
      { middleware: [{ stopAfterTurn: () => true }] },
    );
    const ends: unknown[] = [];
    const result = await agent.prompt("go", {
      onEvent: (event) => {
        if (event.type !== "run_end") return;
        ends.push(lines(event.result.unused));
        expect(() => agent.steer("after the end")).toThrow("steer() adds a message to a run under way");
      },
    });
    expect(lines(result.unused)).toEqual(["user too late"]);
    expect(ends).toEqual([["user too late"]]);
    expect(lines(file.messages())).toEqual(["user go", "assistant done"]);
    expect((await agent.prompt("again")).unused).toEqual([]);
    expect(lines(file.messages()).slice(2)).toEqual(["user again", "assistant next"]);
  });

  test("a suspended, a failed, and a replayed run give it back too", async () => {
    const file = new TestFile();
    const agent: Agent = await file.agent(
      [
        () => {
          agent.steer("first");
          return CALL;
        },
        "done",
        () => {
          agent.steer("second");
          return new Error("broken");
        },
      ],
      { tools: [notingTool("work")], approve: () => "ask" },
    );
    expect(lines((await agent.prompt("go", { runId: "r" })).unused)).toEqual(["user first"]);
    await agent.respond("c", { decision: "approve" });
    const failed = await agent.prompt("go");
    expect(failed.status).toBe("failed");
    expect(lines(failed.unused)).toEqual(["user second"]);
    const replayed = agent.prompt("go", { runId: "r" });
    agent.steer("third");
    expect(lines((await replayed).unused)).toEqual(["user third"]);
  });

  test("an idle agent, or with what is no message, is refused", async () => {
    const gate = Promise.withResolvers<string>();
    const checkpointer = new MemoryCheckpointer();
    const agent = new Agent({ model: new ScriptedModel([() => gate.promise]), checkpointer, threadId: THREAD });
    expect(() => agent.steer("hello?")).toThrow(expect.objectContaining({ code: "agent_idle" }));
    const prompted = agent.prompt("go");
    expect(() => agent.steer([])).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => agent.steer({ role: "user", content: [{ type: "text" }] } as never)).toThrow(/content\[0\]\.text/);
    gate.resolve("done");
    expect((await prompted).unused).toEqual([]);
    expect(() => agent.steer("hello?")).toThrow(expect.objectContaining({ code: "agent_idle" }));
    expect(await failureOf(agent.prompt([]))).toMatchObject({ code: "invalid_argument" });
    expect(() => agent.steer("hello?")).toThrow(expect.objectContaining({ code: "agent_idle" }));
  });
});
