/** Runs: their ids, when they count as completed, and what forks take of them. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { toolCall, userMessage } from "../../src/messages/construct.ts";
import { ModelBadRequestError, ModelUnavailableError } from "../../src/model/errors.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { collect, endlessModel, failureOf, lines, notingTool, TestFile, THREAD, types } from "./support.ts";

const GO = [toolCall("c1", "note")];

describe("a run id", () => {
  test("of a completed run is replayed without asking the model or writing anything", async () => {
    const file = new TestFile();
    const first = await (await file.agent([GO, "done"], { tools: [notingTool("note")] })).prompt("go", { runId: "r" });
    const model = new ScriptedModel([]);
    const before = readFileSync(file.path);
    const again = await (await file.agent([], { model })).prompt("go", { runId: "r" });
    expect(again).toMatchObject({ status: "completed", text: "done", replayed: true, runId: "r", stopReason: "stop" });
    expect(again.messages).toEqual(first.messages);
    expect(model.requests).toEqual([]);
    expect(readFileSync(file.path).equals(before)).toBe(true);
  });

  test("of a suspended run is replayed with its question", async () => {
    const file = new TestFile();
    const options = { tools: [notingTool("note")], approve: () => "ask" as const };
    const first = await (await file.agent([GO], options)).prompt("go", { runId: "r" });
    const again = await (await file.agent([], options)).prompt("go", { runId: "r" });
    expect(again).toMatchObject({ status: "suspended", replayed: true, pending: first.pending });
    expect(again.messages).toEqual(first.messages);
  });

  test("of a completed run is replayed also while a later run waits on a person", async () => {
    const file = new TestFile();
    const options = { tools: [notingTool("note")], approve: () => "ask" as const };
    const agent = await file.agent(["one", GO], options);
    await agent.prompt("first", { runId: "r1" });
    await agent.prompt("second", { runId: "r2" });
    expect(await agent.prompt("first", { runId: "r1" })).toMatchObject({ status: "completed", text: "one" });
    expect(await failureOf(agent.prompt("third", { runId: "r3" }))).toMatchObject({ code: "hitl_pending" });
    expect(file.query("SELECT run_id FROM runs ORDER BY 1")).toEqual([{ run_id: "r1" }, { run_id: "r2" }]);
  });

  test("that is claimed is refused, and nothing is written", async () => {
    const file = new TestFile();
    const store = await file.open();
    await store.claimRun(THREAD, "r");
    const agent = await file.agent(["never"]);
    expect(await failureOf(agent.prompt("go", { runId: "r" }))).toMatchObject({ code: "run_already_claimed" });
    expect(file.messages()).toEqual([]);
    expect(await agent.prompt("go", { runId: "r2" })).toMatchObject({ status: "completed" });
  });

  test("in which the model failed is taken up again: the user's message is there once", async () => {
    const file = new TestFile();
    const failing = await file.agent([new ModelUnavailableError("down", { retryable: false })]);
    expect(await failing.prompt("go", { runId: "r" })).toMatchObject({ status: "failed" });
    const model = new ScriptedModel(["done"]);
    const agent = await file.agent([], { model });
    expect(await agent.prompt("go", { runId: "r" })).toMatchObject({ status: "completed", text: "done" });
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(["user"]);
    expect(file.messages().map(({ role }) => role)).toEqual(["user", "assistant", "assistant"]);
    expect(await agent.prompt("go", { runId: "r" })).toMatchObject({ replayed: true, text: "done" });
  });

  test("given under another name is refused", async () => {
    const agent = await new TestFile().agent(["never"]);
    expect(await failureOf(agent.prompt("go", { runID: "r" } as never))).toMatchObject({ code: "invalid_argument" });
  });

  test.each([[""], ["x".repeat(65)], ["a\0b"], ["\ud800"], [7]])(
    "%j is refused before anything is written",
    async (id) => {
      const file = new TestFile();
      const agent = await file.agent(["never"]);
      expect(await failureOf(agent.prompt("go", { runId: id as string }))).toMatchObject({ code: "invalid_id" });
      expect(file.query("SELECT * FROM runs")).toEqual([]);
    },
  );

  test("is on every message, also on one that came with none, and must not be another's", async () => {
    const file = new TestFile();
    const agent = await file.agent([GO, "done"], { tools: [notingTool("note")] });
    const { runId } = await agent.prompt([userMessage("go"), userMessage("now")]);
    expect(runId).toMatch(/^[0-9a-f]{32}$/);
    expect(file.messages().map(({ run_id }) => run_id)).toEqual([runId, runId, runId, runId, runId]);
    expect(file.query("SELECT DISTINCT run_id FROM messages")).toEqual([{ run_id: runId }]);
    const foreign = agent.prompt(userMessage("go", { run_id: "r1" }), { runId: "r2" });
    await expect(foreign).rejects.toMatchObject({ code: "invalid_argument" });
    expect(file.messages()).toHaveLength(5);
  });
});

describe("a run is completed", () => {
  const completed = (file: TestFile) =>
    file.query("SELECT run_id FROM runs WHERE completion_seq IS NOT NULL").map(({ run_id }) => run_id);

  test("only when it ended whole", async () => {
    const file = new TestFile();
    const tools = [notingTool("note")];
    await (await file.agent([new ModelBadRequestError("no")])).prompt("x", { runId: "failed" });
    await (await file.agent([], { model: endlessModel })).prompt("x", {
      runId: "aborted",
      signal: AbortSignal.timeout(1),
    });
    await (await file.agent([GO], { tools, approve: () => "ask" })).prompt("x", { runId: "asked" });
    expect(completed(file)).toEqual([]);
    await (await file.agent(["ok"], { tools })).respond("c1", { decision: "approve" });
    expect(completed(file)).toEqual(["asked"]);
    await (await file.agent([GO], { tools, approve: () => "ask" })).prompt("x", { runId: "stopped" });
    await (await file.agent([])).abortPending();
    expect(completed(file)).toEqual(["asked"]);
  });

  test("when a hook stops it after its calls were answered", async () => {
    const file = new TestFile();
    const agent = await file.agent([GO], { tools: [notingTool("note")], middleware: [{ stopAfterTurn: () => true }] });
    expect(await agent.prompt("go", { runId: "r" })).toMatchObject({ status: "completed", text: "" });
    expect(completed(file)).toEqual(["r"]);
  });
});

describe("fork", () => {
  test("L1 each thread keeps its own next turn", async () => {
    const file = new TestFile();
    const agent = await file.agent(["one", "two here"]);
    await agent.prompt("first", { runId: "r1" });
    await agent.prompt("second", { runId: "r2" });
    await agent.fork("branch", { afterRunId: "r1", metadata: { why: "a test" } });
    const branch = await file.agent(["two there"], { threadId: "branch" });
    await branch.prompt("second, otherwise", { runId: "r2" });
    expect(lines(file.messages())).toEqual(["user first", "assistant one", "user second", "assistant two here"]);
    const there = ["user first", "assistant one", "user second, otherwise", "assistant two there"];
    expect(lines(file.messages("branch"))).toEqual(there);
    const reloaded = await file.agent(["three"], { threadId: "branch" });
    await reloaded.prompt("third");
    expect(lines(reloaded.messages)).toEqual([...there, "user third", "assistant three"]);
    expect(branch.extra).toEqual({ fork: { why: "a test" } });
  });

  test("F5 failed, aborted, suspended and running runs never leak", async () => {
    const file = new TestFile();
    const tools = [notingTool("note")];
    await (await file.agent(["one"])).prompt("whole", { runId: "whole" });
    await (await file.agent([new ModelBadRequestError("no")])).prompt("failed", { runId: "failed" });
    const stopped = await file.agent([], { model: endlessModel });
    await stopped.prompt("aborted", { runId: "aborted", signal: AbortSignal.timeout(1) });
    const asking = await file.agent([GO], { tools, approve: () => "ask" });
    await asking.prompt("denied", { runId: "denied" });
    await asking.abortPending("no more");
    await (await file.agent([GO], { tools, approve: () => "ask" })).prompt("asked", { runId: "asked" });
    await asking.fork("before", { afterRunId: "whole" });
    expect(lines(file.messages("before"))).toEqual(["user whole", "assistant one"]);
    await (await file.agent(["yes"], { tools })).respond("c1", { decision: "approve" });
    let duringRun: string[] = [];
    const last = await file.agent([
      async () => {
        await last.fork("during", { afterRunId: "asked" });
        duringRun = lines(file.messages("during"));
        return "two";
      },
    ]);
    await last.prompt("running", { runId: "running" });
    expect(duringRun).toEqual([
      "user whole",
      "assistant one",
      "user asked",
      "assistant note(c1)",
      "tool_result c1 note did c1",
      "assistant yes",
    ]);
    for (const afterRunId of ["failed", "aborted", "denied", "never"]) {
      expect(await failureOf(last.fork("no", { afterRunId }))).toMatchObject({ code: "run_not_completed" });
    }
    expect(file.messages("no")).toEqual([]);
  });

  test("F4 a fork of a fork holds each message once", async () => {
    const file = new TestFile();
    const agent = await file.agent(["one"]);
    await agent.prompt("first", { runId: "r1" });
    await agent.fork("b", { afterRunId: "r1" });
    const b = await file.agent(["two"], { threadId: "b" });
    await b.prompt("second", { runId: "r2" });
    await b.fork("c", { afterRunId: "r2" });
    const c = await file.agent(["three"], { threadId: "c" });
    await c.prompt("third");
    expect(lines(file.messages("c"))).toEqual([
      "user first",
      "assistant one",
      "user second",
      "assistant two",
      "user third",
      "assistant three",
    ]);
  });

  test("needs a stored thread", async () => {
    const agent = new Agent({ model: new ScriptedModel([]) });
    await expect(agent.fork("x", { afterRunId: "r" })).rejects.toThrow(TypeError);
    await expect(agent.forkOnce("x", { afterRunId: "r" })).rejects.toThrow(TypeError);
  });
});

describe("forkOnce", () => {
  test("gives text, messages and stop reason, and leaves the file byte for byte as it is", async () => {
    const file = new TestFile();
    const note = notingTool("note");
    const agent = await file.agent(["one", "two", GO, "an aside"], { tools: [note] });
    await agent.prompt("first", { runId: "r1" });
    await agent.prompt("second", { runId: "r2" });
    const before = readFileSync(file.path);
    const result = await agent.forkOnce("by the way?", { afterRunId: "r1" });
    expect(result).toMatchObject({ status: "completed", text: "an aside", stopReason: "stop" });
    expect(lines(result.messages)).toEqual([
      "user by the way?",
      "assistant note(c1)",
      "tool_result c1 note did c1",
      "assistant an aside",
    ]);
    expect(readFileSync(file.path).equals(before)).toBe(true);
    expect(agent.messages).toHaveLength(4);
    expect(note.ran).toHaveLength(1);
  });

  test("sends the model the completed runs and the question", async () => {
    const file = new TestFile();
    const model = new ScriptedModel(["one", new ModelBadRequestError("no"), "aside"]);
    const agent = await file.agent([], { model });
    await agent.prompt("first", { runId: "r1" });
    await agent.prompt("second");
    await agent.forkOnce("by the way?", { afterRunId: "r1" });
    expect(lines(model.requests.at(-1)?.messages ?? [])).toEqual(["user first", "assistant one", "user by the way?"]);
  });

  test("refuses a call that needs a person, and runs nothing of its batch", async () => {
    const file = new TestFile();
    const note = notingTool("note");
    const both = [toolCall("a", "note"), toolCall("b", "gated")];
    const agent = await file.agent(["one", both, "later"], {
      tools: [note, notingTool("gated")],
      approve: ({ toolName }) => (toolName === "gated" ? "ask" : "allow"),
    });
    await agent.prompt("first", { runId: "r1" });
    const before = readFileSync(file.path);
    expect(await failureOf(agent.forkOnce("?", { afterRunId: "r1" }))).toMatchObject({ code: "hitl_unavailable" });
    expect(note.ran).toEqual([]);
    expect(readFileSync(file.path).equals(before)).toBe(true);
    expect(await agent.pending()).toBeUndefined();
    expect(await agent.prompt("go on")).toMatchObject({ status: "completed" });
  });

  test("lets hooks and tools read and change a copy of extra", async () => {
    const file = new TestFile();
    const seen: unknown[] = [];
    const agent = await file.agent(["one", "aside"], {
      middleware: [
        {
          systemPrompt: (_system, { extra, threadId }) => {
            seen.push([threadId, extra.count]);
            extra.count = Number(extra.count ?? 0) + 1;
          },
        },
      ],
    });
    await agent.prompt("first", { runId: "r1" });
    await agent.forkOnce("?", { afterRunId: "r1" });
    expect(seen).toEqual([
      [THREAD, undefined],
      [undefined, 1],
    ]);
    expect(agent.extra).toEqual({ count: 1 });
    expect(file.query("SELECT extra_json FROM thread_extra")).toEqual([{ extra_json: '{"count":1}' }]);
  });

  test("reports events as a prompt does, and may run beside one", async () => {
    const file = new TestFile();
    const gate = Promise.withResolvers<string>();
    const asked = Promise.withResolvers<void>();
    const two = () => {
      asked.resolve();
      return gate.promise;
    };
    const agent = await file.agent(["one", two, "aside"]);
    await agent.prompt("first", { runId: "r1" });
    const main = collect(agent.stream("second"));
    await asked.promise;
    const seen: string[] = [];
    const aside = await agent.forkOnce("?", { afterRunId: "r1", onEvent: ({ type }) => seen.push(type) });
    expect(aside.text).toBe("aside");
    expect(seen).toEqual(["run_start", "message", "text_delta", "message", "turn_end", "run_end"]);
    gate.resolve("two");
    const { events, result } = await main;
    expect(result.text).toBe("two");
    expect(types(events)).toEqual(seen);
  });

  test("after a run that never completed is refused", async () => {
    const file = new TestFile();
    const agent = await file.agent([new ModelBadRequestError("no")]);
    expect(await failureOf(agent.forkOnce("?", { afterRunId: "r" }))).toMatchObject({ code: "thread_not_found" });
    await agent.prompt("first", { runId: "r1" });
    expect(await failureOf(agent.forkOnce("?", { afterRunId: "r1" }))).toMatchObject({ code: "run_not_completed" });
  });
});
