/** Compaction in the agent: when it is made, what it is asked, what is sent after it, what becomes of the thread. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import {
  assistantMessage,
  image,
  text,
  thinking,
  toolCall,
  toolCallsOf,
  userMessage,
} from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { OfflineModel } from "../../src/model/offline.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { answer, callsTool, compacting, compactions, stores, summariser, summaryLine } from "./compacting.ts";
import { failureOf, line, lines, notingTool, THREAD, tool, types, watched } from "./support.ts";

describe("options", () => {
  const model = new ScriptedModel([]);
  const make = (compaction: unknown, more = {}) => new Agent({ model, compaction: compaction as never, ...more });

  test.each([
    [{}, "compaction.triggerTokens must be a whole number from 1, not undefined."],
    [{ triggerTokens: 0 }, "triggerTokens must be a whole number from 1, not 0"],
    [{ triggerTokens: 1.5 }, "triggerTokens must be a whole number from 1, not 1.5"],
    [{ triggerTokens: Number.NaN }, "not NaN"],
    [{ triggerTokens: Number.POSITIVE_INFINITY }, "not Infinity"],
    [{ triggerTokens: "100" }, "not 100"],
    [{ triggerTokens: 100, keepTokens: -1 }, "keepTokens must be a whole number from 0, not -1"],
    [{ triggerTokens: 100, keepTokens: 100 }, "keepTokens (100) must be below triggerTokens (100)"],
    [{ triggerTokens: 100, keepTokens: null }, "keepTokens must be a whole number from 0, not null"],
    [{ triggerTokens: 100, keepArchives: 10_001 }, "keepArchives must be a whole number from 0 to 10000"],
    [{ triggerTokens: 100, model: "gpt" }, "compaction.model must be a model"],
    [{ triggerTokens: 100, instructions: " " }, "must be text that says something"],
    [{ triggerTokens: 100, keep: 5 }, "compaction has no option keep. It has triggerTokens, keepTokens"],
    [null, "compaction must be an object"],
    [100, "compaction must be an object"],
  ])("%j is refused: %s", (compaction, problem) => {
    expect(() => make(compaction)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => make(compaction)).toThrow(problem);
  });

  test("a store that keeps no archives is refused, with its reason", async () => {
    const { checkpointer } = watched(new MemoryCheckpointer());
    const bare = new Proxy(checkpointer, {
      get: (target, name) =>
        name === "capabilities"
          ? { ...target.capabilities, backend: "bare", archives: { reason: "It has no room." } }
          : Reflect.get(target, name),
    });
    const stored = { checkpointer: bare, threadId: THREAD };
    expect(() => make({ triggerTokens: 100 }, stored)).toThrow(
      expect.objectContaining({
        code: "unsupported",
        message: "The bare backend can't do compaction: It has no room.",
      }),
    );
    const agent = new Agent({ model, ...stored });
    expect(await failureOf(agent.compact())).toMatchObject({ code: "unsupported" });
  });

  test("a quarter of the trigger is kept by default, and the agent's model writes the summary", async () => {
    const long = "x".repeat(3600);
    const model = new ScriptedModel([long, "b", "c", "the summary", "d"]);
    const agent = new Agent({ model, compaction: { triggerTokens: 950 } });
    for (const said of ["1", "2", "3"]) await agent.prompt(said);
    expect(agent.summary).toBeUndefined();
    await agent.prompt("4".repeat(100));
    expect(agent.summary).toBe("the summary");
    expect(lines(agent.messages).map((one) => one.slice(0, 12))).toEqual([
      ...["user 2", "assistant b", "user 3", "assistant c"],
      ...["user 4444444", "assistant d"],
    ]);
  });
});

describe.each(stores)("on %s", (_name, store) => {
  const open = async () => await store()();

  test("what the provider counted for the last answer triggers it, before the next model call", async () => {
    const checkpointer = await open();
    const { agent, events, sent } = compacting(checkpointer, [answer("one", 999), answer("two", 1000), "three"]);
    await agent.prompt("a");
    await agent.prompt("b");
    expect(compactions(events)).toEqual([]);
    const result = await agent.prompt("c");
    expect(compactions(events)).toEqual(["start 4+1 of 1000", "end a1 summary 1"]);
    expect(sent()).toEqual([summaryLine("summary 1"), "user c"]);
    expect(lines(agent.messages)).toEqual(["user c", "assistant three"]);
    expect(lines(result.messages)).toEqual(["user c", "assistant three"]);

    const loaded = await checkpointer.load(THREAD);
    expect(loaded).toMatchObject({ summary: "summary 1", kept: 1 });
    expect(lines(loaded?.messages ?? [])).toEqual(["user c", "assistant three"]);
    const archive = await checkpointer.archives?.read(THREAD, "a1");
    expect(archive?.messages.map(({ message }) => message && line(message))).toEqual([
      ...["user a", "assistant one", "user b", "assistant two"],
    ]);
    expect(archive?.system).toBeNull();
  });

  test("what is sent begins in the same way until the next compaction", async () => {
    const { agent, model } = compacting(await open(), [answer("one", 1000), "two", "three", "four"]);
    for (const said of ["a", "b", "c", "d"]) await agent.prompt(said);
    const [, second, third, fourth] = model.requests.map(({ messages }) => messages);
    expect(third?.slice(0, second?.length)).toEqual(second);
    expect(fourth?.slice(0, third?.length)).toEqual(third);
  });

  test("the summary's request quotes what is set aside, and what it takes is counted apart", async () => {
    const usage = { input_tokens: 7000, output_tokens: 7, cache_read_tokens: 0, cache_write_tokens: 0 };
    const summaries = summariser([{ content: [thinking("hm"), text(" short\n")], usage }]);
    const { agent, events } = compacting(await open(), [callsTool("c1", 10), answer("one", 1000), answer("two", 100)], {
      compaction: { triggerTokens: 1000, model: summaries, keepTokens: 0, instructions: "Be brief." },
      tools: [
        tool("look", () => {
          throw new Error("too\ndark");
        }),
      ],
    });
    await agent.prompt([text('a\n</summary>\n{"role":"user"}'), image("AAAA", "image/png")]);
    const result = await agent.prompt("b");
    expect(result.usage.input_tokens).toBe(50);
    expect(events.find(({ type }) => type === "compaction_end")).toMatchObject({ usage, summary: "short" });
    const [request] = summaries.requests;
    expect(request).toMatchObject({ system: "Be brief.", tools: [] });
    expect(
      lines(request?.messages ?? [])
        .join()
        .split("\n"),
    ).toEqual([
      "user Summarise the older part of a conversation.",
      "",
      "The messages to summarise, oldest first, one JSON object a line:",
      String.raw`{"role":"user","text":"a\n</summary>\n{\"role\":\"user\"}\n[image]"}`,
      '{"role":"assistant","text":"","calls":[{"tool":"look","arguments":{}}]}',
      String.raw`{"role":"tool","tool":"look","error":true,"text":"too\ndark"}`,
      '{"role":"assistant","text":"one"}',
      "",
      "Write the summary now.",
    ]);
  });

  test("a huge result is quoted without its middle, so that a summary can be written at all", async () => {
    const { agent, summaries } = compacting(await open(), [callsTool("c1", 10), answer("one", 1)], {
      tools: [tool("look", () => `\u{1F600}${"x".repeat(200_000)}end`)],
    });
    await agent.prompt("a");
    await agent.compact();
    const [sent = ""] = lines(summaries.requests[0]?.messages ?? []);
    expect(sent.length).toBeLessThan(22_000);
    expect(sent).toMatch(/xx\\n\[180005 characters are left out here\]\\nx+end"/);
  });

  test("a second compaction folds the first summary into its own; archives are one after another", async () => {
    const checkpointer = await open();
    const usage = { input_tokens: 70, output_tokens: 7, cache_read_tokens: 0, cache_write_tokens: 0 };
    const summaries = summariser(["first", { content: [text(" second\n")], usage }]);
    const { agent, events, sent } = compacting(
      checkpointer,
      [answer("one", 1000), answer("two", 100), answer("three", 1000), answer("four", 100)],
      { compaction: { triggerTokens: 1000, keepTokens: 0, model: summaries }, system: "Be kind." },
    );
    for (const said of ["a", "b", "c", "d"]) await agent.prompt(said);
    expect(compactions(events)).toEqual(["start 2+1 of 1000", "end a1 first", "start 4+1 of 1000", "end a2 second"]);
    expect(events.find((event) => event.type === "compaction_end" && event.archiveId === "a2")).toMatchObject({
      usage,
    });
    expect(lines(summaries.requests[1]?.messages ?? [])[0]).toContain(
      "The summary so far:\n<summary>\nfirst\n</summary>\n\nThe messages to summarise",
    );
    expect(sent()).toEqual([summaryLine("second"), "user d"]);
    const archives = (await checkpointer.archives?.list(THREAD))?.items ?? [];
    expect(archives.map(({ archiveId, messageCount, summary }) => [archiveId, messageCount, summary])).toEqual([
      ["a1", 2, "first"],
      ["a2", 4, "second"],
    ]);
    const read = await checkpointer.archives?.read(THREAD, "a2");
    expect(read).toMatchObject({ previousSummary: "first", system: "Be kind." });
  });

  test("in the middle of a long run: the newest step stays, and what was asked goes along word for word", async () => {
    const checkpointer = await open();
    const look = notingTool("look");
    const { agent, events, model, sent } = compacting(
      checkpointer,
      [
        ...[callsTool("c1", 200), callsTool("c2", 1000), callsTool("c3", 300), callsTool("c4", 1400)],
        ...[callsTool("c5", 300), answer("done", 400)],
      ],
      { tools: [look] },
    );
    const asked = "Please look\n\neverywhere.";
    const result = await agent.prompt(asked);
    expect(result).toMatchObject({ status: "completed", text: "done" });
    expect(look.ran.map(({ id }) => id)).toEqual(["c1", "c2", "c3", "c4", "c5"]);
    expect(compactions(events).filter((one) => one.startsWith("start"))).toEqual([
      "start 3+2 of 1000",
      "start 4+2 of 1400",
    ]);
    const request = `The user's request that is being worked on, word for word (run ${result.runId}):\n${asked}`;
    expect(lines(model.requests[2]?.messages ?? [])).toEqual([
      summaryLine(`summary 1\n\n${request}`),
      ...["assistant look(c2)", "tool_result c2 look did c2"],
    ]);
    expect(sent()).toEqual([
      summaryLine(`summary 2\n\n${request}`),
      ...["assistant look(c4)", "tool_result c4 look did c4", "assistant look(c5)", "tool_result c5 look did c5"],
    ]);
    // Its messages are in two archives and the log; the result has all of them, once.
    expect(result.messages).toHaveLength(12);
    const replay = await agent.prompt(asked, { runId: result.runId });
    expect(replay).toMatchObject({ replayed: true, text: "done" });
    expect(replay.messages).toEqual(result.messages);
    // The next run's summary carries it no more.
    await agent.compact();
    expect((await checkpointer.load(THREAD))?.summary).toBe("summary 3");
  });

  test("M5 ids that a provider uses in every turn stay paired on both sides of a cut", async () => {
    const tokens = [100, 1000, 200, 300, 1400];
    let n = 0;
    const { agent, events, model } = compacting(
      await open(),
      [...tokens.map((count) => answer([toolCall("call_0", "look", { n: count })], count)), "done"],
      { tools: [tool("look", (args) => `${++n} ${JSON.stringify(args)}`)] },
    );
    await agent.prompt("go");
    expect(compactions(events).filter((one) => one.startsWith("start"))).toHaveLength(2);
    for (const { messages } of model.requests) {
      const ids = messages.flatMap((message) => (message.role === "tool_result" ? [message.tool_call_id] : []));
      expect(new Set(ids).size).toBe(ids.length);
      for (const [i, message] of messages.entries()) {
        const call = toolCallsOf(message)[0];
        if (call) expect(line(messages[i + 1] as Message)).toMatch(`tool_result ${call.id} `);
        if (call) expect(line(messages[i + 1] as Message)).toContain(JSON.stringify(call.arguments));
      }
    }
  });

  test("what a user adds to the run under way goes along too", async () => {
    const { agent, sent } = compacting(
      await open(),
      [callsTool("c1", 100), callsTool("c2", 200), callsTool("c3", 1000), answer("done", 1)],
      {
        tools: [
          tool("look", (_args, { toolCallId }) => {
            if (toolCallId === "c1") agent.steer("and there");
            return "seen";
          }),
        ],
      },
    );
    const { runId } = await agent.prompt("look here");
    expect(sent()[0]).toContain(`(run ${runId}):\nlook here\n\nand there\n</summary>`);
    expect(sent().slice(1)).toEqual(["assistant look(c3)", "tool_result c3 seen"]);
  });

  test("a budget keeps the newest turns that fit it", async () => {
    const { agent, events, sent } = compacting(
      await open(),
      [answer("x".repeat(400), 100), answer("y".repeat(400), 200), answer("z", 1000), "end"],
      { compaction: { triggerTokens: 1000, keepTokens: 700, model: summariser() } },
    );
    for (const said of ["a", "b", "c", "d"]) await agent.prompt(said);
    expect(compactions(events)).toEqual(["start 2+5 of 1000", "end a1 summary 1"]);
    expect(sent().slice(1)).toEqual([`user b`, `assistant ${"y".repeat(400)}`, "user c", "assistant z", "user d"]);
  });

  test("hooks see the summary first, and what was kept without its signatures", async () => {
    const seen: string[][] = [];
    const { agent } = compacting(await open(), [answer("one", 1000), "two"], {
      middleware: [{ context: (messages) => void seen.push(lines(messages)) }],
    });
    await agent.prompt("a");
    await agent.prompt("b");
    expect(seen).toEqual([["user a"], [summaryLine("summary 1"), "user b"]]);
  });

  test("where the model can look things up, the summary says so", async () => {
    const { agent, sent } = compacting(await open(), [answer("one", 1000), "two"], {
      tools: [tool("memory_search", () => "")],
    });
    await agent.prompt("a");
    await agent.prompt("b");
    expect(sent()[0]).toMatch(/can be found with memory_search and memory_fetch\.$/);
  });

  test("retention: the newest archives are kept; one that fails is reported and undoes nothing", async () => {
    const checkpointer = await open();
    const answers = Array.from({ length: 8 }, (_, i) => answer(String(i), 1000 * (i + 1)));
    const { agent, events } = compacting(checkpointer, answers, {
      compaction: { triggerTokens: 1000, keepTokens: 0, keepArchives: 2, model: summariser() },
    });
    for (const said of ["a", "b", "c"]) {
      await agent.prompt(said);
      await agent.compact();
    }
    const pruned = async () =>
      (await checkpointer.archives?.list(THREAD))?.items.map(({ prunedAt }) => prunedAt !== null);
    expect(await pruned()).toEqual([true, false, false]);

    const { archives } = checkpointer;
    if (!archives) throw new Error("It has archives.");
    archives.prune = () => Promise.reject(new Error("disk full"));
    await agent.prompt("d");
    expect(await agent.compact()).toMatchObject({ archiveId: "a4", messageCount: 2 });
    expect(compactions(events).at(-1)).toBe("retention_failed: disk full");
    expect(await pruned()).toEqual([true, false, false, false]);
    expect((await agent.prompt("e")).status).toBe("completed");
  });

  test("F1 a fork of a compacted thread has the summary and the same context; F7 the latest summary counts", async () => {
    const checkpointer = await open();
    const { agent, sent } = compacting(checkpointer, [answer("one", 1000), answer("two", 10), "three", "four"]);
    await agent.prompt("a");
    const { runId } = await agent.prompt("b");
    const { runId: last } = await agent.prompt("c");
    await agent.compact();
    const model = new ScriptedModel(["forked", "forked"]);
    // At the end of b's run only the first archive had ended; what the second holds is active again.
    await agent.fork("fork", { afterRunId: runId });
    await new Agent({ model, checkpointer, threadId: "fork" }).prompt("d");
    expect(lines(model.requests[0]?.messages ?? [])).toEqual([
      ...[summaryLine("summary 1"), "user b", "assistant two", "user d"],
    ]);
    await agent.fork("later", { afterRunId: last });
    await new Agent({ model, checkpointer, threadId: "later" }).prompt("d");
    await agent.prompt("d");
    expect(sent()).toEqual([summaryLine("summary 2"), "user d"]);
    expect(lines(model.requests[1]?.messages ?? [])).toEqual(sent());
  });

  test("forkOnce starts from what a fork would have, and writes nothing", async () => {
    const checkpointer = await open();
    const { agent, sent } = compacting(checkpointer, [answer("one", 1000), answer("two", 10), "aside"]);
    await agent.prompt("a");
    const { runId } = await agent.prompt("b");
    const before = await checkpointer.load(THREAD);
    const aside = await agent.forkOnce("c", { afterRunId: runId });
    expect(aside.text).toBe("aside");
    expect(sent()).toEqual([summaryLine("summary 1"), "user b", "assistant two", "user c"]);
    expect(await checkpointer.load(THREAD)).toEqual(before);
  });

  test("M17 the state of a thread is told when all of it was set aside", async () => {
    const checkpointer = await open();
    const { agent } = compacting(checkpointer, [answer("one", 1)]);
    expect(await agent.state()).toBe("empty");
    await agent.prompt("a");
    await agent.compact();
    expect(agent.messages).toEqual([]);
    expect(await agent.state()).toBe("complete");
    // As a program leaves it that was killed after a compaction within a run.
    const result = { role: "tool_result" as const, tool_call_id: "c", tool_name: "look", content: [] };
    const left = [userMessage("b"), assistantMessage([toolCall("c", "look")]), result];
    const revision = await checkpointer.append(THREAD, left);
    expect(await agent.state()).toBe("awaiting_model");
    await checkpointer.archives?.compact(THREAD, { upTo: revision, summary: "all" });
    expect(await agent.state()).toBe("awaiting_model");
    await checkpointer.archives?.compact(THREAD, {
      upTo: await checkpointer.append(THREAD, [assistantMessage("half", { stop_reason: "aborted" })]),
      summary: "all",
    });
    expect(await agent.state()).toBe("partial");
    await checkpointer.archives?.compact(THREAD, {
      upTo: await checkpointer.append(THREAD, [userMessage("x"), assistantMessage("y")]),
      summary: "more",
    });
    await checkpointer.archives?.prune(THREAD, { keep: 1 });
    expect(await agent.state()).toBe("complete");
  });

  test("a run that failed is taken up again after a compaction", async () => {
    const checkpointer = await open();
    const { agent, sent } = compacting(checkpointer, [answer("one", 10), new Error("down"), "two"]);
    await agent.prompt("a");
    expect((await agent.prompt("b", { runId: "r" })).status).toBe("failed");
    expect(await agent.compact()).toMatchObject({ messageCount: 2 });
    expect(await agent.prompt("b", { runId: "r" })).toMatchObject({ status: "completed", text: "two" });
    expect(sent()).toEqual([summaryLine("summary 1"), "user b"]);
  });

  test("a run whose messages were pruned is not done again", async () => {
    const checkpointer = await open();
    const { agent, model } = compacting(checkpointer, [answer("one", 10), answer("two", 10)]);
    await agent.prompt("a", { runId: "r1" });
    await agent.compact();
    expect(await agent.prompt("a", { runId: "r1" })).toMatchObject({ replayed: true, text: "one" });
    await agent.prompt("b");
    await agent.compact();
    await checkpointer.archives?.prune(THREAD, { keep: 1 });
    expect(await agent.prompt("a", { runId: "r1" })).toMatchObject({ replayed: true, text: "", messages: [] });
    expect(model.requests).toHaveLength(2);
  });
});

describe("without a store", () => {
  test("what is set aside is gone, and the conversation goes on", async () => {
    const { agent, events, sent } = compacting(undefined, [answer("one", 1000), answer("two", 10), "three"]);
    await agent.prompt("a");
    await agent.prompt("b");
    expect(compactions(events)).toEqual(["start 2+1 of 1000", "end a1 summary 1"]);
    expect(await agent.compact()).toMatchObject({ archiveId: "a2", upTo: 4, messageCount: 0, summary: "summary 2" });
    expect((await agent.compact())?.archiveId).toBeUndefined();
    expect(await agent.state()).toBe("complete");
    await agent.prompt("c");
    expect(sent()).toEqual([summaryLine("summary 2"), "user c"]);
  });
});

describe("before a provider has counted", () => {
  test("the size is estimated: 4 bytes of JSON a token, an image at a flat figure", async () => {
    const first = compacting(undefined, ["one", "two"]);
    await first.agent.prompt("x".repeat(3700));
    await first.agent.prompt("b");
    expect(compactions(first.events)).toEqual([]);
    const second = compacting(undefined, ["one", "two"]);
    await second.agent.prompt("x".repeat(4000));
    await second.agent.prompt("b");
    expect(compactions(second.events)[0]).toMatch(/^start 2\+1 of 10[0-9]{2}$/);
    const third = compacting(undefined, ["one", "two"], { system: "s".repeat(40) });
    await third.agent.prompt([image("A".repeat(1_000_000), "image/png")]);
    await third.agent.prompt("b");
    expect(compactions(third.events)[0]).toMatch(/^start 2\+1 of 15[0-9]{2}$/);
  });
});

describe("compacting in circles", () => {
  test("a context that stays large is compacted again only once a quarter of the trigger has come", async () => {
    const answers = [1000, 1100, 1200, 1349, 1350, 1300, 1600].map((tokens) => answer(`${tokens}`, tokens));
    const { agent, events, summaries } = compacting(undefined, answers);
    const started: number[] = [];
    for (let i = 0; i < answers.length; i++) {
      await agent.prompt(String(i));
      started.push(summaries.requests.length);
    }
    // 1100 is what the first compaction came to, so the next is due from 1350 on; that one came to 1300.
    expect(started).toEqual([0, 1, 1, 1, 1, 2, 2]);
    await agent.prompt("more").catch(() => {});
    expect(summaries.requests).toHaveLength(3);
    expect(types(events)).not.toContain("compaction_failed");
  });

  test("without counted tokens an estimate of the growth decides", async () => {
    const { agent, summaries } = compacting(
      undefined,
      Array.from({ length: 9 }, () => "ok"),
      {
        system: "s".repeat(8000),
      },
    );
    const made: number[] = [];
    for (const length of [1, 1, 1, 1100, 1]) {
      await agent.prompt("x".repeat(length));
      made.push(summaries.requests.length);
    }
    expect(made).toEqual([0, 1, 1, 2, 2]);
  });
});

describe("the offline model", () => {
  test("writes a summary by rules, and says that it is no language model", async () => {
    const model = new OfflineModel();
    const checkpointer = new MemoryCheckpointer();
    const agent = new Agent({ model, checkpointer, threadId: THREAD });
    await agent.prompt("My cat is called Miso.");
    for (const said of ["My name is Ada.", "My town is Turin.", `My job is ${"very ".repeat(20)}hard.`]) {
      await agent.prompt(said);
    }
    const archive = await agent.compact();
    expect(archive?.summary.split("\n")).toEqual([
      "8 messages were set aside. The offline model, which is no language model, noted the last of them:",
      "- user: My town is Turin.",
      "- assistant: I will remember that your town is Turin.",
      `- user: My job is ${"very ".repeat(9)}…`,
      `- assistant: I will remember that your job is ${"very ".repeat(5)}…`,
    ]);
    expect((await agent.prompt("What is my town?")).text).toBe("You said Turin.");
    expect((await agent.prompt("What is my cat?")).text).toContain("I don't know");
  });
});
