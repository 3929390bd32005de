/** Messages as bytes: JSON text, as SQLite files hold it, and msgpack, as Postgres and MySQL tables hold it. */
import { Decoder, encode } from "@msgpack/msgpack";
import { messageOf } from "../errors.ts";
import { newId } from "../util/ids.ts";
import { checkStored } from "./admit.ts";
import { InvalidMessageError } from "./errors.ts";
import { copyJsonObject, isJsonObject, type JsonObject, type JsonValue, MAX_DEPTH, setOwn } from "./json.ts";
import type { Message } from "./schema.ts";

/**
 * An admitted message as the text that is stored.
 *
 * @throws InvalidMessageError when that text is longer than a JavaScript string can be (about 512 MB)
 */
export function messageToJson(message: Message): string {
  try {
    return JSON.stringify(message);
  } catch (error) {
    throw new InvalidMessageError("message", `is too large to store: ${messageOf(error)}.`, { cause: error });
  }
}

/** @throws SyntaxError when it is not JSON @throws InvalidMessageError when it is not a message */
export function messageFromJson(text: string): Message {
  return checkStored(JSON.parse(text));
}

export function messageToMsgpack(message: Message): Uint8Array {
  // The message is one level, and what it holds may be MAX_DEPTH deep.
  return encode(message, { maxDepth: MAX_DEPTH + 2 });
}

/** @throws InvalidMessageError when the bytes are not msgpack of JSON values, or not a message */
export function messageFromMsgpack(bytes: Uint8Array): Message {
  let value: unknown;
  const keys = new KeyDecoder();
  try {
    // Hardly any message has such a key: the others are read with the decoder's own cache of keys, which is much faster.
    const decoder = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(PROTO)
      ? new Decoder({ keyDecoder: keys })
      : cachingDecoder;
    value = decoder.decode(bytes);
  } catch (error) {
    throw new InvalidMessageError("message", "the bytes are not msgpack.", { cause: error });
  }
  // Msgpack can hold what JSON can't (bytes, dates, NaN): the copy refuses it. What has just been decoded is nobody else's, so
  // where nothing is to be refused or mended it need not be copied.
  const message = isJsonObject(value) && isJson(value, 0) ? value : copyJsonObject(value, "message");
  return checkStored(keys.found ? restoreProto(message) : message);
}

/** Whether a copy of the value would be the same. Gives up on deep values, and leaves them to the copy. */
function isJson(value: unknown, depth: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || value === null) return value === null || typeof value === "boolean";
  if (depth === MAX_DEPTH / 2) return false;
  if (Array.isArray(value)) return value.every((item) => isJson(item, depth + 1));
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const key in value) {
    if (!key.isWellFormed() || !isJson((value as JsonObject)[key], depth + 1)) return false;
  }
  return true;
}

// The decoder refuses the key `__proto__`, which is an ordinary key here; so it is read under another name first.
const PROTO = "__proto__";
const STAND_IN = `${PROTO}${newId()}`;
const cachingDecoder = new Decoder();

class KeyDecoder {
  found = false;

  canBeCached(byteLength: number): boolean {
    return byteLength === PROTO.length;
  }

  decode(bytes: Uint8Array, offset: number, byteLength: number): string {
    const key = Buffer.from(bytes.buffer, bytes.byteOffset + offset, byteLength).toString();
    if (key !== PROTO) return key;
    this.found = true;
    return STAND_IN;
  }
}

function restoreProto(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(restoreProto);
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, item] of Object.entries(value)) setOwn(copy, key === STAND_IN ? PROTO : key, restoreProto(item));
  return copy;
}
