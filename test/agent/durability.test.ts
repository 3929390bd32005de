/** What is stored when: every finished message before the next step, and extra after the turn. Seen by a second connection. */
import { expect, test } from "vitest";
import { toolCall } from "../../src/messages/construct.ts";
import { failureOf, lines, notingTool, TestFile, THREAD, tool, watched } from "./support.ts";

test("the user's message is stored before the model is called, the assistant's before a tool runs", async () => {
  const file = new TestFile();
  const seen: string[][] = [];
  const look = () => {
    seen.push(lines(file.messages()));
  };
  const answers = [
    () => {
      look();
      return [toolCall("c1", "look")];
    },
    () => {
      look();
      return "done";
    },
  ];
  const agent = await file.agent(answers, { tools: [tool("look", () => look())] });
  await agent.prompt("go");
  expect(seen).toEqual([
    ["user go"],
    ["user go", "assistant look(c1)"],
    ["user go", "assistant look(c1)", "tool_result c1"],
  ]);
  expect(lines(file.messages()).at(-1)).toBe("assistant done");
});

test("each tool result is stored as it settles, while its siblings still run", async () => {
  const file = new TestFile();
  const slow = Promise.withResolvers<string>();
  const seen: string[][] = [];
  const agent = await file.agent([[toolCall("s", "slow"), toolCall("f", "fast")], "done"], {
    tools: [tool("slow", () => slow.promise), tool("fast", () => "quick")],
  });
  const result = await agent.prompt("go", {
    onEvent: (event) => {
      if (event.type !== "message" || event.message.role !== "tool_result") return;
      seen.push(lines(file.messages()).slice(2));
      slow.resolve("at last");
    },
  });
  expect(seen).toEqual([["tool_result f quick"], ["tool_result f quick", "tool_result s at last"]]);
  expect(result.status).toBe("completed");
});

test("the run is claimed before anything is stored, and completed after everything is", async () => {
  const file = new TestFile();
  const runs = () => file.query("SELECT run_id, completion_seq FROM runs");
  const seen: unknown[] = [];
  const agent = await file.agent(
    [
      () => {
        seen.push(runs());
        return "done";
      },
    ],
    {
      middleware: [
        {
          endOfRun: () => {
            seen.push(runs());
            return undefined;
          },
        },
      ],
    },
  );
  await agent.prompt("go", { runId: "r" });
  const open = [{ run_id: "r", completion_seq: null }];
  expect(seen).toEqual([open, open]);
  expect(runs()).toEqual([{ run_id: "r", completion_seq: 1 }]);
});

test("extra is saved after a turn with tool results, on suspension and at the end, and only what changed", async () => {
  const file = new TestFile();
  const { checkpointer, calls } = watched(await file.open());
  await checkpointer.saveExtra(THREAD, { kept: { by: "another" }, counted: 0 });
  calls.length = 0;
  const count = tool("count", (_args, { extra }) => {
    extra.counted = Number(extra.counted) + 1;
    return "ok";
  });
  const agent = await file.agent([[toolCall("a", "count")], [toolCall("b", "ask")], "done"], {
    checkpointer,
    tools: [count, tool("ask", () => "asked")],
    approve: ({ toolName, extra }) => {
      if (toolName === "count") return "allow";
      extra.gate = "shut";
      return "ask";
    },
    middleware: [
      {
        endOfRun: ({ status }, { extra }) => {
          extra.ended = status;
        },
      },
    ],
  });
  const extra = () => JSON.parse(String(file.query("SELECT extra_json FROM thread_extra")[0]?.extra_json));
  const asked = await agent.prompt("go");
  expect(asked.status).toBe("suspended");
  const saved = () => calls.filter(({ method }) => method === "saveExtra").map(({ args }) => args[1]);
  expect(saved()).toEqual([{ counted: 1 }, { gate: "shut" }]);
  expect(extra()).toEqual({ kept: { by: "another" }, counted: 1, gate: "shut" });
  await agent.respond("b", { decision: "approve" });
  expect(extra()).toEqual({ kept: { by: "another" }, counted: 1, gate: "shut", ended: "completed" });
  expect(agent.extra).toEqual(extra());
});

test("extra that is not JSON is refused with its path, and what was stored stays", async () => {
  const file = new TestFile();
  const agent = await file.agent([[toolCall("a", "spoil")], "later"], {
    tools: [
      tool("spoil", (_args, { extra }) => {
        Object.assign(extra, { when: new Date() });
        return "done";
      }),
    ],
  });
  expect(await failureOf(agent.prompt("go"))).toMatchObject({ code: "invalid_message", path: "extra.when" });
  expect(lines(file.messages())).toEqual(["user go", "assistant spoil(a)", "tool_result a done"]);
  expect(await agent.prompt("again")).toMatchObject({ status: "completed", text: "later" });
});

test("M3 a tool that fails, or a store that fails at one result, keeps the results of its siblings", async () => {
  const file = new TestFile();
  const failing = tool("fails", () => {
    throw new Error("no such host");
  });
  const calls = [toolCall("a", "note"), toolCall("b", "fails"), toolCall("c", "note")];
  const agent = await file.agent([calls, "done"], { tools: [notingTool("note"), failing] });
  expect(await agent.prompt("go")).toMatchObject({ status: "completed" });
  expect(lines(file.messages()).slice(2, 5).toSorted()).toEqual([
    "tool_result a note did a",
    "tool_result b error no such host",
    "tool_result c note did c",
  ]);

  const other = new TestFile();
  const gate = Promise.withResolvers<string>();
  const { checkpointer } = watched(await other.open(), (method, args) => {
    const [message] = method === "append" ? (args[1] as { tool_call_id?: string }[]) : [];
    if (message?.tool_call_id === "b") throw new Error("the disk is full");
  });
  const unlucky = await other.agent([calls], {
    checkpointer,
    tools: [notingTool("note"), tool("fails", () => gate.promise)],
  });
  const prompted = unlucky.prompt("go", {
    onEvent: (event) => {
      if (event.type === "message" && event.message.role === "tool_result") gate.resolve("too late");
    },
  });
  expect(await failureOf(prompted)).toMatchObject({ message: "the disk is full" });
  expect(lines(other.messages()).slice(2).toSorted()).toEqual(["tool_result a note did a", "tool_result c note did c"]);
  const next = await other.agent(["on we go"]);
  expect(await next.prompt("again")).toMatchObject({ status: "completed" });
  expect(other.messages().map((message) => message.role)).toEqual([
    "user",
    "assistant",
    "tool_result",
    "tool_result",
    "tool_result",
    "user",
    "assistant",
  ]);
  expect(other.messages()[4]).toMatchObject({ tool_call_id: "b", is_error: true });
});

test("M13 messages of one prompt keep the order in which they were given", async () => {
  const file = new TestFile();
  const agent = await file.agent(["ok"]);
  const given = Array.from({ length: 20 }, (_, i) => ({
    role: "user" as const,
    content: [{ type: "text" as const, text: `no. ${i}` }],
    timestamp: 1,
  }));
  await agent.prompt(given);
  expect(lines(file.messages()).slice(0, 20)).toEqual(given.map((_, i) => `user no. ${i}`));
});
