/**
 * JSON in jsonb columns. Postgres refuses U+0000 there, so a text (or key) that holds one is stored with a mark before it,
 * its backslashes doubled and each U+0000 written as `\0`. Any other text is stored as it is, for others to read; only one
 * that begins with the mark itself is marked once more, so that every text comes back exactly.
 */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from "../../messages/json.ts";

const MARK = "everthread-nul:";

/** JSON text for a jsonb column. */
export function toJsonb(value: JsonValue): string {
  const json = JSON.stringify(value);
  // A mere backslash before "u0000" looks the same here: then the walk finds nothing to change.
  return json.includes("\\u0000") || json.includes(MARK) ? JSON.stringify(mapTexts(value, escapeText)) : json;
}

/** What a jsonb column holds. @throws SyntaxError when it is not JSON */
export function fromJsonb(text: string): JsonValue {
  if (text === "{}") return {};
  const value = JSON.parse(text) as JsonValue;
  return text.includes(MARK) ? mapTexts(value, unescapeText) : value;
}

/** A text as it stands within jsonb. */
export function escapeText(text: string): string {
  if (!text.includes("\0") && !text.startsWith(MARK)) return text;
  return MARK + text.replaceAll("\\", "\\\\").replaceAll("\0", "\\0");
}

function unescapeText(stored: string): string {
  if (!stored.startsWith(MARK)) return stored;
  const text = stored.slice(MARK.length).replace(/\\(0|\\)/g, (_, char) => (char === "0" ? "\0" : "\\"));
  // Another program's text may begin with the mark by chance; what escapeText would not have written is left alone.
  return escapeText(text) === stored ? text : stored;
}

function mapTexts(value: JsonValue, map: (text: string) => string): JsonValue {
  if (typeof value === "string") return map(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map));
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, item] of Object.entries(value)) setOwn(copy, map(key), mapTexts(item, map));
  return copy;
}
