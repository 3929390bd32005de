/** Compaction in any conversation, and in one that several agents hold at once. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contextOf } from "../../src/agent/context.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { text, thinking, toolCall } from "../../src/messages/construct.ts";
import { pairToolCalls } from "../../src/messages/pairing.ts";
import type { AssistantBlock, Message } from "../../src/messages/schema.ts";
import { isSigned } from "../../src/messages/signatures.ts";
import { modelView } from "../../src/messages/view.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { ended, startChild } from "../support/child.ts";
import { answer, compacting, stores } from "./compacting.ts";
import { TestFile, THREAD, tool } from "./support.ts";

/** All messages of the thread, which its archives and its active context make up: each is in one of them. */
async function wholeLog(checkpointer: Checkpointer): Promise<Message[]> {
  const { archives } = checkpointer;
  const loaded = await checkpointer.load(THREAD);
  const parts: (Message | undefined)[] = [];
  for (const { archiveId } of (await archives?.list(THREAD, { limit: 10_000 }))?.items ?? []) {
    parts.push(...((await archives?.read(THREAD, archiveId))?.messages ?? []).map(({ message }) => message));
  }
  parts.push(...(loaded?.messages ?? []));
  const { items } = await checkpointer.listMessages(THREAD, { limit: 10_000 });
  expect(parts).toEqual(items.map(({ message }) => message));
  return items.flatMap(({ message }) => message ?? []);
}

interface Turn {
  steps: { tokens: number; calls: number; signed: boolean }[];
  fails: boolean;
  compactFirst: boolean;
  fresh: boolean;
}

const step = fc.record({
  tokens: fc.constantFrom(0, 100, 900, 1000, 1300, 2000, 5000),
  calls: fc.integer({ min: 1, max: 2 }),
  signed: fc.boolean(),
});
const turn: fc.Arbitrary<Turn> = fc.record({
  steps: fc.array(step, { maxLength: 4 }),
  fails: fc.boolean(),
  compactFirst: fc.boolean(),
  fresh: fc.boolean(),
});

function answersOf({ steps, fails }: Turn, n: number): ScriptedAnswer[] {
  const answers = steps.map(({ tokens, calls, signed }) => {
    const content: AssistantBlock[] = Array.from({ length: calls }, (_, i) => toolCall(`call_${i}`, "look"));
    return answer(
      signed ? [{ ...thinking("hm"), provider_options: { p: { signature: "s" } } }, ...content] : content,
      tokens,
    );
  });
  return [...answers, fails ? new Error("down") : answer([text(`answer ${n}`)], 100 * n)];
}

test("what was sent last is what a process that has just loaded the thread would send, in any conversation", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(turn, { minLength: 1, maxLength: 7 }),
      fc.constantFrom(0, 40, 200),
      async (turns, keep) => {
        const checkpointer = new MemoryCheckpointer();
        const model = new ScriptedModel(turns.flatMap(answersOf));
        let summaries = 0;
        const make = () =>
          compacting(checkpointer, [], {
            model,
            tools: [tool("look", () => "seen")],
            compaction: {
              ...{ triggerTokens: 1000, keepTokens: keep },
              model: new ScriptedModel(Array.from({ length: 40 }, () => () => `summary ${++summaries}`)),
            },
          }).agent;
        let agent = make();
        for (const [n, { fresh, compactFirst, fails }] of turns.entries()) {
          if (fresh) agent = make();
          if (compactFirst) await agent.compact();
          const result = await agent.prompt(`question ${n}`);
          expect(result.status).toBe(fails ? "failed" : "completed");
          const loaded = await checkpointer.load(THREAD);
          if (!loaded) throw new Error("The thread is stored.");
          const { messages, summary, kept = 0 } = loaded;
          expect([agent.messages, agent.summary]).toEqual([messages, summary]);

          const sent = model.requests.at(-1)?.messages ?? [];
          const view = modelView(contextOf({ messages: messages.slice(0, -1), summary, kept }, false)).messages;
          expect(JSON.stringify(sent)).toBe(JSON.stringify(view));
          // The question is there in words, if not as a message then beside the summary.
          expect(JSON.stringify(sent)).toContain(`question ${n}`);
          expect(sent.slice(0, kept).some(isSigned)).toBe(false);
        }
        const log = await wholeLog(checkpointer);
        const { calls, orphans, duplicates } = pairToolCalls(log);
        expect([...orphans, ...duplicates, ...calls.filter(({ result }) => result === undefined)]).toEqual([]);
      },
    ),
    { numRuns: 150 },
  );
});

describe.each(stores)("on %s", (_name, store) => {
  test("L7 several agents prompt and compact one thread: every acknowledged turn is in it, once and whole", async () => {
    const open = store();
    const done: string[] = [];
    const work = async (name: string) => {
      const answers = Array.from({ length: 400 }, () => `to ${name}`);
      const { agent, events } = compacting(await open(), answers, {
        compaction: { triggerTokens: 120, keepTokens: 20, model: new ScriptedModel(answers) },
      });
      for (let n = 0; n < 8; ) {
        try {
          const { runId } = await agent.prompt(`${name} ${n}`);
          done.push(runId);
          n++;
          if (n % 4 === 0) await agent.compact();
        } catch (error) {
          const { code } = error as { code?: string };
          if (code !== "thread_conflict" && code !== "compaction_conflict") throw error;
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      return events.filter(({ type }) => type === "compaction_end").length;
    };
    const made = await Promise.all(["ada", "bob", "cid"].map(work));
    const checkpointer = await open();
    const log = await wholeLog(checkpointer);
    for (const runId of done) {
      expect(log.filter(({ run_id }) => run_id === runId).map(({ role }) => role)).toEqual(["user", "assistant"]);
    }
    expect(new Set(done).size).toBe(24);
    const archives = (await checkpointer.archives?.list(THREAD))?.items ?? [];
    expect(archives.length).toBe(made.reduce((a, b) => a + b));
    expect(archives.length).toBeGreaterThan(2);
  });
});

test("L7 three processes prompt and compact one thread: every acknowledged turn is in it, once and whole", async () => {
  const file = new TestFile();
  const writer = new URL("./compaction-writer.ts", import.meta.url);
  const children = ["ada", "bob", "cid"].map((name) => ended(startChild(writer, [file.path, name, "10"])));
  const reports = await Promise.all(children);
  expect(reports.map(({ code, stderr }) => ({ code, stderr }))).toEqual(reports.map(() => ({ code: 0, stderr: "" })));
  const said = reports.flatMap(({ lines }) => lines.map((line) => JSON.parse(line)));
  const checkpointer = await file.open();
  const log = await wholeLog(checkpointer);
  const runs = said.flatMap(({ runId }) => runId ?? []);
  expect(runs).toHaveLength(30);
  for (const runId of runs) {
    expect(log.filter(({ run_id }) => run_id === runId).map(({ role }) => role)).toEqual(["user", "assistant"]);
  }
  const made = said.reduce((sum, { compactions = 0 }) => sum + compactions, 0);
  expect((await checkpointer.archives?.list(THREAD))?.items.length).toBe(made);
  expect(made).toBeGreaterThan(2);
});
