/** Tools: how they run, what they are given, what they may give, and what a model is told when it calls them wrongly. */
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { defineTool, type Tool, type ToolContext } from "../../src/agent/tools.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { image, text, textOf, toolCall } from "../../src/messages/construct.ts";
import type { JsonObject } from "../../src/messages/json.ts";
import type { ToolCallBlock, ToolResultMessage } from "../../src/messages/schema.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { lines, notingTool, THREAD, tool } from "./support.ts";

/** Lets a model call tools in one turn, and gives the results in the order of the calls. */
async function call(tools: Tool[], ...calls: ToolCallBlock[]): Promise<ToolResultMessage[]> {
  const agent = new Agent({
    model: new ScriptedModel([calls, "done"]),
    tools,
    checkpointer: new MemoryCheckpointer(),
    threadId: THREAD,
  });
  const { status, messages } = await agent.prompt("go");
  expect(status).toBe("completed");
  return calls.map(({ id }) => {
    const result = messages.find((message) => message.role === "tool_result" && message.tool_call_id === id);
    if (result?.role !== "tool_result") throw new Error(`Call ${id} has no result.`);
    return result;
  });
}

describe("tools", () => {
  test("of one batch run at the same time", async () => {
    const both = Promise.withResolvers<void>();
    let running = 0;
    const meet = tool("meet", async () => {
      if (++running === 2) both.resolve();
      await both.promise;
      return "met";
    });
    const results = await call([meet], toolCall("a", "meet"), toolCall("b", "meet"));
    expect(results.map(textOf)).toEqual(["met", "met"]);
  });

  test("get their arguments, the ids of thread, run and call, a signal, extra and update", async () => {
    let seen: [JsonObject, ToolContext] | undefined;
    const look = tool("look", (args, context) => {
      seen = [args, context];
      return "ok";
    });
    const agent = new Agent({
      model: new ScriptedModel([[toolCall("c1", "look", { at: "sky" })], "done"]),
      tools: [look],
      checkpointer: new MemoryCheckpointer(),
      threadId: THREAD,
    });
    await agent.prompt("go", { runId: "r" });
    expect(seen?.[0]).toEqual({ at: "sky" });
    expect(seen?.[1]).toMatchObject({ threadId: THREAD, runId: "r", toolCallId: "c1", extra: {} });
    expect(seen?.[1].signal).toBeInstanceOf(AbortSignal);
    expect(seen?.[1].signal.aborted).toBe(false);
  });

  test("that don't exist become an error result that names those that do", async () => {
    const [result] = await call([notingTool("note"), notingTool("look")], toolCall("c", "lock"));
    expect(result).toMatchObject({ is_error: true, tool_name: "lock" });
    expect(textOf(result as ToolResultMessage)).toBe('There is no tool "lock". There is: note, look.');
  });

  test("called with arguments that were not JSON are not run", async () => {
    const note = notingTool("note");
    const [result] = await call([note], { ...toolCall("c", "note"), invalid_arguments: '{"a":' });
    expect(result).toMatchObject({ is_error: true });
    expect(textOf(result as ToolResultMessage)).toMatch(/not valid JSON/);
    expect(note.ran).toEqual([]);
  });

  test("that change their arguments change no record of them", async () => {
    const spoil = tool("spoil", (args) => {
      args.path = "/etc";
      return "ok";
    });
    const model = new ScriptedModel([[toolCall("c", "spoil", { path: "/tmp" })], "done"]);
    const agent = new Agent({ model, tools: [spoil] });
    const shown: JsonObject[] = [];
    await agent.prompt("go", {
      onEvent: (event) => {
        if (event.type === "tool_start") shown.push(event.arguments);
      },
    });
    expect(shown).toEqual([{ path: "/tmp" }]);
    expect(agent.messages[1]?.content).toEqual([toolCall("c", "spoil", { path: "/tmp" })]);
    expect(model.requests[1]?.messages[1]?.content).toEqual([toolCall("c", "spoil", { path: "/tmp" })]);
  });

  test("that report after their end report nothing", async () => {
    let late: ToolContext | undefined;
    const agent = new Agent({
      model: new ScriptedModel([[toolCall("c", "look")], "done"]),
      tools: [
        tool("look", (_args, context) => {
          late = context;
          context.update(1);
          return "ok";
        }),
      ],
    });
    const seen: unknown[] = [];
    await agent.prompt("go", {
      onEvent: (event) => {
        if (event.type === "tool_update") seen.push(event.progress);
      },
    });
    late?.update(2);
    expect(seen).toEqual([1]);
  });
});

