/** What the servers' measures write: the turns of an agent, in English prose, which compresses as what people and models say does. */
import { readdirSync, readFileSync } from "node:fs";
import { assistantMessage, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";

const DOCS = new URL("../../docs/", import.meta.url);
const PROSE = readdirSync(DOCS)
  .filter((name) => name.endsWith(".md"))
  .sort()
  .map((name) => readFileSync(new URL(name, DOCS), "utf8"))
  .join("\n");

/** One run: a question, a call of a tool, its result and an answer. */
export interface Turn {
  runId: string;
  messages: Message[];
}

/** So many characters of prose, of another place for each number. */
function prose(number: number, length: number): string {
  const start = (number * 487) % (PROSE.length - length);
  return PROSE.slice(start, start + length);
}

/** A turn of about 2,000 characters. */
export function turnOf(number: number): Turn {
  const runId = `run-${number}`;
  const path = `docs/page-${number}.md`;
  const call = { type: "tool_call", id: `call_${number}`, name: "read_file", arguments: { path } } as const;
  const usage = { input_tokens: 1000 + number, output_tokens: 120, cache_read_tokens: 900, cache_write_tokens: 50 };
  const of = { provider_id: "anthropic", model_id: "claude-sonnet-4-6", run_id: runId, usage };
  const said = { type: "text", text: prose(4 * number + 1, 150) } as const;
  const messages = [
    userMessage(prose(4 * number, 300), { run_id: runId }),
    assistantMessage([said, call], { ...of, stop_reason: "tool_use" }),
    toolResultMessage(call, prose(4 * number + 2, 1000), { run_id: runId }),
    assistantMessage(prose(4 * number + 3, 500), { ...of, stop_reason: "stop" }),
  ];
  return { runId, messages };
}

/** A conversation of so many messages, four of them a turn. */
export function conversationOf(messages: number): Turn[] {
  return Array.from({ length: messages / 4 }, (_, i) => turnOf(i));
}
