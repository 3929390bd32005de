/** Threads that were left in the middle, by a crash or by other programs: what the next prompt makes of them. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import {
  assistantMessage,
  text,
  thinking,
  toolCall,
  toolResultMessage,
  userMessage,
} from "../../src/messages/construct.ts";
import type { AssistantBlock, Message } from "../../src/messages/schema.ts";
import { UNKNOWN_OUTCOME } from "../../src/messages/view.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { lines, notingTool, TestFile, THREAD } from "./support.ts";

const THREE = [toolCall("a", "change"), toolCall("b", "change"), toolCall("c", "change")];

/** A thread as a program left it, and an agent that goes on with it. */
async function left(messages: Message[], runs: { open?: string[]; completed?: string[] } = {}) {
  const file = new TestFile();
  const store = await file.open();
  for (const id of [...(runs.open ?? []), ...(runs.completed ?? [])]) await store.claimRun(THREAD, id);
  await store.append(THREAD, messages);
  for (const id of runs.completed ?? []) await store.markRunComplete(THREAD, id);
  const change = notingTool("change");
  const model = new ScriptedModel(["I see.", "Yes."]);
  return { file, change, model, agent: await file.agent([], { model, tools: [change] }) };
}

const sent = (model: ScriptedModel, n = 0) => lines(model.requests[n]?.messages ?? []);

describe("M1 a crash between call and result", () => {
  const log = (runId: string) => [
    userMessage("go", { run_id: runId }),
    assistantMessage(THREE, { run_id: runId, stop_reason: "tool_use" }),
    toolResultMessage({ id: "b", name: "change" }, "changed b", { run_id: runId }),
  ];

  test("the next prompt first says that the outcome is unknown, stamped with the old run; nothing runs again", async () => {
    const { file, agent, change, model } = await left(log("old"), { open: ["old"] });
    expect(await agent.state()).toBe("awaiting_results");
    expect(await agent.prompt("and?", { runId: "new" })).toMatchObject({ status: "completed" });
    expect(change.ran).toEqual([]);
    expect(lines(file.messages())).toEqual([
      "user go",
      "assistant change(a) change(b) change(c)",
      "tool_result b changed b",
      `tool_result a error ${UNKNOWN_OUTCOME}`,
      `tool_result c error ${UNKNOWN_OUTCOME}`,
      "user and?",
      "assistant I see.",
    ]);
    expect(file.messages().map(({ run_id }) => run_id)).toEqual([...Array(5).fill("old"), "new", "new"]);
    expect(sent(model)).toEqual([
      "user go",
      "assistant change(a) change(b) change(c)",
      `tool_result a error ${UNKNOWN_OUTCOME}`,
      "tool_result b changed b",
      `tool_result c error ${UNKNOWN_OUTCOME}`,
      "user and?",
    ]);
    expect(file.query("SELECT run_id FROM runs WHERE completion_seq IS NOT NULL")).toEqual([{ run_id: "new" }]);
    expect(await agent.state()).toBe("complete");
  });

  test("is repaired once", async () => {
    const { file, agent } = await left(log("old"), { open: ["old"] });
    await agent.prompt("and?");
    await agent.prompt("sure?");
    expect(file.messages().filter(({ role }) => role === "tool_result")).toHaveLength(3);
  });

  test("of a run that has an answer on record forgets the answer", async () => {
    const { file, agent } = await left(log("old"), { open: ["old"] });
    const store = await file.open();
    await store.saveHitlAnswer(THREAD, "a", { decision: "approve" }, { runId: "old" });
    await store.saveHitlAnswer(THREAD, "a", { decision: "approve" }, { runId: "other" });
    await agent.prompt("and?");
    expect(file.query("SELECT run_id FROM thread_hitl_answers")).toEqual([{ run_id: "other" }]);
  });

  test.each([
    ["before runs existed", null],
    ["in a run that was never claimed", "unclaimed"],
  ])("%s is repaired as well", async (_when, runId) => {
    const { file, agent } = await left([...log("x").map((message) => ({ ...message, run_id: runId }))]);
    await agent.prompt("and?");
    expect(
      file
        .messages()
        .map(({ run_id }) => run_id ?? null)
        .slice(0, 5),
    ).toEqual(Array(5).fill(runId));
  });

  test.each([
    ["completed", "old", { completed: ["old"] }],
    ["named by an id that is none", "", {}],
    ["named by an id that is too long for a new run", "x".repeat(200), {}],
  ])("in a run that is %s is left as it is, and answered in what the model is sent", async (_what, runId, runs) => {
    const { file, agent, model } = await left([userMessage("hello")], runs);
    const insert = "INSERT INTO messages (thread_id, message_json, run_id) VALUES (?, ?, ?)";
    for (const message of log(runId)) file.query(insert, THREAD, JSON.stringify(message), runId);
    for (const n of [0, 1]) {
      expect(await agent.prompt("and?")).toMatchObject({ status: "completed" });
      expect(sent(model, n).filter((one) => one.endsWith(UNKNOWN_OUTCOME))).toHaveLength(2);
    }
    expect(file.messages().filter(({ role }) => role === "tool_result")).toHaveLength(1);
    expect(await agent.state()).toBe("complete");
  });

  test("calls in the middle of the log are answered after it, and sent beside their calls", async () => {
    const { file, agent, model } = await left(
      [
        userMessage("one", { run_id: "r1" }),
        assistantMessage([toolCall("a", "change")], { run_id: "r1" }),
        userMessage("two", { run_id: "r2" }),
        assistantMessage([toolCall("a", "change")], { run_id: "r2" }),
        toolResultMessage({ id: "a", name: "change" }, "changed", { run_id: "r2" }),
        assistantMessage("fine", { run_id: "r2" }),
      ],
      { open: ["r1"], completed: ["r2"] },
    );
    expect(await agent.state()).toBe("complete");
    await agent.prompt("three");
    expect(file.messages()[6]).toMatchObject({ role: "tool_result", tool_call_id: "a", run_id: "r1", is_error: true });
    expect(sent(model)).toEqual([
      "user one",
      "assistant change(a)",
      `tool_result a error ${UNKNOWN_OUTCOME}`,
      "user two",
      "assistant change(a_2)",
      "tool_result a_2 changed",
      "assistant fine",
      "user three",
    ]);
  });

  test("without a store the conversation goes on too", async () => {
    const model = new ScriptedModel([THREE, "later"]);
    const agent = new Agent({ model, tools: [notingTool("change")], approve: () => "ask" });
    await expect(agent.prompt("go")).rejects.toMatchObject({ code: "hitl_unavailable" });
    expect(await agent.prompt("and?")).toMatchObject({ status: "completed" });
    expect(lines(agent.messages)).toEqual([
      "user go",
      "assistant change(a) change(b) change(c)",
      ...["a", "b", "c"].map((id) => `tool_result ${id} error ${UNKNOWN_OUTCOME}`),
      "user and?",
      "assistant later",
    ]);
  });
});

