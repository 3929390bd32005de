/** The middleware that turns a chat into remembered facts, and its example. */
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { type ExtractionInput, type FoundFact, remember } from "../../src/agent/remember.ts";
import { defineTool } from "../../src/agent/tools.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { InMemoryHistory } from "../../src/history/memory/history.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { ModelError } from "../../src/model/errors.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { tempDir } from "../support/temp.ts";

const look = defineTool({
  name: "look",
  description: "look",
  parameters: { type: "object" },
  execute: () => "seen",
});

type Answers = ConstructorParameters<typeof ScriptedModel>[0];

/** An agent on a thread of its own, and what its extractor was called with. */
function setUp(answers: Answers, found: (input: ExtractionInput) => FoundFact[] | Promise<FoundFact[]> = () => []) {
  const history = new InMemoryHistory();
  const calls: ExtractionInput[] = [];
  const extract = (input: ExtractionInput) => {
    calls.push(input);
    return found(input);
  };
  const checkpointer = new MemoryCheckpointer();
  const agentOf = (options: Partial<Parameters<typeof remember>[0]> = {}, script: Answers = answers) =>
    new Agent({
      model: new ScriptedModel(script),
      tools: [look],
      approve: ({ toolName }) => (toolName === "look" ? "ask" : "allow"),
      middleware: [remember({ history, extract, ...options })],
      checkpointer,
      threadId: "t",
    });
  return { history, calls, agentOf };
}

const said = async (history: InMemoryHistory, scope = "t") =>
  (await history.recentMessages(scope)).map(({ role, content }) => `${role}: ${content}`);

describe("the window", () => {
  test("gets what user and model said, and the extractor the last of it", async () => {
    const { history, calls, agentOf } = setUp(["one", "two", "three"]);
    const agent = agentOf({ keep: 3 });
    for (const text of ["a", "b", "c"]) await agent.prompt(text);
    expect(await said(history)).toEqual(["assistant: two", "user: c", "assistant: three"]);
    expect(calls.map(({ scope, added, messages }) => [scope, added, messages.map(({ content }) => content)])).toEqual([
      ["t", 2, ["a", "one"]],
      ["t", 2, ["one", "b", "two"]],
      ["t", 2, ["two", "c", "three"]],
    ]);
  });

  test("has the whole of a run that was suspended and answered, in another agent, once", async () => {
    const { history, calls, agentOf } = setUp([]);
    const call = { content: [{ type: "text", text: "I look." } as const, toolCall("c1", "look")] };
    await agentOf({}, [call]).prompt("look!");
    expect(await said(history)).toEqual([]);
    await agentOf({}, ["I saw it."]).respond("c1", { decision: "approve" });
    expect(await said(history)).toEqual(["user: look!", "assistant: I look.", "assistant: I saw it."]);
    expect(calls).toHaveLength(1);
  });

  test("has what was said in a run that failed, which is not extracted from", async () => {
    const { history, calls, agentOf } = setUp([new ModelError("down")]);
    expect((await agentOf().prompt("hello?")).status).toBe("failed");
    expect(await said(history)).toEqual(["user: hello?"]);
    expect(calls).toEqual([]);
  });

  test("is of the scope that is named, and of none where there is none", async () => {
    const { history, calls, agentOf } = setUp(["one"]);
    await agentOf({ scope: ({ threadId }) => `thread=${threadId}` }, ["one"]).prompt("a");
    await agentOf({ scope: () => undefined }, ["two"]).prompt("b");
    expect((await history.listScopes()).items).toEqual([{ scope: "thread=t", messageCount: 2 }]);
    expect(calls).toHaveLength(1);
  });

  test("has nothing of forkOnce", async () => {
    const { history, agentOf } = setUp(["one", "aside"]);
    const agent = agentOf();
    const { runId } = await agent.prompt("a");
    await agent.forkOnce("between us", { afterRunId: runId });
    expect(await said(history)).toEqual(["user: a", "assistant: one"]);
  });
});

