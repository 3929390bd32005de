/** What the tests of compaction share: stores that keep archives, answers with usage, a model that writes summaries. */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Agent, type AgentOptions } from "../../src/agent/agent.ts";
import type { AgentEvent } from "../../src/agent/events.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { text, toolCall } from "../../src/messages/construct.ts";
import type { AssistantBlock } from "../../src/messages/schema.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { tempDir } from "../support/temp.ts";
import { lines, TestFile, THREAD } from "./support.ts";

/** Stores by name; each gives a function that opens the same store again, as another process would. */
export const stores: [name: string, () => () => Promise<Checkpointer>][] = [
  [
    "memory",
    () => {
      const store = new MemoryCheckpointer();
      return async () => store;
    },
  ],
  [
    "JSON",
    () => {
      const dir = tempDir();
      return () => closed(JsonCheckpointer.open({ state: join(dir, "state.json"), memory: join(dir, "memory") }));
    },
  ],
  [
    "SQLite",
    () => {
      const file = new TestFile();
      return () => file.open();
    },
  ],
];

async function closed<C extends Checkpointer>(opening: Promise<C>): Promise<C> {
  const checkpointer = await opening;
  onTestFinished(() => checkpointer.close());
  return checkpointer;
}

/** An answer for which the provider counted so many tokens of input, a part of them cached. */
export function answer(content: string | AssistantBlock[], tokens: number): ScriptedAnswer {
  const usage = {
    input_tokens: Math.floor(tokens / 2),
    output_tokens: 1,
    cache_read_tokens: Math.floor(tokens / 4),
    cache_write_tokens: tokens - Math.floor(tokens / 2) - Math.floor(tokens / 4),
  };
  return { content: typeof content === "string" ? [text(content)] : content, usage };
}

export const callsTool = (id: string, tokens: number, name = "look"): ScriptedAnswer =>
  answer([toolCall(id, name)], tokens);

/** Says "summary 1", "summary 2", … */
export function summariser(answers?: ScriptedAnswer[]): ScriptedModel {
  return new ScriptedModel(answers ?? Array.from({ length: 20 }, (_, i) => `summary ${i + 1}`));
}

export interface Compacting {
  agent: Agent;
  model: ScriptedModel;
  summaries: ScriptedModel;
  events: AgentEvent[];
  /** What the last model call was sent, in lines. */
  sent(): string[];
}

/** An agent that compacts at 1,000 tokens and keeps nothing but what must stay. */
export function compacting(
  checkpointer: Checkpointer | undefined,
  answers: ScriptedAnswer[],
  { compaction, ...options }: Partial<AgentOptions> = {},
): Compacting {
  const events: AgentEvent[] = [];
  const model = new ScriptedModel(answers);
  const summaries = (compaction?.model as ScriptedModel | undefined) ?? summariser();
  const agent = new Agent({
    model,
    ...(checkpointer ? { checkpointer, threadId: THREAD } : {}),
    compaction: { triggerTokens: 1000, keepTokens: 0, model: summaries, ...compaction },
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { agent, model, summaries, events, sent: () => lines(model.requests.at(-1)?.messages ?? []) };
}

/** The events about compaction, in short. */
export const compactions = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => {
    if (event.type === "compaction_start")
      return [`start ${event.messageCount}+${event.kept} of ${event.tokensBefore}`];
    if (event.type === "compaction_end") return [`end ${event.archiveId} ${event.summary}`];
    if (event.type === "compaction_failed" || event.type === "retention_failed") {
      return [`${event.type}: ${event.error.message}`];
    }
    return [];
  });

/** The line of the message that a summary is sent as. */
export const summaryLine = (summary: string): string =>
  `user The earlier part of this conversation was set aside. This summary stands in its place:\n\n<summary>\n${summary}\n</summary>\n\nThe conversation goes on from there.`;
