/** Compaction that goes wrong, or meets others: the thread stays whole, and the run goes on. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { remember } from "../../src/agent/remember.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { InMemoryHistory } from "../../src/history/memory/history.ts";
import { text, thinking, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { ModelError, ModelUnavailableError } from "../../src/model/errors.ts";
import type { Model } from "../../src/model/model.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { answer, callsTool, compacting, compactions, stores, summariser, summaryLine } from "./compacting.ts";
import { endlessModel, failureOf, lines, notingTool, THREAD, tool, types, watched } from "./support.ts";

const usage = { input_tokens: 900, output_tokens: 8, cache_read_tokens: 0, cache_write_tokens: 0 };
const silent: Model = { providerId: "test", modelId: "silent", async *stream() {} };

describe("a summary that fails", () => {
  test.each<[string, ScriptedAnswer | Model, string]>([
    ["the model's error", new ModelError("no such model"), "no such model"],
    ["an empty answer", "", "The model gave no summary: its answer was empty."],
    ["white space", " \n\u00a0", "its answer was empty"],
    ["thinking alone", [thinking("hm")], "its answer was empty"],
    ["a tool call", [text("I'll look."), toolCall("x", "look")], "it called a tool"],
    [
      "an answer cut by its length",
      { content: [text("The user wan")], stop_reason: "length", usage },
      "cut off for its length",
    ],
    ["a stream without an end", silent, "its stream ended without an answer"],
  ])("%s leaves the thread as it was, and the run goes on with all of it", async (_what, said, problem) => {
    const checkpointer = new MemoryCheckpointer();
    const isModel = typeof said === "object" && "stream" in said;
    const model = isModel ? (said as Model) : summariser([said as ScriptedAnswer]);
    const { agent, events, sent } = compacting(
      checkpointer,
      [answer("one", 1000), callsTool("c1", 1100), callsTool("c2", 1200), answer("two", 1300)],
      { compaction: { triggerTokens: 1000, keepTokens: 0, model }, tools: [notingTool("look")] },
    );
    await agent.prompt("a");
    expect(await agent.prompt("b")).toMatchObject({ status: "completed", text: "two" });
    const counted = typeof said === "object" && "stop_reason" in said ? said.usage : null;
    expect(events.find(({ type }) => type === "compaction_failed")).toMatchObject({ usage: counted });
    // Not tried again at each step of this run.
    expect(types(events).filter((type) => type === "compaction_start")).toHaveLength(1);
    expect(compactions(events)[1]).toContain("compaction_failed: ");
    expect(compactions(events)[1]).toContain(problem);
    expect(sent()).toHaveLength(7);
    const loaded = await checkpointer.load(THREAD);
    expect(loaded?.messages).toHaveLength(8);
    expect(loaded).not.toHaveProperty("summary");
    expect((await checkpointer.archives.list(THREAD)).items).toEqual([]);
  });

  test("is tried again by the next prompt", async () => {
    const { agent, events } = compacting(new MemoryCheckpointer(), [answer("one", 1000), "two", "three"], {
      compaction: { triggerTokens: 1000, keepTokens: 0, model: summariser([new ModelError("down"), "better"]) },
    });
    for (const said of ["a", "b", "c"]) await agent.prompt(said);
    expect(compactions(events)).toEqual([
      ...["start 2+1 of 1000", "compaction_failed: down", "start 4+1 of 1000", "end a1 better"],
    ]);
  });

  test("for the moment only is asked again, as any model is", async () => {
    const { agent, events } = compacting(new MemoryCheckpointer(), [answer("one", 1000), "two"], {
      compaction: { triggerTokens: 1000, model: summariser([new ModelUnavailableError("busy"), "better"]) },
      retry: { baseDelayMs: 0 },
    });
    await agent.prompt("a");
    await agent.prompt("b");
    expect(types(events)).toContain("model_retry");
    expect(compactions(events).at(-1)).toBe("end a1 better");
  });

  test("because the run was aborted: the run ends so, and the question is kept", async () => {
    const checkpointer = new MemoryCheckpointer();
    const { agent, events } = compacting(checkpointer, [answer("one", 1000), "two"], {
      compaction: { triggerTokens: 1000, model: endlessModel },
    });
    await agent.prompt("a");
    const stop = new AbortController();
    const result = await agent.prompt("b", {
      signal: stop.signal,
      onEvent: ({ type }) => type === "compaction_start" && setImmediate(() => stop.abort()),
    });
    expect(result.status).toBe("aborted");
    expect(types(events).slice(-3)).toEqual(["compaction_start", "compaction_failed", "run_end"]);
    expect(lines((await checkpointer.load(THREAD))?.messages ?? [])).toEqual(["user a", "assistant one", "user b"]);
  });

  test("in the store: the run goes on, and its messages are stored", async () => {
    const checkpointer = new MemoryCheckpointer();
    checkpointer.archives.compact = () => Promise.reject(new Error("disk full"));
    const { agent, events, sent } = compacting(checkpointer, [answer("one", 1000), "two"]);
    await agent.prompt("a");
    expect((await agent.prompt("b")).status).toBe("completed");
    expect(compactions(events).at(-1)).toBe("compaction_failed: disk full");
    expect(sent()).toEqual(["user a", "assistant one", "user b"]);
  });

  test("after the store had done it: the next prompt takes it up", async () => {
    const checkpointer = new MemoryCheckpointer();
    const { compact } = checkpointer.archives;
    checkpointer.archives.compact = async (...args) => {
      await compact.apply(checkpointer.archives, args);
      throw new Error("connection lost");
    };
    const { agent, sent } = compacting(checkpointer, [answer("one", 1000), "two", "three"]);
    await agent.prompt("a");
    expect((await agent.prompt("b")).status).toBe("completed");
    expect(sent()).toEqual([summaryLine("summary 1"), "user b"]);
    await agent.prompt("c");
    expect(sent()).toEqual([summaryLine("summary 1"), "user b", "assistant two", "user c"]);
  });
});

describe("compact()", () => {
  test("needs no option, and sets everything aside", async () => {
    const checkpointer = new MemoryCheckpointer();
    const model = new ScriptedModel(["one", "short", "two"]);
    const agent = new Agent({ model, checkpointer, threadId: THREAD, system: "Be kind." });
    expect(await agent.compact()).toBeUndefined();
    await agent.prompt("a");
    expect(await agent.compact({ instructions: "Only the facts." })).toMatchObject({
      ...{ archiveId: "a1", messageCount: 2, summary: "short", prunedAt: null },
    });
    expect(model.requests[1]).toMatchObject({ system: "Only the facts.", tools: [] });
    expect(await agent.compact()).toBeUndefined();
    expect((await checkpointer.archives.read(THREAD, "a1")).system).toBe("Be kind.");
    await agent.prompt("b");
    expect(lines(model.requests[2]?.messages ?? [])).toEqual([summaryLine("short"), "user b"]);
  });

  test("keeps the agent's budget", async () => {
    const { agent } = compacting(new MemoryCheckpointer(), ["one", "x".repeat(100), "three"], {
      compaction: { triggerTokens: 1000, keepTokens: 30, model: summariser() },
    });
    await agent.prompt("a");
    expect(await agent.compact()).toBeUndefined();
    await agent.prompt("b");
    await agent.prompt("c");
    expect(await agent.compact()).toMatchObject({ messageCount: 4 });
    expect(lines(agent.messages)).toEqual(["user c", "assistant three"]);
  });

  test("throws what kept it from being made, reports it, and leaves the thread as it was", async () => {
    const checkpointer = new MemoryCheckpointer();
    const { agent, events } = compacting(checkpointer, ["one"], {
      compaction: { triggerTokens: 1000, keepTokens: 0, model: summariser([new ModelError("down"), "good"]) },
    });
    await agent.prompt("a");
    expect(await failureOf(agent.compact())).toMatchObject({ code: "model_error" });
    expect(types(events).slice(-2)).toEqual(["compaction_start", "compaction_failed"]);
    expect(events.at(-1)?.runId).toBe("");
    expect(await checkpointer.load(THREAD)).not.toHaveProperty("summary");
    expect(await failureOf(agent.compact({ signal: AbortSignal.abort(new Error("stop")) }))).toMatchObject({
      message: "stop",
    });
    expect(await agent.compact()).toMatchObject({ summary: "good" });
  });

  test("is refused while the agent works, and the agent is busy with it meanwhile", async () => {
    const { agent } = compacting(new MemoryCheckpointer(), ["one", "two"]);
    const working = agent.prompt("a");
    expect(await failureOf(agent.compact())).toMatchObject({ code: "agent_busy" });
    await working;
    const compacted = agent.compact();
    expect(agent.busy).toBe(true);
    expect(() => agent.steer("x")).toThrow(expect.objectContaining({ code: "agent_idle" }));
    expect(await failureOf(agent.prompt("b"))).toMatchObject({ code: "agent_busy" });
    expect(await compacted).toMatchObject({ archiveId: "a1" });
  });

  test("refuses options that it has not", async () => {
    const { agent } = compacting(undefined, []);
    expect(await failureOf(agent.compact({ keep: 1 } as never))).toMatchObject({
      message: "There is no option keep. There is instructions, keepTokens, signal.",
    });
    expect(await failureOf(agent.compact({ instructions: "" }))).toMatchObject({ code: "invalid_argument" });
  });
});

describe.each(stores)("a thread that waits, on %s", (_name, store) => {
  const setUp = async (calls: ScriptedAnswer) => {
    const open = store();
    const options = { tools: [notingTool("look")], approve: () => "ask" as const };
    const first = compacting(await open(), ["zero", calls], options);
    await first.agent.prompt("hello", { runId: "r0" });
    const { pending } = await first.agent.prompt("change it");
    const second = async (...answers: ScriptedAnswer[]) => compacting(await open(), answers, options);
    return { ...first, second, checkpointer: await open(), questionId: pending?.question_id ?? "" };
  };

  test("L24 keeps its open calls, and is answered by another agent as if nothing had been set aside", async () => {
    const { agent, second, checkpointer, questionId } = await setUp([toolCall("c1", "look"), toolCall("c2", "look")]);
    expect(await agent.compact()).toMatchObject({ messageCount: 3 });
    expect(lines(agent.messages)).toEqual(["assistant look(c1) look(c2)"]);
    expect(await agent.state()).toBe("awaiting_answer");
    expect((await checkpointer.loadPending(THREAD))?.request.question_id).toBe(questionId);

    const other = await second("done");
    expect(await other.agent.prompt("hello", { runId: "r0" })).toMatchObject({ replayed: true, text: "zero" });
    expect(await failureOf(other.agent.prompt("more"))).toMatchObject({ code: "hitl_pending" });
    expect((await other.agent.respond("c1", { decision: "approve" })).status).toBe("suspended");
    const result = await other.agent.respond("c2", { decision: "deny" });
    expect(result).toMatchObject({ status: "completed", text: "done" });
    expect(other.sent()[0]).toContain(`word for word (run ${result.runId}):\nchange it`);
    expect(other.sent().slice(1)).toEqual([
      ...["assistant look(c1) look(c2)", "tool_result c1 look did c1"],
      "tool_result c2 error The user denied this call.",
    ]);
  });

  test("M11 is left alone while a signed call is open", async () => {
    const { agent, summaries } = await setUp([thinking("hm"), toolCall("c1", "look")]);
    expect(await agent.compact()).toBeUndefined();
    expect(summaries.requests).toEqual([]);
  });

  test("can be closed after a compaction", async () => {
    const { agent, second } = await setUp([toolCall("c1", "look")]);
    await agent.compact();
    const other = await second("done");
    expect((await other.agent.abortPending()).status).toBe("aborted");
    await other.agent.prompt("more");
    expect(other.sent().slice(1)).toEqual([
      ...["assistant look(c1)", "tool_result c1 error Not run: aborted by the host"],
      ...["assistant The conversation was stopped: aborted by the host", "user more"],
    ]);
  });
});

describe.each(stores)("another writer, on %s", (_name, store) => {
  test("that compacts while a summary is written: its summary serves, and the run goes on", async () => {
    const open = store();
    const other = compacting(await open(), []);
    const { agent, events, sent } = compacting(await open(), [answer("one", 1000), "two", "three"], {
      compaction: {
        ...{ triggerTokens: 1000, keepTokens: 0 },
        model: summariser([
          async () => {
            await other.agent.compact();
            return "too late";
          },
        ]),
      },
    });
    await agent.prompt("a");
    const result = await agent.prompt("b");
    expect(result).toMatchObject({ status: "completed", text: "two" });
    expect(compactions(events).at(-1)).toMatch(/^compaction_failed: Thread "t" /);
    expect(compactions(other.events).at(-1)).toBe("end a1 summary 1");
    expect(sent()).toEqual([summaryLine("summary 1"), "user b"]);
    expect(await (await open()).load(THREAD)).toMatchObject({ summary: "summary 1", kept: 1 });
    await agent.prompt("c");
    expect(sent()).toEqual([summaryLine("summary 1"), "user b", "assistant two", "user c"]);
  });

  test("that compacts twice and prunes while a summary is written: nothing is cut by positions that have shifted", async () => {
    const open = store();
    const checkpointer = await open();
    const { agent, events, sent } = compacting(await open(), ["one", "two", answer("three", 1000), "four"], {
      compaction: {
        ...{ triggerTokens: 1000, keepTokens: 15 },
        model: summariser([
          async () => {
            const { items } = await checkpointer.listMessages(THREAD);
            for (const [i, item] of items.slice(0, 2).entries()) {
              await checkpointer.archives?.compact(THREAD, { upTo: item.position, summary: `theirs ${i + 1}` });
            }
            await checkpointer.archives?.prune(THREAD, { keep: 1 });
            return "ours";
          },
        ]),
      },
    });
    for (const said of ["a", "b", "c", "d"]) await agent.prompt(said);
    expect(compactions(events).at(-1)).toMatch(/^compaction_failed: Thread "t" /);
    expect(sent()).toEqual([
      ...[summaryLine("theirs 2"), "user b", "assistant two", "user c", "assistant three", "user d"],
    ]);
  });

  test("L7 that adds messages while a summary is written: the run loses, as it does without a compaction", async () => {
    const open = store();
    const checkpointer = await open();
    const { agent, events } = compacting(await open(), [answer("one", 1000), "two"], {
      compaction: {
        ...{ triggerTokens: 1000, keepTokens: 0 },
        model: summariser([
          async () => {
            await checkpointer.append(THREAD, [userMessage("mine")]);
            return "of what it was";
          },
        ]),
      },
    });
    await agent.prompt("a");
    expect(await failureOf(agent.prompt("b"))).toMatchObject({ code: "thread_conflict" });
    expect(compactions(events).at(-1)).toMatch(/^compaction_failed: Thread "t" is at revision/);
    const loaded = await checkpointer.load(THREAD);
    expect(lines(loaded?.messages ?? [])).toEqual(["user a", "assistant one", "user b", "user mine"]);
    expect(loaded).not.toHaveProperty("summary");
  });

  test("L6 that deletes the thread while a summary is written: nothing is revived", async () => {
    const open = store();
    const checkpointer = await open();
    const { agent } = compacting(await open(), [answer("one", 1000), "two"], {
      compaction: {
        ...{ triggerTokens: 1000, keepTokens: 0 },
        model: summariser([
          async () => {
            await checkpointer.deleteThread(THREAD);
            return "of what it was";
          },
        ]),
      },
    });
    await agent.prompt("a");
    expect(await failureOf(agent.prompt("b"))).toMatchObject({ code: "thread_conflict" });
    expect(await checkpointer.load(THREAD)).toBeUndefined();
    expect((await checkpointer.archives?.list(THREAD))?.items).toEqual([]);
  });

  test("that has compacted between two prompts: all of the active context is read anew", async () => {
    const open = store();
    const first = compacting(await open(), ["one", "two", "four"]);
    const second = compacting(await open(), ["three"]);
    await first.agent.prompt("a");
    await first.agent.prompt("b");
    await second.agent.compact();
    await second.agent.prompt("c");
    await first.agent.prompt("d");
    expect(first.sent()).toEqual([summaryLine("summary 1"), "user c", "assistant three", "user d"]);
    expect(first.agent.messages).toEqual((await (await open()).load(THREAD))?.messages);
    expect(first.agent.summary).toBe("summary 1");
  });

  test("that has compacted and kept what this one knew last: the summary is taken up, and nothing twice", async () => {
    const open = store();
    const first = compacting(await open(), ["one", "two", "three", "four"]);
    await first.agent.prompt("a");
    await first.agent.prompt("b");
    await first.agent.prompt("c");
    const budget = { triggerTokens: 1000, keepTokens: 25, model: summariser() };
    const second = compacting(await open(), [], { compaction: budget });
    expect(await second.agent.compact()).toMatchObject({ messageCount: 4 });
    await first.agent.prompt("d");
    expect(first.sent()).toEqual([summaryLine("summary 1"), "user c", "assistant three", "user d"]);
  });

  test("M2 that adds a result without a call right after a compaction: it is never sent", async () => {
    const open = store();
    const checkpointer = await open();
    const { agent, sent } = compacting(await open(), ["one", "two"]);
    await agent.prompt("a");
    await agent.compact();
    await checkpointer.append(THREAD, [toolResultMessage({ id: "call_0", name: "look" }, "lost")]);
    await agent.prompt("b");
    expect(sent()).toEqual([summaryLine("summary 1"), "user b"]);
  });

  test("F7 of many that compact at once one wins, and nothing is in two archives", async () => {
    const open = store();
    const checkpointer = await open();
    await compacting(checkpointer, ["one"]).agent.prompt("a");
    const agents = await Promise.all(Array.from({ length: 8 }, async () => compacting(await open(), []).agent));
    const settled = await Promise.allSettled(agents.map((agent) => agent.compact()));
    expect(settled.filter((item) => item.status === "fulfilled" && item.value)).toHaveLength(1);
    const codes = settled.flatMap((item) => (item.status === "rejected" ? [item.reason.code] : []));
    expect(codes.every((code) => code === "compaction_conflict" || code === "thread_conflict")).toBe(true);
    const { items } = (await checkpointer.archives?.list(THREAD)) ?? { items: [] };
    expect(items.map(({ messageCount }) => messageCount)).toEqual([2]);
  });
});

test("a store of a third party whose load tells nothing of compactions works as ever", async () => {
  const { checkpointer } = watched(new MemoryCheckpointer());
  const plain = new Proxy(checkpointer, {
    get(target, name) {
      if (name === "archives") return undefined;
      if (name === "capabilities") return { ...target.capabilities, archives: { reason: "None." } };
      const method: unknown = Reflect.get(target, name);
      if (name !== "load") return method;
      return async (id: string, options: object) => {
        const loaded = await target.load(id, options);
        if (!loaded) return undefined;
        const { messages, extra, revision, parentThreadId, tail } = loaded;
        return { messages, extra, revision, parentThreadId, tail };
      };
    },
  });
  const options = { checkpointer: plain, threadId: THREAD };
  const model = new ScriptedModel(["one", "two", "aside", "three"]);
  const [one, two] = [new Agent({ model, ...options }), new Agent({ model, ...options })];
  await one.prompt("a");
  const { runId } = await two.prompt("b");
  expect((await one.forkOnce("x", { afterRunId: runId })).text).toBe("aside");
  await one.prompt("c");
  expect(lines(model.requests[3]?.messages ?? [])).toEqual([
    ...["user a", "assistant one", "user b", "assistant two", "user c"],
  ]);
});

test("remember() has the whole of a run that was compacted under way", async () => {
  const history = new InMemoryHistory();
  const checkpointer = new MemoryCheckpointer();
  const { agent } = compacting(
    checkpointer,
    [callsTool("c1", 10), { content: [text("I look on."), toolCall("c2", "look")] }, callsTool("c3", 1000), "done"],
    { tools: [tool("look", () => "seen")], middleware: [remember({ history, extract: () => [] })] },
  );
  await agent.prompt("look!");
  expect(lines((await checkpointer.load(THREAD))?.messages ?? [])).toEqual([
    ...["assistant look(c3)", "tool_result c3 seen", "assistant done"],
  ]);
  const window = await history.recentMessages(THREAD);
  expect(window.map(({ role, content }) => `${role}: ${content}`)).toEqual([
    ...["user: look!", "assistant: I look on.", "assistant: done"],
  ]);
});
