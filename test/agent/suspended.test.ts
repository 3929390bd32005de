/** Suspended runs: answered by another process, asked about within this one, or closed. */
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import type { OnPending } from "../../src/agent/run.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { modelView } from "../../src/messages/view.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { ended, startChild } from "../support/child.ts";
import { failureOf, lines, notingTool, TestFile, THREAD, watched } from "./support.ts";

const CHILD = new URL("./answering.ts", import.meta.url);
const APPROVE = { decision: "approve" };
const CHANGE = [toolCall("c", "change", { to: 1 })];

function setup() {
  const file = new TestFile();
  const change = notingTool("change");
  const open = (answers: ConstructorParameters<typeof ScriptedModel>[0]) =>
    file.agent(answers, { tools: [change], approve: ({ toolName }) => (toolName === "change" ? "ask" : "allow") });
  return { file, change, open };
}

describe("another process", () => {
  test("H5 answers what a killed process asked: from the record alone, gate by gate", async () => {
    const { file, open, change } = setup();
    const asking = startChild(CHILD, [file.path, "ask"]);
    const [said] = await once(asking.stdout?.setEncoding("utf8") ?? asking, "data");
    expect(String(said).trim()).toBe("suspended");
    const dead = ended(asking);
    asking.kill("SIGKILL");
    expect(await dead).toMatchObject({ signal: "SIGKILL" });

    const half = await ended(startChild(CHILD, [file.path, "answer", "a"]));
    expect(half.lines.map((one) => JSON.parse(one))).toEqual([{ status: "suspended", next: "b", ran: [] }]);
    const agent = await open(["done"]);
    expect(await agent.pending()).toMatchObject({
      request: { question_id: "b", payload: { args: { to: "2" } } },
      runId: "r",
    });
    expect(await agent.respond("b", { decision: "deny" })).toMatchObject({ status: "completed", runId: "r" });
    expect(change.ran).toEqual([{ id: "a", args: { to: "{{ref}}" } }]);
    expect(lines(file.messages())).toEqual([
      "user change both",
      "assistant change(a) change(b)",
      expect.stringMatching(/^tool_result/),
      expect.stringMatching(/^tool_result/),
      "assistant done",
    ]);
  });

  test("two processes that answer at once: one wins, and the batch runs once", async () => {
    const { file, open } = setup();
    await (await open([[toolCall("c", "change", { to: 1 })]])).prompt("go", { runId: "r" });
    const reports = await Promise.all([1, 2].map(() => ended(startChild(CHILD, [file.path, "answer", "c"]))));
    const outcomes = reports.map(({ lines }) => JSON.parse(lines[0] ?? "null"));
    expect(outcomes.flatMap(({ ran }) => ran)).toEqual(['c {"to":1}']);
    expect(outcomes.filter(({ status }) => status === "completed")).toHaveLength(1);
    expect(["hitl_stale_answer", "hitl_no_pending_request"]).toContain(outcomes.find(({ code }) => code)?.code);
    expect(file.messages()).toHaveLength(4);
  });
});

describe("onPending", () => {
  test("answers within the process, and its answers are recorded first", async () => {
    const { file, open, change } = setup();
    const agent = await open([[toolCall("a", "change"), toolCall("b", "change")], "done"]);
    const asked: unknown[] = [];
    const stored: unknown[] = [];
    const onPending: OnPending = ({ question_id }, { signal }) => {
      asked.push(question_id, signal instanceof AbortSignal);
      stored.push(
        file.query("SELECT count(*) AS pending FROM thread_pending_request")[0]?.pending,
        file.query("SELECT question_id FROM thread_hitl_answers").length,
      );
      return question_id === "a" ? APPROVE : { decision: "deny" };
    };
    const types: string[] = [];
    const result = await agent.prompt("go", { onPending, onEvent: ({ type }) => types.push(type) });
    expect(result).toMatchObject({ status: "completed", text: "done" });
    expect(asked).toEqual(["a", true, "b", true]);
    expect(stored).toEqual([1, 0, 1, 1]);
    expect(types.filter((type) => type === "pending" || type === "answer")).toEqual([
      "pending",
      "answer",
      "pending",
      "answer",
    ]);
    expect(change.ran).toEqual([{ id: "a", args: {} }]);
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
  });

  test("works without a store", async () => {
    const change = notingTool("change");
    const model = new ScriptedModel([CHANGE, "done"]);
    const agent = new Agent({ model, tools: [change], approve: () => "ask" });
    const answer = { decision: "edit", edited_args: { to: 2 } };
    expect(await agent.prompt("go", { onPending: async () => answer })).toMatchObject({ status: "completed" });
    expect(change.ran).toEqual([{ id: "c", args: { to: 2 } }]);
  });

  test("that gives undefined suspends", async () => {
    const { open, change } = setup();
    const agent = await open([CHANGE, "done"]);
    expect(await agent.prompt("go", { onPending: () => undefined })).toMatchObject({ status: "suspended" });
    expect(change.ran).toEqual([]);
    expect(await agent.respond("c", APPROVE)).toMatchObject({ status: "completed" });
  });

  test.each<[string, OnPending, object]>([
    [
      "throws",
      () => {
        throw new Error("no terminal");
      },
      { message: "no terminal" },
    ],
    ["gives no answer to the question", () => "yes", { code: "hitl_invalid_answer" }],
    [
      "gives what is not JSON",
      () => ({ decision: "edit", edited_args: { n: 1n } }) as never,
      { code: "invalid_message" },
    ],
  ])("that %s ends the prompt with the question still open", async (_what, onPending, error) => {
    const { open, change } = setup();
    const agent = await open([CHANGE, "done"]);
    expect(await failureOf(agent.prompt("go", { onPending }))).toMatchObject(error);
    expect(change.ran).toEqual([]);
    expect(await agent.pending()).toMatchObject({ request: { question_id: "c" } });
    expect(await agent.respond("c", APPROVE)).toMatchObject({ status: "completed" });
  });

  test("stopped while it waits, even if it doesn't listen, leaves the question for later", async () => {
    const { open, change } = setup();
    const agent = await open([CHANGE, "done"]);
    const controller = new AbortController();
    const onPending: OnPending = () => {
      controller.abort();
      return new Promise<never>(() => {});
    };
    const result = await agent.prompt("go", { onPending, signal: controller.signal });
    expect(result).toMatchObject({ status: "suspended", pending: { question_id: "c" } });
    expect(change.ran).toEqual([]);
    expect(await agent.respond("c", APPROVE)).toMatchObject({ status: "completed" });
  });

  test("loses to an answer that another process gave meanwhile", async () => {
    const { open, change } = setup();
    const other = await open(["done there"]);
    const agent = await open([CHANGE]);
    const onPending: OnPending = async () => {
      await other.respond("c", APPROVE);
      return APPROVE;
    };
    expect(await failureOf(agent.prompt("go", { onPending }))).toMatchObject({ code: "hitl_stale_answer" });
    expect(change.ran).toHaveLength(1);
    expect(await agent.state()).toBe("complete");
  });

  test("in respond() is asked the batch's next question", async () => {
    const { open, change } = setup();
    await (await open([[toolCall("a", "change"), toolCall("b", "change")]])).prompt("go");
    const agent = await open(["done"]);
    const asked: string[] = [];
    const onPending: OnPending = ({ question_id }) => {
      asked.push(question_id);
      return APPROVE;
    };
    expect(await agent.respond("a", APPROVE, { onPending })).toMatchObject({ status: "completed" });
    expect(asked).toEqual(["b"]);
    expect(change.ran.map(({ id }) => id)).toEqual(["a", "b"]);
  });
});