describe("M17 where a thread stands", () => {
  const user = userMessage("go");
  test.each<[string, Message[], string]>([
    ["an answer", [user, assistantMessage("done")], "complete"],
    ["a partial answer", [user, assistantMessage("do", { stop_reason: "aborted" })], "partial"],
    ["a failed answer", [user, assistantMessage([], { stop_reason: "error" })], "partial"],
    ["a user's message", [user], "awaiting_model"],
    [
      "a result without an answer to it",
      [user, assistantMessage([toolCall("a", "x")]), toolResultMessage({ id: "a", name: "x" }, "r")],
      "awaiting_model",
    ],
    ["a call", [user, assistantMessage([toolCall("a", "x")])], "awaiting_results"],
    [
      "a call of an older turn",
      [user, assistantMessage([toolCall("a", "x")]), user, assistantMessage("y")],
      "complete",
    ],
  ])("that ends with %s", async (_what, messages, state) => {
    const { agent } = await left(messages);
    expect(await agent.state()).toBe(state);
    expect(await agent.prompt("go on")).toMatchObject({ status: "completed" });
    expect(await agent.state()).toBe("complete");
  });

  test("that is empty", async () => {
    const checkpointer = new MemoryCheckpointer();
    const agent = new Agent({ model: new ScriptedModel([]), checkpointer, threadId: THREAD });
    expect(await agent.state()).toBe("empty");
    expect((await checkpointer.listThreads()).items).toEqual([]);
  });
});

