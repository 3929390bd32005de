/** Several agents on one thread: catching up, conflicts, deletion, and a busy agent. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { pairToolCalls } from "../../src/messages/pairing.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { ended, startChild } from "../support/child.ts";
import { failureOf, lines, notingTool, TestFile, THREAD, tool, watched } from "./support.ts";

describe("catching up", () => {
  test("reads only what another agent added, and sends all of it to the model", async () => {
    const file = new TestFile();
    const { checkpointer, calls } = watched(await file.open());
    const model = new ScriptedModel(["one", "three"]);
    const agent = await file.agent([], { model, checkpointer });
    await agent.prompt("first");
    await (await file.agent(["two"])).prompt("second");
    calls.length = 0;
    await agent.prompt("third");
    const loads = calls.filter(({ method }) => method === "load");
    expect(loads.map(({ args }) => args[1])).toEqual([{ after: 2 }]);
    expect(loads[0]?.result).toMatchObject({ tail: true, messages: [{ role: "user" }, { role: "assistant" }] });
    expect(lines(model.requests[1]?.messages ?? [])).toEqual([
      "user first",
      "assistant one",
      "user second",
      "assistant two",
      "user third",
    ]);
    expect(lines(agent.messages)).toEqual(lines(file.messages()));
  });

  test("an agent that nobody overtook reads nothing again", async () => {
    const file = new TestFile();
    const { checkpointer, calls } = watched(await file.open());
    const agent = await file.agent(["one", "two", "three"], { checkpointer });
    for (const word of ["a", "b", "c"]) await agent.prompt(word);
    const read = calls.filter(({ method }) => method === "load").map(({ result }) => result);
    expect(read).toEqual([
      undefined,
      expect.objectContaining({ messages: [] }),
      expect.objectContaining({ messages: [] }),
    ]);
  });

  test("takes over the extra that another agent saved", async () => {
    const file = new TestFile();
    const agent = await file.agent(["one", "two"]);
    await agent.prompt("first");
    await (await file.open()).saveExtra(THREAD, { colour: "teal" });
    await agent.prompt("second");
    expect(agent.extra).toEqual({ colour: "teal" });
  });

  test("asking for the state while a prompt begins reads the thread once", async () => {
    const file = new TestFile();
    const agent = await file.agent(["one", "three"]);
    await agent.prompt("first");
    await (await file.agent(["two"])).prompt("second");
    const [state, result] = await Promise.all([agent.state(), agent.prompt("third"), agent.state()]);
    expect(state).toBe("complete");
    expect(result.status).toBe("completed");
    expect(lines(agent.messages)).toEqual(lines(file.messages()));
  });

  test("two agents can take turns for long", async () => {
    const file = new TestFile();
    const agents = [
      await file.agent(Array(10).fill("yes")),
      await file.agent(Array(10).fill("no")),
      await file.agent(Array(10).fill("perhaps")),
    ];
    for (let i = 0; i < 30; i++) expect(await agents[i % 3]?.prompt(`${i}`)).toMatchObject({ status: "completed" });
    expect(file.messages().flatMap((message) => (message.role === "user" ? lines([message]) : []))).toEqual(
      Array.from({ length: 30 }, (_, i) => `user ${i}`),
    );
  });
});

describe("a deleted thread", () => {
  test("L6 is not revived by an agent that held it, and can be begun anew", async () => {
    const file = new TestFile();
    const agent = await file.agent(["one", "anew"]);
    await agent.prompt("first");
    await (await file.open()).deleteThread(THREAD);
    expect(await failureOf(agent.prompt("second"))).toMatchObject({ code: "thread_conflict", actual: 0 });
    for (const table of ["messages", "runs", "thread_extra"]) expect(file.query(`SELECT * FROM ${table}`)).toEqual([]);
    expect(await agent.prompt("from the start")).toMatchObject({ status: "completed" });
    expect(lines(agent.messages)).toEqual(["user from the start", "assistant anew"]);
    expect(lines(file.messages())).toEqual(lines(agent.messages));
  });

  test.each(["the model", "a tool"])("L6 while %s works: ThreadConflictError, and nothing is stored", async (who) => {
    const file = new TestFile();
    const other = await file.open();
    const drop = async () => {
      await other.deleteThread(THREAD);
      return "dropped";
    };
    const agent = await file.agent([who === "a tool" ? [toolCall("c", "drop")] : drop, "later"], {
      tools: [tool("drop", drop)],
      middleware: [
        {
          afterModelResponse: (_message, { extra }) => {
            extra.touched = true;
          },
        },
      ],
    });
    expect(await failureOf(agent.prompt("go"))).toMatchObject({ code: "thread_conflict" });
    for (const table of ["messages", "runs", "thread_extra", "thread_pending_request"]) {
      expect(file.query(`SELECT * FROM ${table}`)).toEqual([]);
    }
  });

  test("L6 deleted while a question is being put: the question is not stored", async () => {
    const file = new TestFile();
    const other = await file.open();
    const agent = await file.agent([[toolCall("c", "note")]], {
      tools: [notingTool("note")],
      approve: async () => {
        await other.deleteThread(THREAD);
        return "ask" as const;
      },
    });
    expect(await failureOf(agent.prompt("go"))).toMatchObject({ code: "thread_conflict" });
    expect(file.query("SELECT * FROM thread_pending_request")).toEqual([]);
  });

  test("that was begun anew by another agent is read from its start", async () => {
    const file = new TestFile();
    const model = new ScriptedModel(["one", "three"]);
    const agent = await file.agent([], { model });
    await agent.prompt("first");
    await (await file.open()).deleteThread(THREAD);
    await (await file.agent(["two"])).prompt("second");
    await agent.prompt("third");
    expect(lines(model.requests[1]?.messages ?? [])).toEqual(["user second", "assistant two", "user third"]);
    expect(lines(agent.messages)).toEqual(lines(file.messages()));
  });
});

describe("two writers", () => {
  test("a conflict leaves the agent usable, and its view of the thread in place until then", async () => {
    const file = new TestFile();
    const other = await file.agent(["in between"]);
    const agent = await file.agent([
      "one",
      async () => {
        await other.prompt("cut in");
        return "lost";
      },
      "three",
    ]);
    await agent.prompt("first");
    expect(await failureOf(agent.prompt("second"))).toMatchObject({ code: "thread_conflict" });
    expect(lines(agent.messages).slice(0, 2)).toEqual(["user first", "assistant one"]);
    expect(await agent.prompt("third")).toMatchObject({ status: "completed", text: "three" });
    expect(lines(file.messages())).toEqual([
      "user first",
      "assistant one",
      "user second",
      "user cut in",
      "assistant in between",
      "user third",
      "assistant three",
    ]);
    expect(lines(agent.messages)).toEqual(lines(file.messages()));
  });

  test("L7 ten agents prompt one thread at once: what was acknowledged is in the log, losers get a typed conflict", async () => {
    const file = new TestFile();
    const agents = await Promise.all(Array.from({ length: 10 }, (_, i) => file.agent([`to ${i}`, `again to ${i}`])));
    const outcomes = await Promise.allSettled(agents.map((agent, i) => agent.prompt(`from ${i}`)));
    const log = lines(file.messages());
    outcomes.forEach((outcome, i) => {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "thread_conflict" });
      else expect(log).toEqual(expect.arrayContaining([`user from ${i}`, `assistant to ${i}`]));
    });
    expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    expect(outcomes.filter(({ status }) => status === "rejected").length).toBeGreaterThan(0);
    for (const agent of agents) expect(await agent.prompt("next")).toMatchObject({ status: "completed" });
    expect(new Set(agents.map((agent) => lines(agent.messages).length)).size).toBe(10);
    expect(lines(agents[9]?.messages ?? [])).toEqual(lines(file.messages()));
  });

  test("L7 four processes prompt one thread: every acknowledged turn is in the log, whole", async () => {
    const file = new TestFile();
    await (await file.open()).close();
    const writers = ["a", "b", "c", "d"].map((name) =>
      ended(startChild(new URL("./writer.ts", import.meta.url), [file.path, name, "15"])),
    );
    const reports = await Promise.all(writers);
    for (const { code, stderr } of reports) expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const turns = reports.flatMap(({ lines }) => lines.map((one) => JSON.parse(one))).filter((one) => "said" in one);
    expect(turns).toHaveLength(60);
    const log = file.messages();
    for (const { said, runId } of turns) {
      const own = log.filter((message) => message.run_id === runId);
      expect(lines(own)).toEqual([`user ${said}`, `assistant to ${String(said).split(" ")[0]}`]);
    }
    const completed = file.query("SELECT run_id FROM runs WHERE completion_seq IS NOT NULL");
    expect(completed).toHaveLength(60);
  });

  test("a run that another agent took for interrupted ends in a conflict, and its call is answered once", async () => {
    const file = new TestFile();
    const gate = Promise.withResolvers<string>();
    const started = Promise.withResolvers<void>();
    const slow = await file.agent([[toolCall("c", "slow")]], {
      tools: [
        tool("slow", () => {
          started.resolve();
          return gate.promise;
        }),
      ],
    });
    const running = failureOf(slow.prompt("go", { runId: "slow" }));
    await started.promise;
    await (await file.agent(["cut in"])).prompt("next");
    gate.resolve("too late");
    expect(await running).toMatchObject({ code: "thread_conflict" });
    const results = file.messages().filter((message) => message.role === "tool_result");
    expect(results).toMatchObject([{ tool_call_id: "c", is_error: true, run_id: "slow" }]);
    expect(pairToolCalls(file.messages()).duplicates).toEqual([]);
  });
});

describe("a busy agent", () => {
  test("refuses a prompt, an answer and an abort at once, and goes on undisturbed", async () => {
    const gate = Promise.withResolvers<string>();
    const checkpointer = new MemoryCheckpointer();
    const agent = new Agent({ model: new ScriptedModel([() => gate.promise, "two"]), checkpointer, threadId: THREAD });
    const first = agent.prompt("one");
    expect(agent.busy).toBe(true);
    for (const refused of [agent.prompt("two"), agent.respond("q", true), agent.abortPending()]) {
      expect(await failureOf(refused)).toMatchObject({ code: "agent_busy" });
    }
    gate.resolve("done");
    expect(await first).toMatchObject({ status: "completed", text: "done" });
    expect(agent.busy).toBe(false);
    expect(await agent.prompt("three")).toMatchObject({ text: "two" });
  });

  test("F9 one store, agents on two threads at once: each message is in its own thread", async () => {
    const file = new TestFile();
    const checkpointer = await file.open();
    const agents = ["a", "b", "c"].map(
      (threadId) => new Agent({ model: new ScriptedModel(Array(5).fill(`in ${threadId}`)), checkpointer, threadId }),
    );
    await Promise.all(
      agents.map(async (agent) => {
        for (let i = 0; i < 5; i++) await agent.prompt(`${agent.threadId} ${i}`);
      }),
    );
    for (const id of ["a", "b", "c"]) {
      expect(lines(file.messages(id))).toEqual(
        Array.from({ length: 5 }, (_, i) => [`user ${id} ${i}`, `assistant in ${id}`]).flat(),
      );
    }
  });
});
