/** What an answer is good for: one call, in one run, with exactly the arguments that were shown. */
import { describe, expect, test } from "vitest";
import type { ApprovalPolicy } from "../../src/agent/approvals.ts";
import { toolCall } from "../../src/messages/construct.ts";
import type { AssistantBlock } from "../../src/messages/schema.ts";
import type { ScriptedAnswer } from "../../src/model/scripted.ts";
import { failureOf, lines, notingTool, TestFile, THREAD } from "./support.ts";

const APPROVE = { decision: "approve" };

function setup(approve: ApprovalPolicy = () => "ask") {
  const file = new TestFile();
  const change = notingTool("change");
  const open = (...answers: ScriptedAnswer[]) => file.agent(answers, { tools: [change], approve });
  return { file, change, open };
}

describe("H7 an approval holds for exactly the stored arguments", () => {
  test("changing the object that held them changes nothing", async () => {
    const { open, change } = setup();
    const call = toolCall("c", "change", { path: "/tmp", deep: { n: [1] } });
    const agent = await open([call], "done");
    const { pending } = await agent.prompt("go");
    call.arguments.path = "/etc";
    const payload = pending?.payload;
    if (payload?.kind === "approve") payload.args.path = "/usr";
    await agent.respond("c", APPROVE);
    expect(change.ran).toEqual([{ id: "c", args: { path: "/tmp", deep: { n: [1] } } }]);
  });

  test.each([
    ["the thread", `UPDATE messages SET message_json = replace(message_json, '/tmp', '/etc')`],
    ["the request", `UPDATE thread_pending_request SET request_json = replace(request_json, '/tmp', '/etc')`],
    [
      "the tool's name",
      `UPDATE messages SET message_json = replace(message_json, '"name":"change"', '"name":"other"')`,
    ],
    ["the id", `UPDATE messages SET message_json = replace(message_json, '"id":"c"', '"id":"d"')`],
  ])("when %s was changed before the answer, it is refused, and can be closed", async (_what, sql) => {
    const { open, change, file } = setup();
    await (await open([toolCall("c", "change", { path: "/tmp" })])).prompt("go");
    file.query(sql);
    const agent = await open("later");
    for (const answer of [APPROVE, { decision: "edit", edited_args: { path: "/tmp" } }]) {
      expect(await failureOf(agent.respond("c", answer))).toMatchObject({ code: "hitl_mismatch" });
    }
    expect(change.ran).toEqual([]);
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
    expect(await agent.abortPending()).toMatchObject({ status: "aborted" });
    expect(await agent.prompt("go on")).toMatchObject({ status: "completed" });
  });

  test("the order of keys is not a change", async () => {
    const { open, change, file } = setup();
    await (await open([toolCall("c", "change", { a: 1, b: 2 })])).prompt("go");
    file.query(
      `UPDATE thread_pending_request SET request_json = replace(request_json, '{"a":1,"b":2}', '{"b":2,"a":1}')`,
    );
    expect(await (await open("done")).respond("c", APPROVE)).toMatchObject({ status: "completed" });
    expect(change.ran).toHaveLength(1);
  });

  test("text that looks like a reference is text", async () => {
    const { open, change } = setup();
    const agent = await open([toolCall("c", "change", { to: "{{ref}}", also: "$(HOME)" })], "done");
    await agent.prompt("go");
    await agent.respond("c", APPROVE);
    expect(change.ran[0]?.args).toEqual({ to: "{{ref}}", also: "$(HOME)" });
  });

  test("as a hook has changed them, and only if it changes them so again", async () => {
    const file = new TestFile();
    const change = notingTool("change");
    let suffix = "!";
    const agent = await file.agent([[toolCall("c", "change", { to: "a" })], "done"], {
      tools: [change],
      approve: () => "ask",
      middleware: [{ beforeToolCall: (call) => ({ arguments: { to: `${String(call.arguments.to)}${suffix}` } }) }],
    });
    const { pending } = await agent.prompt("go");
    expect(pending?.payload).toMatchObject({ args: { to: "a!" } });
    suffix = "?";
    expect(await failureOf(agent.respond("c", APPROVE))).toMatchObject({ code: "hitl_mismatch" });
    suffix = "!";
    await agent.respond("c", APPROVE);
    expect(change.ran).toEqual([{ id: "c", args: { to: "a!" } }]);
  });
});

