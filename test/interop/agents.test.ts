/** A request that one program's agent left open, answered by the other's: approvals and questions, both ways. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { askUserTool } from "../../src/agent/ask-user.ts";
import type { AgentResult } from "../../src/agent/events.ts";
import { defineTool } from "../../src/agent/tools.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf, toolCall } from "../../src/messages/construct.ts";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import type { ToolCallBlock } from "../../src/messages/schema.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { python, pythonLabel, runPython } from "../support/python.ts";
import { TestDirectory } from "./files.ts";

const RUN = "run-1";
const TWO_GATES = [
  toolCall("call_a", "note", { text: "one 🧵" }),
  toolCall("call_b", "remove", { path: "/tmp/x" }),
  toolCall("call_c", "look", { what: "sky" }),
];
const QUESTIONS: JsonObject = {
  questions: [
    {
      key: "colour",
      prompt: "Which? 🎨",
      options: [
        { label: "Teal", value: "teal" },
        { label: "Red", value: "red" },
      ],
    },
    { prompt: "Your name?", key: "name", required: false },
  ],
};
const ASK = [toolCall("call_q", "ask_user", QUESTIONS)];

/** What CubeLoop's `faux_agent.py` reports. */
interface Report {
  outcome: string;
  executed: JsonValue[][];
}

