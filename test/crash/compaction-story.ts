/**
 * A child whose agent compacts its thread three times, at the start of a prompt and twice within a run, and kills itself at
 * one step of that: before the n-th is asked for, or right after it was done. Steps are the call of the model that
 * writes the summary, the store's compaction, and its retention. Every acknowledged message is reported on stdout first.
 *
 * argv: engine, directory, n, "before" | "after"
 */
import { appendFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Agent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools.ts";
import type { ArchiveStore } from "../../src/checkpoint/archives.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { text, toolCall } from "../../src/messages/construct.ts";
import type { AssistantBlock } from "../../src/messages/schema.ts";
import type { Model, ModelEvent } from "../../src/model/model.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";

export const THREAD = "story";
/** Three compactions of three steps. */
export const STEPS = 9;

export type Engine = "json" | "sqlite";

export function openStore(engine: Engine, dir: string): Promise<Checkpointer> {
  return engine === "json"
    ? JsonCheckpointer.open({ state: join(dir, "state.json"), memory: join(dir, "memory") })
    : SqliteCheckpointer.open(join(dir, "state.db"));
}

/** The agent of the story; what its tools did is in `effects`, beside the store. */
export function storyAgent(
  checkpointer: Checkpointer,
  dir: string,
  answers: [AssistantBlock[], number][],
  summaries: Model,
) {
  const look = defineTool({
    name: "look",
    description: "look",
    parameters: { type: "object" },
    execute: (_args, { toolCallId }) => {
      appendFileSync(join(dir, "effects"), `${toolCallId}\n`);
      return `saw ${toolCallId}`;
    },
  });
  const script = answers.map(([content, input_tokens]) => ({
    content,
    usage: { input_tokens, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
  }));
  return new Agent({
    model: new ScriptedModel(script),
    tools: [look],
    compaction: { triggerTokens: 1000, keepTokens: 0, keepArchives: 2, model: summaries },
    checkpointer,
    threadId: THREAD,
  });
}

export const summariser = (): ScriptedModel =>
  new ScriptedModel(Array.from({ length: 5 }, (_, i) => `The summary of number ${i + 1}.`));

if (import.meta.url === `file://${process.argv[1]}`) {
  const [, , engine = "", dir = "", n = "0", when = ""] = process.argv;
  const checkpointer = await openStore(engine as Engine, dir);
  let steps = 0;
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = ++steps === Number(n);
    if (mine && when === "before") process.kill(process.pid, "SIGKILL");
    const result = await work();
    if (mine && when === "after") process.kill(process.pid, "SIGKILL");
    return result;
  };

  const { append } = checkpointer;
  checkpointer.append = async (...args) => {
    const revision = await append.apply(checkpointer, args);
    // Synchronous, so that it is out before a kill.
    for (const message of args[1]) writeSync(1, `${JSON.stringify(message)}\n`);
    return revision;
  };
  const archives = checkpointer.archives as ArchiveStore;
  const { compact, prune } = archives;
  archives.compact = (...args) => step(() => compact.apply(archives, args));
  archives.prune = (...args) => step(() => prune.apply(archives, args));
  const writer = summariser();
  const summaries: Model = {
    providerId: "story",
    modelId: "summaries",
    async *stream(request) {
      yield* await step(async () => {
        const events: ModelEvent[] = [];
        for await (const event of writer.stream(request)) events.push(event);
        return events;
      });
    },
  };

  const agent = storyAgent(
    checkpointer,
    dir,
    [
      [[text("Noted: the anchor word is zebra-1.")], 1000],
      [[text("Thinking aloud."), toolCall("c1", "look")], 300],
      [[toolCall("c2", "look")], 1200],
      [[toolCall("c3", "look")], 400],
      [[toolCall("c4", "look")], 1300],
      [[text("done")], 500],
    ],
    summaries,
  );
  await agent.prompt("Remember zebra-1.", { runId: "run-1" });
  await agent.prompt("Look for zebra-2.", { runId: "run-2" });
  await checkpointer.close();
}