describe("several calls alike", () => {
  const three = ["a", "b", "c"].map((id) => toolCall(id, "change", { to: 1 }));

  test("H1 three identical parallel calls are three questions, each answered for itself", async () => {
    const { open, change, file } = setup();
    expect(await (await open(three)).prompt("go")).toMatchObject({ pending: { question_id: "a" } });
    expect(await (await open()).respond("a", APPROVE)).toMatchObject({ pending: { question_id: "b" } });
    expect(await (await open()).respond("b", { decision: "deny" })).toMatchObject({ pending: { question_id: "c" } });
    const edit = { decision: "edit", edited_args: { to: 3 } };
    expect(await (await open("done")).respond("c", edit)).toMatchObject({ status: "completed" });
    expect(change.ran).toEqual([
      { id: "a", args: { to: 1 } },
      { id: "c", args: { to: 3 } },
    ]);
    expect(lines(file.messages()).slice(2, 5).toSorted()).toEqual([
      "tool_result a change did a",
      "tool_result b error The user denied this call.",
      "tool_result c change did c",
    ]);
  });

  // A thread waits on one question at a time, so an answer to another one is stale and is not recorded.
  test("H1 L21 an answer to the second, while the first waits, leaves the first waiting", async () => {
    const { open, change, file } = setup();
    const agent = await open(three, "done");
    await agent.prompt("go");
    expect(await failureOf(agent.respond("b", APPROVE))).toMatchObject({ code: "hitl_stale_answer" });
    expect(await agent.pending()).toMatchObject({ request: { question_id: "a" } });
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
    expect(change.ran).toEqual([]);
  });

  test("calls of one id in one batch are asked about apart, and each result is its own call's", async () => {
    const { open, change, file } = setup();
    const twins = [toolCall("x", "change", { to: 1 }), toolCall("x", "change", { to: 2 })];
    const first = await (await open(twins)).prompt("go");
    expect(first.pending).toMatchObject({ question_id: "x", payload: { tool_call_id: "x", args: { to: 1 } } });
    const second = await (await open()).respond("x", { decision: "deny" });
    expect(second.pending).toMatchObject({ question_id: "x#2", payload: { tool_call_id: "x", args: { to: 2 } } });
    expect(await (await open("done")).respond("x#2", APPROVE)).toMatchObject({ status: "completed" });
    expect(change.ran).toEqual([{ id: "x", args: { to: 2 } }]);
    expect(lines(file.messages()).slice(2)).toEqual([
      "tool_result x error The user denied this call.",
      "tool_result x change did x",
      "assistant done",
    ]);
  });

  test("a call id that looks like a numbered one is told apart as well", async () => {
    const { open } = setup();
    const calls = [toolCall("x", "change"), toolCall("x", "change"), toolCall("x#2", "change")];
    const asked: unknown[] = [];
    let { pending, status } = await (await open(calls)).prompt("go");
    while (pending) {
      asked.push(pending.question_id);
      ({ pending, status } = await (await open("done")).respond(pending.question_id, APPROVE));
    }
    expect(status).toBe("completed");
    expect(asked).toEqual(["x", "x#2", "x#2#2"]);
  });

  test.each([
    ["empty", ""],
    ["too long", "x".repeat(300)],
    ["with U+0000", "a\0b"],
  ])("a call whose id is %s can be approved too", async (_what, id) => {
    const { open, change, file } = setup();
    const calls: AssistantBlock[] = [toolCall(id, "change", { n: 1 }), toolCall(id, "change", { n: 2 })];
    const first = await (await open(calls)).prompt("go");
    expect(first).toMatchObject({ status: "suspended", pending: { payload: { tool_call_id: id } } });
    const second = await (await open()).respond(String(first.pending?.question_id), APPROVE);
    expect(second.status).toBe("suspended");
    const done = await (await open("done")).respond(String(second.pending?.question_id), APPROVE);
    expect(done.status).toBe("completed");
    expect(change.ran.map(({ args }) => args)).toEqual([{ n: 1 }, { n: 2 }]);
    expect(file.messages()[1]?.content).toEqual(calls);
  });

  test("M5 call ids reused in every turn of one run: each approval is for its own turn", async () => {
    const { open, change, file } = setup();
    const turns = Array.from({ length: 10 }, (_, n) => [toolCall("call_0", "change", { n })]);
    let { status, pending } = await (await open(...turns.slice(0, 1))).prompt("go", { runId: "r" });
    for (let n = 0; n < 10; n++) {
      expect(pending?.payload).toMatchObject({ tool_call_id: "call_0", args: { n } });
      const agent = await open(turns[n + 1] ?? "done");
      ({ status, pending } = await agent.respond("call_0", APPROVE));
    }
    expect(status).toBe("completed");
    expect(change.ran).toEqual(Array.from({ length: 10 }, (_, n) => ({ id: "call_0", args: { n } })));
    expect(file.messages()).toHaveLength(22);
    expect(new Set(file.messages().map(({ run_id }) => run_id))).toEqual(new Set(["r"]));
  });
});

describe("H10 runs", () => {
  test("a request saved under another run than its call's is refused, and nothing is claimed", async () => {
    const { open, file, change } = setup();
    await (await open([toolCall("c", "change")])).prompt("go", { runId: "r1" });
    file.query("UPDATE thread_pending_request SET run_id = 'r2'");
    const agent = await open("later");
    expect(await failureOf(agent.respond("c", APPROVE))).toMatchObject({ code: "hitl_mismatch" });
    expect(change.ran).toEqual([]);
    expect(file.query("SELECT run_id FROM runs")).toEqual([{ run_id: "r1" }]);
    await agent.abortPending("mixed up");
    expect(await agent.prompt("go on")).toMatchObject({ status: "completed" });
  });

  test("a request that no open call asks is refused, and nothing is claimed", async () => {
    const { open, file } = setup();
    const agent = await open("one", "two");
    await agent.prompt("go", { runId: "r1" });
    const { request } = { request: { question_id: "c", thread_id: THREAD, created_at: 1 } };
    await (await file.open()).savePendingRequest(
      THREAD,
      { ...request, payload: { kind: "approve", tool_name: "change", tool_call_id: "c", args: {} } },
      { runId: "r1" },
    );
    expect(await failureOf(agent.respond("c", APPROVE))).toMatchObject({ code: "hitl_mismatch" });
    expect(file.query("SELECT run_id FROM runs")).toEqual([{ run_id: "r1" }]);
    expect(file.messages()).toHaveLength(2);
  });
});
