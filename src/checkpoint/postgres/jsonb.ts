/** JSON in jsonb columns, each text and key of it stored as `db/postgres-text.ts` says. */
import { escapeText, MARK, unescapeText } from "../../db/postgres-text.ts";
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from "../../messages/json.ts";

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

function mapTexts(value: JsonValue, map: (text: string) => string): JsonValue {
  if (typeof value === "string") return map(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map));
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, item] of Object.entries(value)) setOwn(copy, map(key), mapTexts(item, map));
  return copy;
}
