/** Middleware: each hook, their order, what they may change, and what happens when they throw. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import type { Middleware } from "../../src/agent/middleware.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { text, textOf, toolCall, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { failureOf, lines, notingTool, TestFile, THREAD } from "./support.ts";

const CALL = [toolCall("c", "note", { text: "a" })];

function build(answers: ScriptedAnswer[], middleware: Middleware[]) {
  const note = notingTool("note");
  const model = new ScriptedModel(answers);
  const checkpointer = new MemoryCheckpointer();
  const agent = new Agent({ model, system: "Be brief.", tools: [note], middleware, checkpointer, threadId: THREAD });
  return { agent, model, note, checkpointer };
}

/** A middleware that notes every hook it is called at. */
function noting(name: string, log: string[]): Middleware {
  const at = (hook: string) => {
    log.push(`${name} ${hook}`);
    return undefined;
  };
  return {
    systemPrompt: () => at("systemPrompt"),
    context: () => at("context"),
    afterModelResponse: () => at("afterModelResponse"),
    beforeToolCall: () => at("beforeToolCall"),
    afterToolCall: () => at("afterToolCall"),
    stopAfterTurn: () => at("stopAfterTurn"),
    endOfRun: () => at("endOfRun"),
  };
}

describe("hooks", () => {
  test("run in the order of the list, at their points", async () => {
    const log: string[] = [];
    await build([CALL, "done"], [noting("a", log), noting("b", log)]).agent.prompt("go");
    const turn = (...hooks: string[]) => hooks.flatMap((hook) => [`a ${hook}`, `b ${hook}`]);
    expect(log).toEqual([
      ...turn("systemPrompt", "context", "afterModelResponse", "beforeToolCall", "afterToolCall", "stopAfterTurn"),
      ...turn("systemPrompt", "context", "afterModelResponse", "stopAfterTurn", "endOfRun"),
    ]);
  });

  test("each gets the thread, the run, the signal, and one extra that is saved", async () => {
    const file = new TestFile();
    const seen: unknown[] = [];
    const count = (_first: unknown, context: { extra: Record<string, unknown>; threadId?: string | undefined }) => {
      seen.push(context.threadId);
      context.extra.n = Number(context.extra.n ?? 0) + 1;
      return undefined;
    };
    const middleware: Middleware = {
      systemPrompt: count,
      context: count,
      afterModelResponse: count,
      beforeToolCall: count,
      afterToolCall: (result, _call, context) => count(result, context),
      stopAfterTurn: count,
      endOfRun: count,
    };
    const agent = await file.agent([CALL, "done"], { middleware: [middleware], tools: [notingTool("note")] });
    await agent.prompt("go");
    expect(seen).toEqual(Array(11).fill(THREAD));
    expect(file.query("SELECT extra_json FROM thread_extra")).toEqual([{ extra_json: '{"n":11}' }]);
  });

  test("systemPrompt and context change what one call is sent, and nothing that is stored", async () => {
    const { agent, model } = build(
      ["one", "two"],
      [
        { systemPrompt: (system) => `${system} Be kind.` },
        { systemPrompt: (system) => `${system} In French.` },
        { context: (messages) => [userMessage("remember: teal"), ...messages.slice(-1)] },
        {
          context: (messages) => {
            messages.pop();
          },
        },
      ],
    );
    await agent.prompt("first");
    await agent.prompt("second");
    expect(model.requests.map(({ system }) => system)).toEqual(Array(2).fill("Be brief. Be kind. In French."));
    expect(model.requests.map(({ messages }) => lines(messages))).toEqual([
      ["user remember: teal", "user first"],
      ["user remember: teal", "user second"],
    ]);
    expect(lines(agent.messages)).toEqual(["user first", "assistant one", "user second", "assistant two"]);
  });

  test("what context gives is made fit for the model", async () => {
    const { agent, model } = build(
      ["one"],
      [
        {
          context: (messages) => [{ role: "tool_result", tool_call_id: "x", tool_name: "y", content: [] }, ...messages],
        },
      ],
    );
    await agent.prompt("first");
    expect(lines(model.requests[0]?.messages ?? [])).toEqual(["user first"]);
  });

  test("no system prompt is sent when there is none", async () => {
    const model = new ScriptedModel(["x"]);
    await new Agent({ model }).prompt("go");
    expect(model.requests[0]).not.toHaveProperty("system");
  });

  test("afterModelResponse changes an answer before it is stored and acted on", async () => {
    const { agent, note } = build(
      [[text("secret"), ...CALL], "done"],
      [
        {
          afterModelResponse: (message) => ({
            ...message,
            content: message.content.map((block) =>
              block.type === "tool_call" ? { ...block, arguments: { text: "b" } } : text("***"),
            ),
          }),
        },
      ],
    );
    await agent.prompt("go");
    expect(agent.messages[1]?.content).toEqual([text("***"), toolCall("c", "note", { text: "b" })]);
    expect(note.ran).toEqual([{ id: "c", args: { text: "b" } }]);
  });

  test("beforeToolCall changes arguments, one hook after the other; the thread keeps the model's own", async () => {
    const shown: unknown[] = [];
    const { agent, note } = build(
      [CALL, "done"],
      [
        { beforeToolCall: (call) => ({ arguments: { ...call.arguments, by: "a" } }) },
        { beforeToolCall: (call) => ({ arguments: { ...call.arguments, and: "b" } }) },
      ],
    );
    await agent.prompt("go", {
      onEvent: (event) => {
        if (event.type === "tool_start") shown.push(event.arguments);
      },
    });
    const changed = { text: "a", by: "a", and: "b" };
    expect(note.ran).toEqual([{ id: "c", args: changed }]);
    expect(shown).toEqual([changed]);
    expect(agent.messages[1]?.content).toEqual(CALL);
  });

  test("beforeToolCall blocks a call with a reason, and later hooks don't see it", async () => {
    const log: string[] = [];
    const { agent, note } = build(
      [CALL, "done"],
      [{ beforeToolCall: () => ({ block: "not today" }) }, noting("b", log)],
    );
    await agent.prompt("go");
    expect(note.ran).toEqual([]);
    expect(lines(agent.messages)[2]).toBe("tool_result c error This call was blocked: not today");
    expect(agent.messages[2]).toMatchObject({ details: { hitl: { decision: "policy_deny", reason: "not today" } } });
    expect(log).not.toContain("b beforeToolCall");
  });

  test("H7 changing the call that a hook is given changes nothing", async () => {
    const { agent, note } = build(
      [CALL, "done"],
      [
        {
          beforeToolCall: (call) => {
            call.arguments.text = "changed";
            call.name = "other";
          },
        },
      ],
    );
    await agent.prompt("go");
    expect(note.ran).toEqual([{ id: "c", args: { text: "a" } }]);
  });

  test("arguments that a hook changed must fit the tool", async () => {
    const { agent, note } = build(
      [CALL, "done"],
      [{ beforeToolCall: () => ({ arguments: { at: new Date() } as never }) }],
    );
    await agent.prompt("go");
    expect(note.ran).toEqual([]);
    expect(agent.messages[2]).toMatchObject({ is_error: true });
  });

  test("afterToolCall changes a result, but not which call it answers", async () => {
    const { agent } = build(
      [CALL, "done"],
      [{ afterToolCall: (result) => ({ ...result, content: [text("shortened")], tool_call_id: "other" }) }],
    );
    await agent.prompt("go");
    expect(lines(agent.messages)[2]).toBe("tool_result c shortened");
  });

  test("stopAfterTurn ends the run whole, and is asked of every middleware", async () => {
    const asked: string[] = [];
    const stop = (name: string, answer: boolean): Middleware => ({
      stopAfterTurn: ({ message, toolResults }) => {
        asked.push(`${name} ${textOf(message)}${toolResults.length}`);
        return answer;
      },
    });
    const { agent, model } = build([CALL, "never"], [stop("a", true), stop("b", false)]);
    expect(await agent.prompt("go")).toMatchObject({ status: "completed" });
    expect(asked).toEqual(["a 1", "b 1"]);
    expect(model.requests).toHaveLength(1);
  });

  test("endOfRun is told how it ended", async () => {
    const ends: string[] = [];
    const end: Middleware = {
      endOfRun: ({ status }) => {
        ends.push(status);
        return undefined;
      },
    };
    const { agent } = build(["one", new Error("broken")], [end]);
    await agent.prompt("a");
    await agent.prompt("b");
    const controller = new AbortController();
    controller.abort();
    await agent.prompt("c", { signal: controller.signal });
    expect(ends).toEqual(["completed", "failed", "aborted"]);
  });

  test("brings tools, whose names must be new", async () => {
    const extra = notingTool("extra");
    const { agent, model } = build([[toolCall("c", "extra")], "done"], [{ tools: [extra] }]);
    await agent.prompt("go");
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["note", "extra"]);
    expect(extra.ran).toHaveLength(1);
    expect(() => build([], [{ tools: [notingTool("note")] }])).toThrow('Two tools are called "note"');
  });
});

