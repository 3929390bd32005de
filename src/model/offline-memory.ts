/** How the offline model looks up what it no longer sees: memory_search, memory_fetch of the best hit, then the answer. */
import { text, textOf, toolCall } from "../messages/construct.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../messages/json.ts";
import type { AssistantBlock, Message } from "../messages/schema.ts";
import { newId } from "../util/ids.ts";
import type { ToolSpec } from "./model.ts";
import { factAbout, subjectAsked } from "./offline-facts.ts";

const SEARCH = "memory_search";
const FETCH = "memory_fetch";

/** The search for a subject; undefined where there is no such tool. */
export function lookUp(subject: string, tools: readonly ToolSpec[]): AssistantBlock[] | undefined {
  if (!tools.some(({ name }) => name === SEARCH)) return undefined;
  return [toolCall(`call_${newId()}`, SEARCH, { query: subject })];
}

/** What follows a result of the two tools; undefined when the last message is none, or nothing was asked for. */
export function goOnLookingUp(messages: readonly Message[]): AssistantBlock[] | undefined {
  const last = messages.at(-1);
  const asked = messages.findLast((message) => message.role === "user");
  const subject = asked && subjectAsked(textOf(asked));
  if (last?.role !== "tool_result" || last.is_error || !subject) return undefined;
  const found = parsed(textOf(last));
  if (last.tool_name === SEARCH) {
    const hit = bestHit(found.hits, subject);
    if (!hit) return [text(`I looked, and found nothing about your ${subject}.`)];
    return [toolCall(`call_${newId()}`, FETCH, { archive_id: hit.archive_id ?? "", source_id: hit.source_id ?? "" })];
  }
  if (last.tool_name !== FETCH) return undefined;
  const value = factAbout(subject, String(found.text));
  return [text(value ? `I looked it up: you said ${value}.` : `I looked, and your ${subject} was not said there.`)];
}

/** The newest hit that tells the subject, else the newest. */
function bestHit(hits: JsonValue | undefined, subject: string): JsonObject | undefined {
  const list = (Array.isArray(hits) ? hits : []).filter(isJsonObject);
  return list.find(({ role, preview }) => role === "user" && factAbout(subject, String(preview))) ?? list[0];
}

function parsed(json: string): JsonObject {
  try {
    const value: unknown = JSON.parse(json);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
