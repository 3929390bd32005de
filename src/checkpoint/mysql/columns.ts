/**
 * JSON in JSON columns. MariaDB takes up to 31 containers within each other there and MySQL up to 100, and a value may have
 * more: then what lies deeper is stored as its text, in an object of one key. A value that looks like such an object is
 * stored in this way itself, so that every value comes back exactly.
 */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from "../../messages/json.ts";

const KEY = "everthread:json";
const MAX_LEVELS = 30;

/** JSON text for a JSON column. */
export function toColumn(value: JsonValue): string {
  return JSON.stringify(shallow(value, 1));
}

/** What a JSON column holds. @throws SyntaxError when it is not JSON */
export function fromColumn(text: unknown): JsonValue {
  if (typeof text !== "string") throw new TypeError("the column holds no text.");
  const value = JSON.parse(text) as JsonValue;
  return text.includes(KEY) ? whole(value) : value;
}

function shallow(value: JsonValue, level: number): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  const items = Object.values(value);
  const tooDeep = level === MAX_LEVELS && items.some((item) => typeof item === "object" && item !== null);
  if (tooDeep || textWithin(value) !== undefined) return { [KEY]: JSON.stringify(value) };
  return mapItems(value, (item) => shallow(item, level + 1));
}

function whole(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  const text = textWithin(value);
  return text === undefined ? mapItems(value, whole) : (JSON.parse(text) as JsonValue);
}

/** The text of an object that stands for a value. */
function textWithin(value: JsonValue): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const [text, ...more] = Object.values(value);
  return Object.hasOwn(value, KEY) && more.length === 0 && typeof text === "string" ? text : undefined;
}

function mapItems(value: JsonValue[] | JsonObject, map: (item: JsonValue) => JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(map);
  const copy: JsonObject = {};
  for (const [key, item] of Object.entries(value)) setOwn(copy, key, map(item));
  return copy;
}