describe("logs of other programs", () => {
  test("M2 results without a call are kept and never sent", async () => {
    const orphan = (id: string) => toolResultMessage({ id, name: "x" }, `orphan ${id}`);
    const { file, agent, model } = await left([
      orphan("a"),
      userMessage("one"),
      orphan("b"),
      assistantMessage("fine"),
      orphan("c"),
    ]);
    await agent.prompt("two");
    expect(file.messages()).toHaveLength(7);
    expect(sent(model)).toEqual(["user one", "assistant fine", "user two"]);
  });

  test("M5 ten turns with one call id are sent with ids of their own, each with its own result", async () => {
    const turns = Array.from({ length: 10 }, (_, n) => [
      assistantMessage([toolCall("call_0", "x", { n })]),
      toolResultMessage({ id: "call_0", name: "x" }, `result ${n}`),
    ]).flat();
    const { agent, model } = await left([userMessage("go"), ...turns, assistantMessage("done")]);
    await agent.prompt("more");
    const { messages = [] } = model.requests[0] ?? {};
    const ids = messages.flatMap((message) => (message.role === "tool_result" ? message.tool_call_id : []));
    expect(new Set(ids).size).toBe(10);
    for (let n = 0; n < 10; n++) {
      const [call, result] = messages.slice(1 + 2 * n, 3 + 2 * n);
      expect(call?.content).toEqual([toolCall(ids[n] ?? "", "x", { n })]);
      expect(result).toMatchObject({ tool_call_id: ids[n], content: [text(`result ${n}`)] });
    }
  });

  test("M8 blank text is left out of what is sent, also in old rows, and nothing else moves", async () => {
    const blank = [text(""), toolCall("a", "x"), text(" \n"), toolCall("b", "x")];
    const { file, agent, model } = await left([
      userMessage([text(" ")]),
      userMessage([text("go"), text("")]),
      assistantMessage(blank),
      toolResultMessage({ id: "a", name: "x" }, ""),
      toolResultMessage({ id: "b", name: "x" }, "r"),
      assistantMessage([text(" \n")]),
    ]);
    await agent.prompt("more");
    expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual([
      [text("go")],
      [toolCall("a", "x"), toolCall("b", "x")],
      [],
      [text("r")],
      [text("more")],
    ]);
    expect(file.messages()[2]?.content).toEqual(blank);
  });

  test.each([["null"], ['""'], ["[]"]])(
    "M9 rows whose content is %s load, and the conversation goes on",
    async (content) => {
      const { file, agent, model } = await left([userMessage("one")]);
      const insert = "INSERT INTO messages (thread_id, message_json) VALUES (?, ?)";
      file.query(insert, THREAD, `{"role":"assistant","content":${content},"stop_reason":"error","error_message":"x"}`);
      file.query(insert, THREAD, `{"role":"user","content":${content}}`);
      expect(await agent.prompt("two")).toMatchObject({ status: "completed", text: "I see." });
      expect(sent(model)).toEqual(["user one", "user two"]);
    },
  );

  test("M10 thinking, signatures and provider data are sent after a reload byte for byte as they came", async () => {
    const answer: AssistantBlock[] = [
      { ...thinking("first e\u0301 \n"), provider_options: { anthropic: { signature: "ab+/cd==" } } },
      text("Looking."),
      { ...thinking(""), provider_options: { anthropic: { redacted: "x".repeat(5000) } } },
      { ...toolCall("a", "change", { zeta: 1, a: 2, "10": 3, "2": 4 }), provider_options: { x: { n: [null, "", 0] } } },
      { type: "video_v9", foo: 1 } as never,
    ];
    const file = new TestFile();
    const tools = [notingTool("change")];
    const first = new ScriptedModel([answer, "done"]);
    const agent = await file.agent([], { model: first, tools });
    await agent.prompt("go", { runId: "r1" });
    await agent.fork("copy", { afterRunId: "r1" });
    const bytes = JSON.stringify(answer);
    expect(JSON.stringify(first.requests[1]?.messages[1]?.content)).toBe(bytes);
    for (const threadId of [THREAD, "copy"]) {
      const model = new ScriptedModel(["ok"]);
      await (await file.agent([], { model, tools, threadId })).prompt("more");
      expect(JSON.stringify(model.requests[0]?.messages[1]?.content)).toBe(bytes);
      expect(JSON.stringify(model.requests[0]?.messages.slice(0, 3))).toBe(
        JSON.stringify(first.requests[1]?.messages.slice(0, 3)),
      );
    }
  });

  test("M15 an unknown block survives an approval and the turns after it", async () => {
    const block = { type: "video_v9", foo: { bar: [1] } } as never;
    const file = new TestFile();
    const tools = [notingTool("change")];
    const agent = await file.agent([[block, toolCall("a", "change")]], { tools, approve: () => "ask" });
    await agent.prompt([userMessage([text("see"), block])]);
    await (await file.agent(["done"], { tools })).respond("a", { decision: "approve" });
    expect(file.messages()[0]?.content).toEqual([text("see"), block]);
    expect(file.messages()[1]?.content).toEqual([block, toolCall("a", "change")]);
  });

  test("a damaged row is named, nothing is written, and it is no silent gap", async () => {
    const { file, agent } = await left([userMessage("one"), assistantMessage("two")]);
    file.query("UPDATE messages SET message_json = '{\"role\":' WHERE id = 2");
    await expect(agent.prompt("three")).rejects.toMatchObject({
      code: "checkpoint_corruption",
      rowRef: "messages.id=2",
    });
    expect(file.query("SELECT * FROM runs")).toEqual([]);
    expect(file.query("SELECT * FROM messages")).toHaveLength(2);
  });
});