describe("an output of a tool", () => {
  const cyclic: JsonObject = {};
  cyclic.self = cyclic;
  test.each<[string, () => unknown, unknown, unknown]>([
    ["text", () => "hello", [text("hello")], null],
    ["empty text", () => "", [text("")], null],
    ["nothing", () => undefined, [], null],
    ["null", () => null, [], null],
    ["a promise", async () => "later", [text("later")], null],
    ["a number", () => 0, [text("0")], 0],
    ["false", () => false, [text("false")], false],
    ["a list", () => ["a", 1], [text('["a",1]')], ["a", 1]],
    ["an object", () => ({ a: null }), [text('{"a":null}')], { a: null }],
    ["text with details", () => ({ content: "seen", details: { n: 1 } }), [text("seen")], { n: 1 }],
    [
      "blocks",
      () => ({ content: [text("a"), image("data:,", "image/png")] }),
      [text("a"), image("data:,", "image/png")],
      null,
    ],
    [
      "an object that has content among other keys",
      () => ({ path: "/a", content: "b" }),
      [text('{"path":"/a","content":"b"}')],
      { path: "/a", content: "b" },
    ],
    ["lone surrogates", () => "cut \ud83d", [text("cut \ufffd")], null],
  ])("that is %s", async (_name, execute, content, details) => {
    const [result] = await call([tool("give", execute as () => string)], toolCall("c", "give"));
    expect(result).toMatchObject({ content, details, is_error: false });
  });

  test("may say that it is an error", async () => {
    const [result] = await call([tool("give", () => ({ content: "no", is_error: true }))], toolCall("c", "give"));
    expect(result).toMatchObject({ content: [text("no")], is_error: true });
  });

  test.each<[string, () => unknown, RegExp]>([
    ["a BigInt", () => ({ id: 9007199254740993n }), /^result\.id: a BigInt is not JSON/],
    ["NaN", () => [Number.NaN], /^result\[0\]: NaN is not JSON/],
    ["a Date", () => ({ at: new Date(0) }), /^result\.at: an object of class Date/],
    ["bytes", () => new Uint8Array([255]), /^result: an object of class Uint8Array/],
    ["a cycle", () => cyclic, /^result\.self: the value contains itself/],
    ["blocks that are none", () => ({ content: [1, 2] }), /content/],
    ["a throw", () => Promise.reject(new Error("no such host")), /^no such host$/],
    ["a throw of no Error", () => Promise.reject("why not"), /^why not$/],
  ])("that is %s becomes an error result", async (_name, execute, problem) => {
    const [bad, good] = await call(
      [tool("give", execute as () => string), notingTool("note")],
      toolCall("c", "give"),
      toolCall("d", "note"),
    );
    expect(bad?.is_error).toBe(true);
    expect(textOf(bad as ToolResultMessage)).toMatch(problem);
    expect(good).toMatchObject({ is_error: false });
  });
});