describe("a hook that throws", () => {
  const thrower = (hook: string): Middleware => ({
    [hook]: () => {
      throw new Error(`${hook} broke`);
    },
  });

  test.each(["systemPrompt", "context", "afterModelResponse", "stopAfterTurn", "endOfRun"])(
    "%s ends the run, is thrown by prompt(), and leaves a thread that goes on",
    async (hook) => {
      const { agent, checkpointer } = build(["one"], [thrower(hook)]);
      expect(await failureOf(agent.prompt("go", { runId: "r" }))).toMatchObject({ message: `${hook} broke` });
      expect((await checkpointer.listRuns(THREAD)).items).toMatchObject([{ runId: "r", completedAt: null }]);
      const next = new Agent({ model: new ScriptedModel(["two"]), checkpointer, threadId: THREAD });
      expect(await next.prompt("again")).toMatchObject({ status: "completed", text: "two" });
    },
  );

  test.each(["beforeToolCall", "afterToolCall"])("%s becomes that call's error result", async (hook) => {
    const { agent, note } = build([CALL, "done"], [thrower(hook)]);
    expect(await agent.prompt("go")).toMatchObject({ status: "completed" });
    expect(agent.messages[2]).toMatchObject({ is_error: true, tool_call_id: "c" });
    expect(textOf(agent.messages[2] as Message)).toContain(`${hook} broke`);
    expect(note.ran).toHaveLength(hook === "beforeToolCall" ? 0 : 1);
  });

  test("one that gives a message of another role is told so", async () => {
    const wrong = userMessage("x") as never;
    const { agent } = build(["one"], [{ afterModelResponse: () => wrong }]);
    await expect(agent.prompt("go")).rejects.toThrow("afterModelResponse must give an assistant message.");
    const other = build([CALL, "done"], [{ afterToolCall: () => wrong }]);
    expect(await other.agent.prompt("go")).toMatchObject({ status: "completed" });
    expect(lines(other.agent.messages)[2]).toBe("tool_result c error afterToolCall must give a tool result.");
  });
});
