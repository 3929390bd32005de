/**
 * A model for demos and tests without a network or a key. It follows a few rules and is no language model, and says so
 * when no rule fits. It has no state: all it knows is in the request's messages.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { text, textOf, toolCall } from "../messages/construct.ts";
import type { AssistantBlock, Message, ToolResultMessage } from "../messages/schema.ts";
import { quotedMessages } from "../messages/summary.ts";
import { newId } from "../util/ids.ts";
import type { Model, ModelEvent, ModelRequest, ToolSpec } from "./model.ts";
import { callsAsked } from "./offline-calls.ts";
import { factsIn, recall, subjectAsked } from "./offline-facts.ts";
import { goOnLookingUp, lookUp } from "./offline-memory.ts";

const WAIT = /^\s*wait\s+(\d{1,6})\s*ms\b/i;

export class OfflineModel implements Model {
  readonly providerId = "offline";
  readonly modelId = "rules";

  /** Streams the answer of the first rule that fits, word by word. Usage is counted in words. */
  async *stream(request: ModelRequest): AsyncGenerator<ModelEvent> {
    const { messages, signal } = request;
    signal?.throwIfAborted();
    await waitAsTold(messages.at(-1), signal);
    const content = answer(request);
    for (const block of content) {
      if (block.type === "text") {
        for (const delta of block.text.match(/\S+\s*|\s+/g) ?? []) {
          signal?.throwIfAborted();
          yield { type: "text_delta", delta };
        }
      } else if (block.type === "tool_call") {
        signal?.throwIfAborted();
        yield { type: "tool_call_delta", id: block.id, name: block.name, delta: JSON.stringify(block.arguments) };
      }
    }
    yield {
      type: "finish",
      content,
      stop_reason: content.some((block) => block.type === "tool_call") ? "tool_use" : "stop",
      usage: {
        input_tokens: words(request.system ?? "") + words(messages.map(wording).join(" ")),
        output_tokens: words(wording({ content })),
        cache_read_tokens: 0,
        cache_write_tokens: 0,
      },
      response_id: null,
    };
  }
}

function answer({ messages, tools }: ModelRequest): AssistantBlock[] {
  const last = messages.at(-1);
  if (last?.role === "tool_result") return goOnLookingUp(messages) ?? [text(report(messages))];
  if (last?.role !== "user") return [text(`Say something first. ${introduction(tools)}`)];
  const said = textOf(last);
  const quoted = quotedMessages(said);
  return quoted ? [text(summaryOf(quoted))] : reply(said, messages, tools);
}

/** How many of the last messages a summary mentions, and how many words of each. */
const MENTIONED = 4;
const MENTIONED_WORDS = 12;

/** A summary by rules: how much there was, and how the last of it began. The rest can only be looked up. */
function summaryOf(quoted: readonly { role: string; text: string }[]): string {
  const spoken = quoted.filter(({ role, text }) => role !== "tool" && text.trim() !== "");
  const lines = spoken.slice(-MENTIONED).map(({ role, text }) => {
    const all = text.trim().split(/\s+/);
    return `- ${role}: ${all.slice(0, MENTIONED_WORDS).join(" ")}${all.length > MENTIONED_WORDS ? " …" : ""}`;
  });
  const head = `${quoted.length} messages were set aside. The offline model, which is no language model, noted the last of them:`;
  return [head, ...lines].join("\n");
}

/** One line for each result that came since the model last spoke. */
function report(messages: readonly Message[]): string {
  const since = messages.findLastIndex((message) => message.role !== "tool_result") + 1;
  const results = messages.slice(since) as ToolResultMessage[];
  return results
    .map((result) => {
      const said = textOf(result) || (result.content.length > 0 ? "(no text)" : "(nothing)");
      return `${result.tool_name} ${result.is_error ? "failed" : "said"}: ${said}`;
    })
    .join("\n");
}

function reply(said: string, messages: readonly Message[], tools: readonly ToolSpec[]): AssistantBlock[] {
  const names = tools.map((tool) => tool.name);
  const calls = callsAsked(said, names);
  if (calls.length > 0) {
    const unknown = calls.filter((call) => !names.includes(call.name)).map((call) => call.name);
    if (unknown.length > 0) return [text(`I have no tool called ${unknown.join(" or ")}. ${toolList(tools)}`)];
    const unreadable = calls.find((call) => call.problem);
    if (unreadable) return [text(`I can't read the arguments of ${unreadable.name}: ${unreadable.problem}.`)];
    return calls.map((call) => toolCall(`call_${newId()}`, call.name, call.arguments));
  }
  const waited = WAIT.exec(said);
  if (waited) return [text(`I waited ${waited[1]} ms.`)];
  const subject = subjectAsked(said);
  if (subject) {
    const value = recall(messages, subject);
    if (value) return [text(`You said ${value}.`)];
    const looking = lookUp(subject, tools);
    if (looking) return looking;
    return [text(`I don't know your ${subject}: nobody has said it in this thread.`)];
  }
  const facts = factsIn(said);
  if (facts.length > 0) {
    const list = facts.map((fact) => `your ${fact.subject} is ${fact.value}`).join(", and ");
    return [text(`I will remember that ${list}.`)];
  }
  return [text(`I have no rule for that. ${introduction(tools)}`)];
}

function introduction(tools: readonly ToolSpec[]): string {
  return (
    "I am the offline model: a few rules, not a language model. " +
    'Tell me "my favourite colour is teal" and ask "What is my favourite colour?", ' +
    `or say "call <tool> {json arguments}". ${toolList(tools)}`
  );
}

function toolList(tools: readonly ToolSpec[]): string {
  if (tools.length === 0) return "There are no tools here.";
  return `The tools here: ${tools.map((tool) => tool.name).join(", ")}.`;
}

/** "wait 500 ms" makes an answer slow, for trying out what happens meanwhile. */
async function waitAsTold(last: Message | undefined, signal: AbortSignal | undefined): Promise<void> {
  const ms = last?.role === "user" ? WAIT.exec(textOf(last))?.[1] : undefined;
  if (ms === undefined) return;
  try {
    await sleep(Number(ms), undefined, signal ? { signal } : {});
  } catch {
    signal?.throwIfAborted();
  }
}

/** What a message says in words: its text, and its calls. */
function wording({ content }: { content: readonly AssistantBlock[] }): string {
  return content
    .map((block) =>
      block.type === "tool_call" ? `${block.name} ${JSON.stringify(block.arguments)}` : textOf({ content: [block] }),
    )
    .join(" ");
}

function words(value: string): number {
  return value.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
}