describe("the log", () => {
  const facts = (...runs: FoundFact[][]) => {
    let run = 0;
    return () => runs[run++] ?? [];
  };
  const logOf = async (history: InMemoryHistory, id = "m") =>
    (await history.get(id)).map(({ event, old_memory, new_memory, is_deleted }) => [
      event,
      old_memory,
      new_memory,
      is_deleted,
    ]);

  test("has each change with its old value, and none where nothing changed", async () => {
    const fact = (value: string | null, more: Partial<FoundFact> = {}) => [{ memory_id: "m", value, ...more }];
    const runs = facts(
      fact("one"),
      fact("one"),
      fact("two", { actor_id: "ada", role: "user" }),
      fact(null),
      fact(null),
      fact("new"),
    );
    const { history, agentOf } = setUp(["1", "2", "3", "4", "5", "6"], runs);
    const agent = agentOf();
    for (let i = 0; i < 6; i++) await agent.prompt(`${i}`);
    expect(await logOf(history)).toEqual([
      ["ADD", null, "one", false],
      ["UPDATE", "one", "two", false],
      ["DELETE", "two", null, true],
      ["ADD", null, "new", false],
    ]);
    const log = await history.get("m");
    expect(log[1]).toMatchObject({ actor_id: "ada", role: "user" });
    // As Mem0 has it: when the memory came to be, and when it changed.
    expect(new Set(log.map((record) => record.created_at)).size).toBe(1);
    expect(log.map((record) => record.updated_at !== null)).toEqual([false, true, true, true]);
    expect(await history.restoreAt("m", new Date())).toBe("new");
  });

  test("has several changes of one run, to one memory too, and events of the extractor's own", async () => {
    const found = [
      { memory_id: "m", value: "one" },
      { memory_id: "other", value: "x", event: "NOTED" },
      { memory_id: "m", value: "two" },
      { memory_id: "m", value: "two", event: "CONFIRMED" },
    ];
    const { history, agentOf } = setUp(["1"], () => found);
    await agentOf().prompt("a");
    expect(await logOf(history)).toEqual([
      ["ADD", null, "one", false],
      ["UPDATE", "one", "two", false],
      ["CONFIRMED", "two", "two", false],
    ]);
    expect(await logOf(history, "other")).toEqual([["NOTED", null, "x", false]]);
  });

  test("the extractor sees the value that a memory has", async () => {
    const seen: unknown[] = [];
    const { history, agentOf } = setUp(["1"], async ({ current }) => {
      seen.push(await current("m"), await current("missing"));
      return [];
    });
    await history.add({ memory_id: "m", event: "ADD", new_memory: "x" });
    await agentOf().prompt("a");
    expect(seen).toEqual(["x", undefined]);
  });

  test("has all changes of a run or none", async () => {
    const { history, agentOf } = setUp(["1"], () => [
      { memory_id: "m", value: "one" },
      { memory_id: "", value: "bad" },
    ]);
    await expect(agentOf().prompt("a")).rejects.toMatchObject({ code: "invalid_id" });
    expect(await history.get("m")).toEqual([]);
  });
});

test("what the extractor throws is thrown by prompt(), or goes to onError, and the next run works", async () => {
  const failing = () => {
    throw new Error("no extractor today");
  };
  const { history, agentOf } = setUp([], failing);
  await expect(agentOf({}, ["1"]).prompt("a")).rejects.toThrow("no extractor today");
  const errors: unknown[] = [];
  const agent = agentOf({ onError: (error) => errors.push(error) }, ["2", "3"]);
  expect((await agent.prompt("b")).status).toBe("completed");
  expect((await agent.prompt("c")).status).toBe("completed");
  expect(errors).toEqual([new Error("no extractor today"), new Error("no extractor today")]);
  expect(await said(history)).toEqual([
    "user: a",
    "assistant: 1",
    "user: b",
    "assistant: 2",
    "user: c",
    "assistant: 3",
  ]);
});

test("conversation and memory are files of their own", async () => {
  const dir = tempDir();
  await using checkpointer = await SqliteCheckpointer.open(join(dir, "agent.db"));
  await using history = await SqliteMemoryHistory.open(join(dir, "memory.db"));
  const extract = () => [{ memory_id: "m", value: "x" }];
  const middleware = [remember({ history, extract, scope: "s" })];
  await new Agent({ model: new ScriptedModel(["1"]), checkpointer, threadId: "t", middleware }).prompt("a");
  expect(await history.restoreAt("m", new Date())).toBe("x");
});

test("examples/remember.ts tells what was remembered when, and goes on when it is run again", async () => {
  const cwd = tempDir();
  const args = ["--experimental-strip-types", "--no-warnings", resolve("examples/remember.ts")];
  const example = async () =>
    (await promisify(execFile)(process.execPath, args, { cwd })).stdout.split("\n").slice(0, -1);
  expect(await example()).toEqual([
    "ADD: nothing → teal",
    "UPDATE: teal → green",
    "Before: undefined",
    "In between: teal",
    "Now: green",
    "The window holds 4 messages.",
  ]);
  expect(await example()).toEqual([
    "UPDATE: green → teal",
    "UPDATE: teal → green",
    "Before: green",
    "In between: teal",
    "Now: green",
    "The window holds 8 messages.",
  ]);
});
