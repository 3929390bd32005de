/** Approvals: the policy's word, a person's answer, the ledger of a batch, and who may still answer. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { type ApprovalContext, type ApprovalPolicy, deny } from "../../src/agent/approvals.ts";
import { defineTool } from "../../src/agent/tools.ts";
import { textOf, toolCall } from "../../src/messages/construct.ts";
import type { JsonValue } from "../../src/messages/json.ts";
import { pairToolCalls } from "../../src/messages/pairing.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { failureOf, lines, notingTool, TestFile, THREAD, tool, watched } from "./support.ts";

const CHANGE = [toolCall("c", "change", { to: 1 })];
const BATCH = [toolCall("a", "change"), toolCall("b", "look"), toolCall("c", "change")];
const gateChanges: ApprovalPolicy = ({ toolName }) => (toolName === "change" ? "ask" : "allow");

function setup() {
  const file = new TestFile();
  const change = notingTool("change");
  const look = notingTool("look");
  const ran = () => [...change.ran, ...look.ran].map(({ id }) => id).toSorted();
  const open = (answers: ConstructorParameters<typeof ScriptedModel>[0], approve: ApprovalPolicy = gateChanges) =>
    file.agent(answers, { tools: [change, look], approve });
  return { file, change, look, ran, open };
}

describe("the policy", () => {
  test("is told the tool, the call, its arguments, the run, extra and the thread so far", async () => {
    const { open, file } = setup();
    const seen: ApprovalContext[] = [];
    const agent = await open([CHANGE, "done"], (call) => {
      seen.push({ ...call, messages: [...call.messages] });
      return "allow";
    });
    await agent.prompt("go", { runId: "r" });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      toolName: "change",
      toolCallId: "c",
      arguments: { to: 1 },
      threadId: THREAD,
      runId: "r",
      extra: {},
    });
    expect(seen[0]?.messages).toEqual(file.messages().slice(0, 2));
  });

  test.each<[string, ApprovalPolicy, string]>([
    ["deny", () => "deny", "The policy denied this call."],
    ["deny with a reason", () => deny("no writes"), "The policy denied this call: no writes"],
    [
      "a throw",
      () => {
        throw new Error("no rules loaded");
      },
      "The policy denied this call: the approval policy failed: no rules loaded",
    ],
    [
      "a rejection",
      () => Promise.reject(new Error("gone")),
      "The policy denied this call: the approval policy failed: gone",
    ],
    ["nothing", () => undefined as never, "The policy denied this call: the approval policy gave no decision"],
    ["another word", () => "yes" as never, "The policy denied this call: the approval policy gave no decision"],
    ["true", () => true as never, "The policy denied this call: the approval policy gave no decision"],
    [
      "a question that can't be shown",
      () => ({ decision: "ask", details: { at: new Date() as never } }),
      "The policy denied this call: the approval policy failed: details.at",
    ],
    [
      "a confirmation that is no text",
      () => ({ decision: "ask", confirm: 5 as never }),
      "The policy denied this call: the approval policy gave no decision",
    ],
  ])("that gives %s denies, and nothing runs", async (_name, approve, said) => {
    const { open, ran, file } = setup();
    expect(await (await open([CHANGE, "done"], approve)).prompt("go")).toMatchObject({ status: "completed" });
    expect(ran()).toEqual([]);
    expect(textOf(file.messages()[2] ?? { content: [] })).toContain(said);
    expect(file.messages()[2]).toMatchObject({ is_error: true, details: { hitl: { decision: "policy_deny" } } });
  });

  test("can't change what runs by changing what it is shown", async () => {
    const { open, change } = setup();
    const agent = await open([CHANGE, "done"], (call) => {
      call.arguments.to = 2;
      return "allow";
    });
    await agent.prompt("go");
    expect(change.ran).toEqual([{ id: "c", args: { to: 1 } }]);
  });

  test("decides about the whole batch before any of it runs", async () => {
    const { open, ran } = setup();
    const decided: string[] = [];
    const agent = await open([BATCH, "done"], ({ toolCallId }) => {
      decided.push(`${toolCallId} after ${ran().length}`);
      return toolCallId === "c" ? "ask" : "allow";
    });
    expect(await agent.prompt("go")).toMatchObject({ status: "suspended", pending: { question_id: "c" } });
    expect(decided).toEqual(["a after 0", "b after 0", "c after 0"]);
    expect(ran()).toEqual([]);
  });

  test("is not asked about calls that can't be made", async () => {
    const { open } = setup();
    let asked = 0;
    const calls = [toolCall("x", "nothing"), { ...toolCall("y", "change"), invalid_arguments: "{" }];
    const agent = await open([calls, "done"], () => {
      asked++;
      return "ask";
    });
    expect(await agent.prompt("go")).toMatchObject({ status: "completed" });
    expect(asked).toBe(0);
  });
});

describe("an ask", () => {
  test("saves the request with the arguments as they are and ends the prompt as suspended", async () => {
    const { open, file } = setup();
    const agent = await open([CHANGE], () => ({ decision: "ask", details: { risk: "high" } }));
    const result = await agent.prompt("go", { runId: "r" });
    expect(result).toMatchObject({ status: "suspended", runId: "r", text: "", stopReason: "tool_use" });
    expect(result.pending).toEqual({
      question_id: "c",
      thread_id: THREAD,
      payload: {
        kind: "approve",
        tool_name: "change",
        tool_call_id: "c",
        args: { to: 1 },
        details: { risk: "high" },
      },
      created_at: expect.any(Number),
      timeout_seconds: null,
    });
    expect(await agent.pending()).toEqual({ request: result.pending, runId: "r" });
    expect(await agent.state()).toBe("awaiting_answer");
    expect(file.query("SELECT run_id FROM thread_pending_request")).toEqual([{ run_id: "r" }]);
  });

  test("where nothing is stored and nobody is there is refused, nothing runs, and the conversation goes on", async () => {
    const change = notingTool("change");
    const model = new ScriptedModel([CHANGE, "later"]);
    const agent = new Agent({ model, tools: [change], approve: () => "ask" });
    expect(await failureOf(agent.prompt("go"))).toMatchObject({ code: "hitl_unavailable" });
    expect(change.ran).toEqual([]);
    expect(await agent.prompt("and now?")).toMatchObject({ status: "completed", text: "later" });
    expect(lines(model.requests[1]?.messages ?? []).map((one) => one.split(" ")[0])).toEqual([
      "user",
      "assistant",
      "tool_result",
      "user",
    ]);
  });

  test("L24 leaves the thread waiting: a prompt is refused, and neither repairs nor claims anything", async () => {
    const { open, file } = setup();
    await (await open([CHANGE])).prompt("go", { runId: "r" });
    const before = [
      file.messages(),
      file.query("SELECT * FROM thread_pending_request"),
      file.query("SELECT * FROM runs"),
    ];
    const other = await open(["never"]);
    expect(await failureOf(other.prompt("hello?"))).toMatchObject({ code: "hitl_pending", questionId: "c" });
    expect([
      file.messages(),
      file.query("SELECT * FROM thread_pending_request"),
      file.query("SELECT * FROM runs"),
    ]).toEqual(before);
    expect(await (await open(["done"])).respond("c", { decision: "approve" })).toMatchObject({ status: "completed" });
  });
});

describe("an answer", () => {
  test("H3 H4 given in another agent runs the call: call and result are there once, side by side", async () => {
    const { open, file, change } = setup();
    await (await open([CHANGE])).prompt("go", { runId: "r" });
    const result = await (await open(["done"])).respond("c", { decision: "approve" });
    expect(result).toMatchObject({ status: "completed", runId: "r", text: "done" });
    expect(change.ran).toEqual([{ id: "c", args: { to: 1 } }]);
    expect(lines(file.messages())).toEqual([
      "user go",
      "assistant change(c)",
      "tool_result c change did c",
      "assistant done",
    ]);
    expect(file.messages().map(({ run_id }) => run_id)).toEqual(["r", "r", "r", "r"]);
    expect(file.messages()[2]).toMatchObject({ details: { hitl: { decision: "human_approve" } } });
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
    expect(file.query("SELECT * FROM thread_pending_request")).toEqual([]);
    expect(file.query("SELECT completion_seq FROM runs")).toEqual([{ completion_seq: 1 }]);
  });

  test.each<[string, JsonValue, JsonValue]>([
    ["none", null, { hitl: { decision: "human_approve" } }],
    ["an object", { n: 1 }, { n: 1, hitl: { decision: "human_approve" } }],
    ["anything else", [1], { _non_dict_details: [1], hitl: { decision: "human_approve" } }],
  ])("is on record beside the tool's details: %s", async (_what, details, recorded) => {
    const file = new TestFile();
    const tools = [tool("change", () => ({ content: "ok", details }))];
    const agent = await file.agent([CHANGE, "done"], { tools, approve: () => "ask" });
    await agent.prompt("go");
    await agent.respond("c", { decision: "approve" });
    expect(file.messages()[2]).toMatchObject({ content: [{ text: "ok" }], details: recorded });
  });

  test("deny is told to the model, with the reason", async () => {
    const { open, file, ran } = setup();
    const agent = await open([CHANGE, "a pity"]);
    await agent.prompt("go");
    await agent.respond("c", { decision: "deny", reason: "not on a Friday" });
    expect(ran()).toEqual([]);
    expect(lines(file.messages()).slice(2)).toEqual([
      "tool_result c error The user denied this call: not on a Friday",
      "assistant a pity",
    ]);
    expect(file.messages()[2]).toMatchObject({
      details: { hitl: { decision: "human_deny", reason: "not on a Friday" } },
    });
  });

  test("edit runs the call with other arguments, and both are on record", async () => {
    const { open, file, change } = setup();
    const agent = await open([CHANGE, "done"]);
    await agent.prompt("go");
    await agent.respond("c", { decision: "edit", edited_args: { to: 2 } });
    expect(change.ran).toEqual([{ id: "c", args: { to: 2 } }]);
    expect(file.messages()[1]?.content).toEqual(CHANGE);
    expect(file.messages()[2]).toMatchObject({
      details: { hitl: { decision: "edit", original_args: { to: 1 }, edited_args: { to: 2 } } },
    });
  });

  test("edit must fit the tool's schema, else nothing is recorded and it can be given again", async () => {
    const file = new TestFile();
    const seen: unknown[] = [];
    const set = defineTool({
      name: "set",
      description: "Sets a number.",
      parameters: z.object({ to: z.number() }),
      execute: (args) => {
        seen.push(args);
        args.to = 99;
        return "set";
      },
    });
    const agent = await file.agent([[toolCall("c", "set", { to: 1 })], "done"], { tools: [set], approve: () => "ask" });
    await agent.prompt("go");
    for (const edited_args of [{ to: "two" }, {}, null, [2], "x"]) {
      const answer = agent.respond("c", { decision: "edit", edited_args });
      expect(await failureOf(answer)).toMatchObject({ code: "hitl_invalid_answer" });
    }
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
    expect(seen).toEqual([]);
    const answer = { decision: "edit", edited_args: { to: 2 } };
    expect(await agent.respond("c", answer)).toMatchObject({ status: "completed" });
    expect(seen).toHaveLength(1);
    expect(answer).toEqual({ decision: "edit", edited_args: { to: 2 } });
    expect(file.messages()[2]).toMatchObject({ details: { hitl: { edited_args: { to: 2 } } } });
  });

  test.each<[JsonValue]>([[false], [null], [""], [0], [{}], [{ decision: "perhaps" }], [["approve"]]])(
    "H13 %j is no answer to an approval: refused with nothing written",
    async (answer) => {
      const { open, file, ran } = setup();
      const agent = await open([CHANGE, "done"]);
      await agent.prompt("go");
      expect(await failureOf(agent.respond("c", answer))).toMatchObject({ code: "hitl_invalid_answer" });
      expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
      expect(ran()).toEqual([]);
      expect(await agent.respond("c", { decision: "approve" })).toMatchObject({ status: "completed" });
    },
  );

  test("H13 that is not JSON is refused with its path", async () => {
    const { open } = setup();
    const agent = await open([CHANGE, "done"]);
    await agent.prompt("go");
    const answer = { decision: "edit", edited_args: { to: 1n } } as never;
    expect(await failureOf(agent.respond("c", answer))).toMatchObject({ path: "answer.edited_args.to" });
    expect(await agent.respond("c", { decision: "approve" })).toMatchObject({ status: "completed" });
  });

  test("H13 to an unknown question, to none, and to a thread that is not there, is a typed error", async () => {
    const { open, file } = setup();
    const agent = await open([CHANGE, "done"]);
    expect(await failureOf(agent.respond("c", { decision: "approve" }))).toMatchObject({
      code: "hitl_no_pending_request",
    });
    await agent.prompt("go");
    for (const id of ["x", "", "C", undefined as never]) {
      expect(await failureOf(agent.respond(id, { decision: "approve" }))).toMatchObject({ code: "hitl_stale_answer" });
    }
    await (await file.open()).deleteThread(THREAD);
    expect(await failureOf(agent.respond("c", { decision: "approve" }))).toMatchObject({
      code: "hitl_no_pending_request",
    });
    expect(file.messages()).toEqual([]);
  });

  test("given twice is stale the second time", async () => {
    const { open, ran } = setup();
    const agent = await open([CHANGE, "done"]);
    await agent.prompt("go");
    await agent.respond("c", { decision: "approve" });
    expect(await failureOf(agent.respond("c", { decision: "approve" }))).toMatchObject({
      code: "hitl_no_pending_request",
    });
    expect(ran()).toEqual(["c"]);
  });

  test("of two simultaneous ones one wins, the other is stale, and the tool runs once", async () => {
    for (let round = 0; round < 5; round++) {
      const { open, ran, file } = setup();
      await (await open([CHANGE])).prompt("go");
      const agents = await Promise.all([open(["one"]), open(["two"]), open(["three"])]);
      const outcomes = await Promise.allSettled(agents.map((agent) => agent.respond("c", { decision: "approve" })));
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const outcome of outcomes) {
        if (outcome.status === "fulfilled") continue;
        expect(["hitl_stale_answer", "hitl_no_pending_request"]).toContain(outcome.reason.code);
      }
      expect(ran()).toEqual(["c"]);
      expect(pairToolCalls(file.messages())).toMatchObject({ orphans: [], duplicates: [] });
      expect(file.messages()).toHaveLength(4);
    }
  });

  test.each(["load", "answerPending"])("that comes while another one is taken (before %s) is stale", async (point) => {
    const { open, ran, file, change } = setup();
    await (await open([CHANGE])).prompt("go");
    const first = await open(["done"]);
    const { checkpointer } = watched(await file.open(), async (method) => {
      if (method === point) await first.respond("c", { decision: "approve" });
    });
    const late = await file.agent(["never"], { checkpointer, tools: [change], approve: gateChanges });
    expect(await failureOf(late.respond("c", { decision: "approve" }))).toMatchObject({ code: "hitl_stale_answer" });
    expect(ran()).toEqual(["c"]);
  });

  test("in an agent that lacks the tool is refused, and the request stays", async () => {
    const { open, file } = setup();
    await (await open([CHANGE])).prompt("go");
    const without = await file.agent(["never"]);
    expect(await failureOf(without.respond("c", { decision: "approve" }))).toMatchObject({ code: "hitl_mismatch" });
    expect(await (await open(["done"])).respond("c", { decision: "approve" })).toMatchObject({ status: "completed" });
  });
});

describe("the ledger", () => {
  test("keeps answers until each gate of the batch is satisfied, in any process; then the batch runs once", async () => {
    const { open, file, ran } = setup();
    expect(await (await open([BATCH])).prompt("go", { runId: "r" })).toMatchObject({ pending: { question_id: "a" } });
    const half = await (await open([])).respond("a", { decision: "approve" });
    expect(half).toMatchObject({ status: "suspended", runId: "r", pending: { question_id: "c" }, messages: [] });
    expect(ran()).toEqual([]);
    expect(file.query("SELECT run_id, question_id FROM thread_hitl_answers")).toEqual([
      { run_id: "r", question_id: "a" },
    ]);
    const whole = await (await open(["done"])).respond("c", { decision: "deny" });
    expect(whole).toMatchObject({ status: "completed", text: "done" });
    expect(ran()).toEqual(["a", "b"]);
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
    expect(lines(file.messages()).slice(2, 5).toSorted()).toEqual([
      "tool_result a change did a",
      "tool_result b look did b",
      "tool_result c error The user denied this call.",
    ]);
  });

  test("does not answer the same call of a later turn", async () => {
    const { open, ran } = setup();
    const agent = await open([[toolCall("call_0", "change")], [toolCall("call_0", "change")], "done"]);
    await agent.prompt("go");
    const second = await agent.respond("call_0", { decision: "approve" });
    expect(second).toMatchObject({ status: "suspended", pending: { question_id: "call_0" } });
    expect(ran()).toEqual(["call_0"]);
    expect(await agent.respond("call_0", { decision: "approve" })).toMatchObject({ status: "completed" });
    expect(ran()).toEqual(["call_0", "call_0"]);
  });

  test("of a request from before runs existed is kept as well, and what follows is a run of its own", async () => {
    const { open, file, ran } = setup();
    await (await open([BATCH])).prompt("go", { runId: "r" });
    file.query("DELETE FROM runs");
    file.query("UPDATE thread_pending_request SET run_id = NULL");
    file.query("UPDATE messages SET run_id = NULL, message_json = json_set(message_json, '$.run_id', NULL)");
    const agent = await open(["done"]);
    const half = await agent.respond("a", { decision: "approve" }, { onPending: () => ({ decision: "approve" }) });
    expect(half).toMatchObject({ status: "suspended", pending: { question_id: "c" } });
    const whole = await agent.respond("c", { decision: "approve" });
    expect(whole).toMatchObject({ status: "completed", text: "done" });
    expect(ran()).toEqual(["a", "b", "c"]);
    expect(file.query("SELECT run_id FROM runs WHERE completion_seq = 1")).toEqual([{ run_id: whole.runId }]);
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
  });
});

describe("a confirmation", () => {
  const confirming: ApprovalPolicy = ({ arguments: args }) => ({
    decision: "ask",
    confirm: `Change it to ${String(args.to)}?`,
    details: { n: 1 },
  });

  test.each([true, false])("takes %j", async (answer) => {
    const { open, ran, file } = setup();
    const { pending } = await (await open([CHANGE], confirming)).prompt("go");
    expect(pending?.payload).toMatchObject({ kind: "confirm", prompt: "Change it to 1?", details: { n: 1 } });
    const agent = await open(["done"], confirming);
    for (const wrong of ["yes", null, 1, { decision: "approve" }]) {
      expect(await failureOf(agent.respond("c", wrong))).toMatchObject({ code: "hitl_invalid_answer" });
    }
    expect(await agent.respond("c", answer)).toMatchObject({ status: "completed" });
    expect(ran()).toEqual(answer ? ["c"] : []);
    expect(file.messages()[2]).toMatchObject({ is_error: !answer });
  });

  test("H7 holds for exactly the arguments it was asked for", async () => {
    const { open, file, ran } = setup();
    await (await open([CHANGE], confirming)).prompt("go");
    file.query("UPDATE messages SET message_json = replace(message_json, '\"to\":1', '\"to\":2')");
    const agent = await open(["never"], () => ({ decision: "ask", confirm: "Change it?" }));
    expect(await failureOf(agent.respond("c", true))).toMatchObject({ code: "hitl_mismatch" });
    expect(ran()).toEqual([]);
  });
});

test("a tool is run again only where a person says so: an approved call whose process died is not", async () => {
  const file = new TestFile();
  const started = Promise.withResolvers<void>();
  const never = tool("change", () => {
    started.resolve();
    return new Promise<string>(() => {});
  });
  const dying = await file.agent([CHANGE], { tools: [never], approve: () => "ask" });
  await dying.prompt("go", { runId: "r" });
  void dying.respond("c", { decision: "approve" });
  await started.promise;
  const change = notingTool("change");
  const next = await file.agent(["I see"], { tools: [change], approve: () => "ask" });
  expect(await failureOf(next.respond("c", { decision: "approve" }))).toMatchObject({
    code: "hitl_no_pending_request",
  });
  expect(await next.prompt("and?")).toMatchObject({ status: "completed" });
  expect(change.ran).toEqual([]);
  expect(file.messages()[2]).toMatchObject({ tool_call_id: "c", is_error: true, run_id: "r" });
  expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
});