describe("abortPending", () => {
  test("H10 closes the conversation with denials of the asking run, and the next prompt works", async () => {
    const { open, file, change } = setup();
    const calls = [toolCall("a", "change"), toolCall("b", "change")];
    const agent = await open([calls, "next"]);
    await agent.prompt("go", { runId: "r" });
    await agent.respond("a", APPROVE);
    const result = await agent.abortPending("the office is closed");
    expect(result).toMatchObject({ status: "aborted", runId: "r", stopReason: "aborted" });
    expect(lines(file.messages()).slice(2)).toEqual([
      "tool_result a error Not run: the office is closed",
      "tool_result b error Not run: the office is closed",
      "assistant The conversation was stopped: the office is closed",
    ]);
    expect(result.messages).toEqual(file.messages().slice(2));
    expect(file.messages().map(({ run_id }) => run_id)).toEqual(Array(5).fill("r"));
    for (const table of ["thread_pending_request", "thread_hitl_answers"]) {
      expect(file.query(`SELECT * FROM ${table}`)).toEqual([]);
    }
    expect(change.ran).toEqual([]);
    expect(await agent.state()).toBe("partial");
    expect(modelView(file.messages()).findings).toEqual([]);
    expect(await agent.prompt("again")).toMatchObject({ status: "completed", text: "next" });
    expect(await failureOf(agent.abortPending())).toMatchObject({ code: "hitl_no_pending_request" });
  });

  test("when an answer came first leaves that be", async () => {
    const { open, file, change } = setup();
    await (await open([CHANGE])).prompt("go");
    const answering = await open(["done"]);
    const { checkpointer } = watched(await file.open(), async (method) => {
      if (method === "clearPendingRequestIfMatches") await answering.respond("c", APPROVE);
    });
    const late = await file.agent([], { checkpointer, tools: [change] });
    expect(await failureOf(late.abortPending())).toMatchObject({ code: "hitl_stale_answer" });
    expect(lines(file.messages()).at(-1)).toBe("assistant done");
  });

  test("says nothing of calls that an older run left open: they may have run", async () => {
    const { open, file } = setup();
    const store = await file.open();
    await store.claimRun(THREAD, "old");
    await store.append(THREAD, [
      { role: "user", content: [], run_id: "old" },
      { role: "assistant", content: [toolCall("z", "change")], run_id: "old" },
    ]);
    await store.markRunComplete(THREAD, "old");
    const agent = await open([CHANGE]);
    await agent.prompt("go", { runId: "r" });
    expect(await agent.abortPending("no")).toMatchObject({ status: "aborted" });
    expect(lines(file.messages()).filter((one) => one.startsWith("tool_result"))).toEqual([
      "tool_result c error Not run: no",
    ]);
  });

  test("works where the request has no open call", async () => {
    const { open, file } = setup();
    const agent = await open(["one", "two"]);
    await agent.prompt("go");
    await (await file.open()).savePendingRequest(THREAD, {
      question_id: "q",
      thread_id: THREAD,
      payload: { kind: "confirm", prompt: "Sure?" },
      created_at: 1,
    });
    expect(await agent.abortPending()).toMatchObject({ status: "aborted" });
    expect(await agent.prompt("again")).toMatchObject({ status: "completed", text: "two" });
  });

  test("needs a stored thread, and so does respond()", async () => {
    const agent = new Agent({ model: new ScriptedModel([]) });
    await expect(agent.abortPending()).rejects.toThrow(TypeError);
    await expect(agent.respond("q", true)).rejects.toThrow(TypeError);
    expect(await agent.pending()).toBeUndefined();
  });
});
