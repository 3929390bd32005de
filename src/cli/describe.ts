/** Messages and questions as people read them on a terminal. All stored text is made harmless here. */
import type { LogEntry } from "../checkpoint/checkpointer.ts";
import type { PendingPayload, Question } from "../checkpoint/pending.ts";
import type { JsonValue } from "../messages/json.ts";
import type { Block, Message } from "../messages/schema.ts";
import { harmless, harmlessLine } from "../util/text.ts";
import { oneLine } from "./errors.ts";
import type { Terminal } from "./terminal.ts";
import { count } from "./text.ts";

const INLINE = 60;

/** One message of a log: a heading, and what it holds, indented so that no text can pass for a heading. */
export function describeEntry(entry: LogEntry, out: Terminal): string {
  if (entry.error)
    return `${out.style("red", "damaged")} ${oneLine(entry.error.rowRef)}\n${indent(oneLine(entry.error))}`;
  const { message, position } = entry;
  const about = [`#${position}`];
  if (typeof message.timestamp === "number") about.push(timeOf(message.timestamp));
  if (message.role === "assistant" && message.model_id) about.push(harmlessLine(message.model_id));
  if (message.role === "tool_result") about.push(harmlessLine(message.tool_call_id));
  const heading = `${out.style("bold", out.style(COLOURS[message.role], titleOf(message)))} ${out.style("dim", about.join(" · "))}`;
  const parts = (message.content as Block[]).map((block) => describeBlock(block, out));
  return [heading, ...parts, ...endingOf(message, out)].filter((part) => part !== "").join("\n");
}

const COLOURS = { user: "green", assistant: "cyan", tool_result: "yellow" } as const;

function titleOf(message: Message): string {
  if (message.role !== "tool_result") return message.role;
  return `${harmlessLine(message.tool_name)} ${message.is_error ? "failed" : "said"}`;
}

function timeOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : `${date.toISOString().slice(0, 16).replace("T", " ")}Z`;
}

function describeBlock(block: Block, out: Terminal): string {
  switch (block.type) {
    case "text":
      return indent(harmless(block.text));
    case "thinking":
      return out.style("dim", indent(harmless(block.thinking)));
    case "image":
      return out.style("dim", indent(`[image: ${harmlessLine(block.media_type)}, ${imageSize(block.source)}]`));
    case "tool_call":
      return indent(`${out.style("yellow", "calls")} ${harmlessLine(block.name)} ${describeJson(block.arguments)}`);
    default:
      return out.style("dim", indent(`[${harmlessLine(String((block as { type: unknown }).type))}]`));
  }
}

function imageSize(source: string): string {
  return /^https?:/.test(source) ? harmlessLine(source.slice(0, 200)) : count(source.length, "character");
}

function endingOf(message: Message, out: Terminal): string[] {
  if (message.role !== "assistant") return [];
  if (message.stop_reason === "aborted") return [out.style("red", indent("(stopped)"))];
  if (message.error_message) return [out.style("red", indent(`error: ${harmlessLine(message.error_message)}`))];
  return [];
}

/** JSON on one line when it is short. */
export function describeJson(value: JsonValue): string {
  const line = JSON.stringify(value);
  return line.length <= INLINE ? harmlessLine(line) : harmless(JSON.stringify(value, null, 2));
}

/** What a thread waits on, in a few lines. */
export function describeQuestion(payload: PendingPayload): string {
  const details = "details" in payload && payload.details ? `\n${describeJson(payload.details)}` : "";
  if (payload.kind === "approve") {
    return `May ${harmlessLine(payload.tool_name)} run? ${describeJson(payload.args)}${details}`;
  }
  if (payload.kind === "confirm") return `${harmless(payload.prompt)}${details}`;
  return payload.questions.map(describeOne).join("\n");
}

function describeOne({ key, prompt, options, multi_select }: Question): string {
  const choices = (options ?? []).map(({ value, label }) => `\n  ${harmlessLine(value)}: ${harmlessLine(label)}`);
  return `${harmlessLine(key)}: ${harmless(prompt)}${multi_select ? " (several may be chosen)" : ""}${choices.join("")}`;
}

/** The beginning of a message, on one line. */
export function previewOf(message: Message): string {
  const block = (message.content as Block[]).find(({ type }) => type === "text" || type === "tool_call");
  if (block?.type === "tool_call") return `calls ${harmlessLine(block.name)}`;
  const text = block?.type === "text" ? block.text.slice(0, 500).trim() : "";
  return harmlessLine(text.split(/\r?\n/, 1)[0] ?? "");
}

export function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
