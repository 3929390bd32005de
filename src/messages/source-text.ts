/**
 * What people and tools said in a message, as one text: what search looks through and `fetch` shows. Message text, the
 * names and arguments of tool calls, and textual tool results; not reasoning, not images, not the syntax of JSON.
 */
import { isJsonObject, type JsonValue } from "./json.ts";
import type { Block, Message } from "./schema.ts";

/** The text of a message; empty when it says nothing. The same for the same message, always. */
export function sourceText(message: Message): string {
  return (message.content as Block[]).flatMap((block) => textOfBlock(block) ?? []).join("\n");
}

function textOfBlock(block: Block): string | undefined {
  switch (block.type as string) {
    case "text":
      return (block as { text: string }).text;
    // A call that the provider runs itself is a call too.
    case "tool_call":
    case "provider_tool_call": {
      const { name, arguments: args, invalid_arguments } = block as { name: string } & Record<string, JsonValue>;
      const said = typeof invalid_arguments === "string" ? [invalid_arguments] : [];
      return [name, ...lines(args, ""), ...said].join("\n");
    }
    default:
      return undefined;
  }
}

/** Arguments as "key: value" lines. A value's own text stays as it is: a phrase in it is found whole. */
function lines(value: JsonValue | undefined, indent: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => entry("-", item, indent));
  if (isJsonObject(value)) return Object.entries(value).flatMap(([key, item]) => entry(`${key}:`, item, indent));
  return [];
}

function entry(label: string, value: JsonValue, indent: string): string[] {
  if (typeof value !== "object" || value === null) return [`${indent}${label} ${String(value)}`];
  return [`${indent}${label}`, ...lines(value, `${indent}  `)];
}