describe("arguments", () => {
  const ran: unknown[] = [];
  const execute = (args: unknown) => {
    ran.push(args);
    return "ok";
  };
  const about = { name: "weather", description: "Tells the weather.", execute };
  const jsonSchema = {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
    required: ["city"],
  };
  const tools: [string, Tool, unknown][] = [
    ["JSON Schema", defineTool({ ...about, parameters: jsonSchema }), { city: "Lund" }],
    [
      "zod",
      defineTool({ ...about, parameters: z.object({ city: z.string(), days: z.number().int().min(1).default(3) }) }),
      { city: "Lund", days: 3 },
    ],
    [
      "valibot with an inputSchema",
      defineTool({
        ...about,
        parameters: v.object({ city: v.string(), days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))) }),
        inputSchema: jsonSchema,
      }),
      { city: "Lund" },
    ],
    [
      "valibot that writes JSON Schema",
      defineTool({
        ...about,
        parameters: toStandardJsonSchema(
          v.object({ city: v.string(), days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))) }),
        ),
      }),
      { city: "Lund" },
    ],
    [
      "arktype",
      defineTool({ ...about, parameters: type({ city: "string", "days?": "number.integer>=1" }) }),
      { city: "Lund" },
    ],
  ];

  test.each(tools)(
    "of %s: what fits is run, what does not is told to the model, which can mend it",
    async (_name, weather, given) => {
      ran.length = 0;
      const model = new ScriptedModel([
        [toolCall("a", "weather", { city: 5 }), toolCall("b", "weather", { city: "Lund", days: 0 })],
        [toolCall("c", "weather", { city: "Lund" })],
        "sunny",
      ]);
      const agent = new Agent({ model, tools: [weather] });
      const { status, messages } = await agent.prompt("?");
      expect(status).toBe("completed");
      expect(ran).toEqual([given]);
      const results = messages.filter((message) => message.role === "tool_result");
      expect(results.map(({ is_error }) => is_error)).toEqual([true, true, false]);
      expect(textOf(results[0] as ToolResultMessage)).toMatch(/don't fit the tool: .*city/);
      expect(textOf(results[1] as ToolResultMessage)).toMatch(/don't fit the tool: .*days/);
      expect(model.requests[0]?.tools).toMatchObject([
        { name: "weather", inputSchema: { type: "object", properties: { city: { type: "string" } } } },
      ]);
    },
  );

  test("of a schema that can't write JSON Schema need an inputSchema", () => {
    const parameters = v.object({ city: v.string() });
    expect(() => new Agent({ model: new ScriptedModel([]), tools: [defineTool({ ...about, parameters })] })).toThrow(
      /"weather" \(valibot\) can't write JSON Schema\. Give the tool an inputSchema/,
    );
  });

  test("of a schema that throws become an error result", async () => {
    const parameters = z.object({ city: z.string() }).refine(() => {
      throw new Error("the check is broken");
    });
    const [result] = await call([defineTool({ ...about, parameters })], toolCall("c", "weather", { city: "Lund" }));
    expect(textOf(result as ToolResultMessage)).toMatch(/the check is broken/);
  });

  test("E1 L18 of any JSON reach the tool as they are: U+0000, __proto__, tags of other programs, {{ref}}", async () => {
    const args = JSON.parse(
      '{"a\\u0000b":"c\\u0000d","__proto__":{"x":1},"t":"{{ref}}","lc":1,"type":"constructor","id":["x","Y"],"kwargs":{}}',
    );
    const note = notingTool("note");
    await call([note], toolCall("c", "note", args));
    expect(JSON.stringify(note.ran)).toBe(JSON.stringify([{ id: "c", args }]));
  });
});

test("duplicate call ids in one batch: each result stays with its own call, whichever ends first", async () => {
  const gate = Promise.withResolvers<void>();
  const take = tool("take", async ({ n }) => {
    if (n === 1) await gate.promise;
    else gate.resolve();
    return `no. ${String(n)}`;
  });
  const model = new ScriptedModel([[toolCall("x", "take", { n: 1 }), toolCall("x", "take", { n: 2 })], "done"]);
  const agent = new Agent({ model, tools: [take], checkpointer: new MemoryCheckpointer(), threadId: THREAD });
  await agent.prompt("go");
  expect(lines(agent.messages)).toEqual([
    "user go",
    "assistant take(x) take(x)",
    "tool_result x no. 1",
    "tool_result x no. 2",
    "assistant done",
  ]);
  expect(lines(model.requests[1]?.messages ?? [])).toEqual([
    "user go",
    "assistant take(x) take(x_2)",
    "tool_result x no. 1",
    "tool_result x_2 no. 2",
  ]);
});
