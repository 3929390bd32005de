/** How one asks the offline model to call tools: `call <tool> {json}`, several in a message or one a line. */
import { isJsonObject, type JsonObject } from "../messages/json.ts";

/** A call that a message asks for. `problem` says why its arguments can't be read. */
export interface AskedCall {
  name: string;
  arguments: JsonObject;
  problem?: string;
}

const CALL = /(?<![\w-])(?:call|use)\s+(?:the\s+)?(?:tool\s+)?["'`]?([\w.-]*\w)["'`]?(?:\s+with\b)?\s*/gi;

/**
 * Finds the calls that a message asks for. Without arguments in braces "use" and "call" are ordinary words, so then they
 * count only before the name of an offered tool, or when the message says nothing else.
 */
export function callsAsked(text: string, offered: readonly string[]): AskedCall[] {
  const calls: AskedCall[] = [];
  let end = 0;
  for (const match of text.matchAll(CALL)) {
    // "call" can also be a word inside the arguments of the call before.
    if (match.index < end) continue;
    const name = match[1] ?? "";
    const start = match.index + match[0].length;
    if (text[start] === "{") {
      end = endOfObject(text, start);
      calls.push({ name, ...parseArguments(text.slice(start, end)) });
    } else if (offered.includes(name) || /^\W*$/.test(text.slice(0, match.index) + text.slice(start))) {
      calls.push({ name, arguments: {} });
    }
  }
  return calls;
}

/** The index after the brace that closes the object, or the end of the text when none does. */
function endOfObject(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const char = text[i];
    if (quoted && char === "\\") i++;
    else if (char === '"') quoted = !quoted;
    else if (!quoted && char === "{") depth++;
    else if (!quoted && char === "}" && --depth === 0) return i + 1;
  }
  return text.length;
}

function parseArguments(json: string): Pick<AskedCall, "arguments" | "problem"> {
  try {
    const value: unknown = JSON.parse(json);
    return isJsonObject(value) ? { arguments: value } : { arguments: {}, problem: "they are not an object" };
  } catch (error) {
    return { arguments: {}, problem: error instanceof Error ? error.message : String(error) };
  }
}
