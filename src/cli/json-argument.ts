/** JSON given as an option. */
import { messageOf } from "../errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../messages/json.ts";
import { UsageError } from "./errors.ts";

/** @param option how it is called, for the error @throws UsageError when it is not JSON */
export function parseJson(text: string, option: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new UsageError(`${option} takes JSON: ${messageOf(error)}.`, { cause: error });
  }
}

/** @throws UsageError when it is not a JSON object */
export function parseJsonObject(text: string, option: string): JsonObject {
  const value = parseJson(text, option);
  if (!isJsonObject(value)) throw new UsageError(`${option} takes a JSON object, such as {"key":"value"}.`);
  return value;
}
