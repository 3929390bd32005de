/**
 * `readable.md`: a conversation as Markdown for people. It is only ever written. Whatever a message holds stands in code
 * blocks, so nothing in it can pass for a heading, load an image or run in a page.
 */
import type { Message } from "../messages/schema.ts";
import { writeFileAtomic } from "../util/atomic-file.ts";
import { firstUnits, harmless, harmlessLine } from "../util/text.ts";

export interface ReadableOptions {
  /** What stands for older messages that are no longer in the context. (Default: none) */
  summary?: string | undefined;
  /** How much of each text is shown, in UTF-16 units, at least 1. (Default: 4000) */
  maxLength?: number | undefined;
  /** How many messages are shown, the newest. (Default: 1000) */
  maxMessages?: number | undefined;
}

const NAMES: Record<string, string> = { user: "User", assistant: "Assistant", tool_result: "Tool result" };
const LONGEST_NAME = 100;
/** Each part ends at a character that it can't hold, so that no text takes long. */
const DATA_URL = /data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[\w.+-]*)*;base64,([A-Za-z0-9+/=_-]{64,})/g;

/**
 * Writes a conversation to a file, whole or not at all.
 *
 * @throws FileWriteError
 */
export async function writeReadable(
  path: string,
  messages: readonly Message[],
  options: ReadableOptions = {},
): Promise<void> {
  await writeFileAtomic(path, readableMarkdown(messages, options));
}

/**
 * A conversation as Markdown. Long texts are clipped and say how much is left out; images, data URLs and what programs alone
 * read (`details`, metadata, signatures) are left out. Control characters and overrides of direction are made visible.
 */
export function readableMarkdown(messages: readonly Message[], options: ReadableOptions = {}): string {
  const { summary, maxLength = 4000, maxMessages = 1000 } = options;
  const parts = ["# Conversation", "Written for people; the session itself is stored elsewhere."];
  if (summary !== undefined) parts.push("## Summary of what came before", fenced(summary, maxLength));
  const skipped = Math.max(0, messages.length - maxMessages);
  if (skipped > 0) parts.push(`*${grouped(skipped)} earlier messages are left out here.*`);
  for (const [i, message] of messages.slice(skipped).entries()) {
    parts.push(headingOf(message, skipped + i + 1), ...bodyOf(message, maxLength));
  }
  return `${parts.join("\n\n")}\n`;
}

function headingOf(message: Message, number: number): string {
  const { role, timestamp } = message;
  // A newer version may have stored another role.
  const facts = [Object.hasOwn(NAMES, role) ? NAMES[role] : inCode(String(role))];
  if (role === "tool_result") facts.push(inCode(String(message.tool_name)), ...(message.is_error ? ["failed"] : []));
  if (role === "assistant" && message.model_id) facts.push(inCode(message.model_id));
  const time = new Date((timestamp ?? Number.NaN) * 1000);
  if (!Number.isNaN(time.getTime())) facts.push(`${time.toISOString().slice(0, 19).replace("T", " ")} UTC`);
  return `## ${number}. ${facts.join(" · ")}`;
}

function bodyOf(message: Message, maxLength: number): string[] {
  const blocks: unknown[] = Array.isArray(message.content) ? message.content : [];
  const parts = blocks.map((block) => blockAsMarkdown((block ?? {}) as Record<string, unknown>, maxLength));
  if (message.role === "assistant" && message.error_message) {
    parts.push(`The model failed:\n\n${fenced(message.error_message, maxLength)}`);
  }
  return parts.length > 0 ? parts : ["*(empty)*"];
}

function blockAsMarkdown(block: Record<string, unknown>, maxLength: number): string {
  switch (block.type) {
    case "text":
      return fenced(String(block.text), maxLength);
    case "thinking":
      return block.thinking === ""
        ? "*(hidden reasoning)*"
        : `Reasoning:\n\n${fenced(String(block.thinking), maxLength)}`;
    case "image":
      return imageNote(String(block.media_type), String(block.source));
    case "tool_call": {
      const input = block.invalid_arguments ?? JSON.stringify(block.arguments, undefined, 2);
      return `Calls ${inCode(String(block.name))}:\n\n${fenced(String(input), maxLength, "json")}`;
    }
    default:
      return `[a block of type ${inCode(String(block.type))}]`;
  }
}

function imageNote(mediaType: string, source: string): string {
  if (/^https?:/i.test(source)) return `[image: ${inCode(mediaType)}, ${inCode(source)}]`;
  const data = source.slice(source.startsWith("data:") ? source.indexOf(",") + 1 : 0);
  const plain = /^[\w.+-]+\/[\w.+-]+$/.test(mediaType) ? mediaType : inCode(mediaType);
  return `[image: ${plain}, ${bytesInBase64(data.length)}]`;
}

/** A text in a code block that it can't end: the fence is longer than any run of backticks in it. */
function fenced(text: string, maxLength: number, language = "text"): string {
  const whole = text.replace(DATA_URL, dataNote);
  const start = firstUnits(whole, maxLength);
  const shown = harmless(start);
  const fence = "`".repeat(Math.max(3, longestRun(shown) + 1));
  const rest = whole.length - start.length;
  const note = rest > 0 ? `\n\n*${grouped(rest)} more characters are left out here.*` : "";
  return `${fence}${language}\n${shown}\n${fence}${note}`;
}

function dataNote(_all: string, mediaType: string | undefined, data: string): string {
  return `[${mediaType ?? "data"}, ${bytesInBase64(data.length)}]`;
}

/** A name as inline code, on one line. */
function inCode(text: string): string {
  const start = firstUnits(text, LONGEST_NAME);
  const shown = harmlessLine(start) + (start === text ? "" : "…");
  const ticks = "`".repeat(longestRun(shown) + 1);
  // Markdown takes away one space on each side, and needs them beside a backtick.
  return `${ticks} ${shown} ${ticks}`.replace(/^` (?=[^`\s])([^`]*[^`\s]) `$/, "`$1`");
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

function bytesInBase64(length: number): string {
  const bytes = Math.floor((length * 3) / 4);
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** 12345 as "12,345". */
function grouped(number: number): string {
  return number.toLocaleString("en-US");
}