describe.skipIf(python.path === null)(`with Python (${pythonLabel})`, () => {
  let directory: TestDirectory;
  let file: string;
  let ours: SqliteCheckpointer;
  beforeEach(async () => {
    directory = new TestDirectory();
    file = directory.file("shared.sqlite3");
    ours = await SqliteCheckpointer.open(file);
  });
  afterEach(async () => {
    await ours.close();
    directory[Symbol.dispose]();
  });

  /** An agent with the tools and the policy of `faux_agent.py`, and the calls that it ran. */
  function agentOf(...answers: ScriptedAnswer[]): { agent: Agent; executed: JsonValue[][] } {
    const executed: JsonValue[][] = [];
    const tools = [
      defineTool({
        name: "note",
        description: "Write a note.",
        parameters: z.object({ text: z.string(), colour: z.string().default("teal") }),
        execute: ({ text, colour }) => {
          executed.push(["note", text, colour]);
          return `Noted: ${text}`;
        },
      }),
      defineTool({
        name: "remove",
        description: "Remove a file.",
        parameters: z.object({ path: z.string() }),
        execute: ({ path }) => {
          executed.push(["remove", path]);
          return `Removed: ${path}`;
        },
      }),
      defineTool({
        name: "look",
        description: "Look at something.",
        parameters: z.object({ what: z.string() }),
        execute: ({ what }) => {
          executed.push(["look", what]);
          return `Seen: ${what}`;
        },
      }),
      askUserTool,
    ];
    const agent = new Agent({
      model: new ScriptedModel(answers),
      tools,
      approve: ({ toolName }) => (["note", "remove"].includes(toolName) ? "ask" : "allow"),
      checkpointer: ours,
      threadId: "t",
    });
    return { agent, executed };
  }

  const suspendInPython = async (calls: ToolCallBlock[], gate = "policy") =>
    (await runPython("agent_suspend.py", file, "t", RUN, "Do it.", JSON.stringify([calls]), gate)) as Report;
  const respondInPython = async (questionId: string, answer: JsonValue, ...script: string[]) =>
    (await runPython(
      "agent_respond.py",
      file,
      "t",
      questionId,
      JSON.stringify(answer),
      JSON.stringify(script),
    )) as Report;
  const suspendHere = (calls: ToolCallBlock[]) => agentOf(calls).agent.prompt("Do it.", { runId: RUN });

  const questionOf = (result: AgentResult) => result.pending?.question_id ?? `none: ${result.status}`;

  /** The roles of the thread, with the text of what is not a call, after checking that the run has settled. */
  async function settledThread(): Promise<string[]> {
    expect(await ours.loadPending("t")).toBeUndefined();
    expect((await ours.listRuns("t")).items).toMatchObject([{ runId: RUN, completionSeq: 1 }]);
    const { messages } = (await ours.load("t")) ?? { messages: [] };
    expect(messages.map((message) => message.run_id)).toEqual(messages.map(() => RUN));
    return messages.map((message) => `${message.role}: ${textOf(message)}`);
  }

  /** What is recorded for programs beside the result of a call. */
  async function hitlOf(toolCallId: string): Promise<JsonValue | undefined> {
    const { messages } = (await ours.load("t")) ?? { messages: [] };
    const result = messages.find((message) => message.role === "tool_result" && message.tool_call_id === toolCallId);
    return (result as { details?: JsonObject | null } | undefined)?.details?.hitl;
  }

  test.each(["policy", "confirm"])("a batch that CubeLoop suspended (%s) is answered by Everthread", async (gate) => {
    expect(await suspendInPython(TWO_GATES, gate)).toEqual({ outcome: "suspended", executed: [] });
    const first = agentOf();
    const suspended = await first.agent.respond("call_a", { decision: "approve" });
    expect(suspended).toMatchObject({ status: "suspended", pending: { question_id: "call_b" } });
    expect(first.executed).toEqual([]);
    const { agent, executed } = agentOf("Done.");
    const answer = { decision: "edit", edited_args: { path: "/tmp/y" } };
    expect(await agent.respond("call_b", answer)).toMatchObject({ status: "completed" });
    expect(executed.toSorted()).toEqual([
      ["look", "sky"],
      ["note", "one 🧵", "teal"],
      ["remove", "/tmp/y"],
    ]);
    expect((await settledThread()).toSorted()).toEqual([
      "assistant: ",
      "assistant: Done.",
      "tool_result: Noted: one 🧵",
      "tool_result: Removed: /tmp/y",
      "tool_result: Seen: sky",
      "user: Do it.",
    ]);
    expect(await hitlOf("call_a")).toMatchObject({ decision: "human_approve" });
    expect(await hitlOf("call_b")).toEqual({
      decision: "edit",
      original_args: { path: "/tmp/x" },
      edited_args: { path: "/tmp/y" },
    });
    expect(await hitlOf("call_c")).toBeUndefined();
  });

  test("a batch that Everthread suspended is answered by CubeLoop", async () => {
    expect(await suspendHere(TWO_GATES)).toMatchObject({ status: "suspended", pending: { question_id: "call_a" } });
    const first = await respondInPython("call_a", { decision: "approve" });
    expect(first).toEqual({ outcome: "suspended", executed: [] });
    const last = await respondInPython("call_b", { decision: "deny", reason: "keep it" }, "Done.");
    expect(last).toEqual({
      outcome: "complete",
      executed: [
        ["note", "one 🧵", "teal"],
        ["look", "sky"],
      ],
    });
    expect(await settledThread()).toEqual([
      "user: Do it.",
      "assistant: ",
      "tool_result: Noted: one 🧵",
      "tool_result: keep it",
      "tool_result: Seen: sky",
      "assistant: Done.",
    ]);
  });

  test("each answers one gate of a batch: suspended by CubeLoop, then Everthread, then CubeLoop", async () => {
    await suspendInPython(TWO_GATES);
    expect(await agentOf().agent.respond("call_a", { decision: "deny", reason: "no notes" })).toMatchObject({
      status: "suspended",
    });
    const last = await respondInPython("call_b", { decision: "approve" }, "Done.");
    expect(last).toEqual({
      outcome: "complete",
      executed: [
        ["remove", "/tmp/x"],
        ["look", "sky"],
      ],
    });
    await settledThread();
    expect(await hitlOf("call_a")).toEqual({ decision: "human_deny", reason: "no notes" });
  });

  test("each answers one gate of a batch: suspended by Everthread, then CubeLoop, then Everthread", async () => {
    await suspendHere(TWO_GATES);
    await respondInPython("call_a", { decision: "edit", edited_args: { text: "edited" } });
    const { agent, executed } = agentOf("Done.");
    expect(await agent.respond("call_b", { decision: "approve" })).toMatchObject({ status: "completed" });
    expect(executed.toSorted()).toEqual([
      ["look", "sky"],
      ["note", "edited", "teal"],
      ["remove", "/tmp/x"],
    ]);
    await settledThread();
    expect(await hitlOf("call_a")).toMatchObject({ decision: "edit", edited_args: { text: "edited" } });
  });

  test("a question that CubeLoop's agent put is answered by Everthread", async () => {
    await suspendInPython(ASK);
    const pending = await ours.loadPending("t");
    expect(pending).toMatchObject({ runId: RUN, request: { payload: { kind: "ask" } } });
    const { agent } = agentOf("Teal it is.");
    const answer = { colour: "teal", name: "Zoë" };
    expect(await agent.respond(pending?.request.question_id ?? "", answer)).toMatchObject({ status: "completed" });
    expect((await settledThread()).at(-1)).toBe("assistant: Teal it is.");
    expect(await hitlOf("call_q")).toEqual({ kind: "ask", answers: answer });
  });

  test("a question that Everthread's agent put is answered by CubeLoop", async () => {
    const question = questionOf(await suspendHere(ASK));
    const answer = { colour: "teal" };
    const report = await respondInPython(question, answer, "Teal it is.");
    expect(report).toEqual({ outcome: "complete", executed: [] });
    expect((await settledThread()).at(-1)).toBe("assistant: Teal it is.");
    expect(await hitlOf("call_q")).toEqual({ kind: "ask", answers: answer });
  });

  test("the same question twice in a batch: put by Everthread, the first answered by CubeLoop, the second here", async () => {
    const question = questionOf(await suspendHere([...ASK, toolCall("call_r", "ask_user", QUESTIONS)]));
    expect(question).toMatch(/\.0$/);
    const first = await respondInPython(question, { colour: "teal" });
    expect(first).toEqual({ outcome: "suspended", executed: [] });
    const second = (await ours.loadPending("t"))?.request.question_id ?? "";
    expect(second).toBe(question.replace(/0$/, "1"));
    expect(await agentOf("Both.").agent.respond(second, { colour: "red" })).toMatchObject({ status: "completed" });
    await settledThread();
    expect(await hitlOf("call_q")).toEqual({ kind: "ask", answers: { colour: "teal" } });
    expect(await hitlOf("call_r")).toEqual({ kind: "ask", answers: { colour: "red" } });
  });

  test("a gate and a question in one batch: suspended by CubeLoop, then Everthread, then CubeLoop", async () => {
    await suspendInPython([...TWO_GATES.slice(0, 1), ...ASK]);
    const first = agentOf();
    const question = questionOf(await first.agent.respond("call_a", { decision: "approve" }));
    expect(question).toMatch(/^[0-9a-f]{32}\.0$/);
    expect(first.executed).toEqual([]);
    const last = await respondInPython(question, { colour: "teal" }, "Done.");
    expect(last).toEqual({ outcome: "complete", executed: [["note", "one 🧵", "teal"]] });
    await settledThread();
  });

  test("a gate and a question in one batch: suspended by Everthread, then CubeLoop, then Everthread", async () => {
    await suspendHere([...TWO_GATES.slice(0, 1), ...ASK]);
    // CubeLoop runs such a batch call by call: the note is written before the question is put.
    const first = await respondInPython("call_a", { decision: "approve" });
    expect(first).toEqual({ outcome: "suspended", executed: [["note", "one 🧵", "teal"]] });
    const question = (await ours.loadPending("t"))?.request.question_id ?? "";
    const { agent, executed } = agentOf("Done.");
    expect(await agent.respond(question, { colour: "red" })).toMatchObject({ status: "completed" });
    expect(executed).toEqual([]);
    const thread = await settledThread();
    expect(thread.filter((line) => line.startsWith("tool_result: Noted"))).toHaveLength(1);
  });

  test("a question that CubeLoop's process had put before in its run, and numbered on, is found by its text", async () => {
    await suspendInPython(ASK);
    const pending = await ours.loadPending("t");
    if (!pending) throw new Error("nothing is pending");
    const numbered = { ...pending.request, question_id: pending.request.question_id.replace(/0$/, "3") };
    await ours.savePendingRequest("t", numbered, { runId: RUN });
    const answered = await agentOf("Red.").agent.respond(numbered.question_id, { colour: "red" });
    expect(answered).toMatchObject({ status: "completed" });
    await settledThread();
    expect(await hitlOf("call_q")).toEqual({ kind: "ask", answers: { colour: "red" } });
  });

  test("after CubeLoop settled its run the conversation goes on here, and there again", async () => {
    await suspendHere(TWO_GATES.slice(0, 1));
    await respondInPython("call_a", { decision: "approve" }, "Noted.");
    const next = await agentOf("Here.").agent.prompt("And now?", { runId: "run-2" });
    expect(next.status).toBe("completed");
    const report = (await runPython("agent_suspend.py", file, "t", "run-3", "And then?", '["There."]')) as Report;
    expect(report.outcome).toBe("complete");
    const { messages } = (await ours.load("t")) ?? { messages: [] };
    expect(messages.slice(-4).map(textOf)).toEqual(["And now?", "Here.", "And then?", "There."]);
    expect((await ours.listRuns("t")).items.map((run) => run.completionSeq)).toEqual([1, 2, 3]);
  });
});
