/** The door for JSON: what may be kept, copied so that nobody can change it afterwards. */
import { messageOf } from "../errors.ts";
import { InvalidMessageError } from "./errors.ts";

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export type JsonObject = { [key: string]: JsonValue };

/** Containers within containers, counted from the value that is handed in. */
export const MAX_DEPTH = 500;

/**
 * Copies a value that is JSON and refuses any other.
 *
 * Properties that are undefined are left out; ill-formed text, in keys too, gets U+FFFD for each lone surrogate; -0
 * becomes 0, since JSON text can't keep it apart. `__proto__` is a key like any other.
 *
 * @param value what to copy
 * @param path how an error names the value
 * @throws InvalidMessageError naming the path of the first value that is not JSON
 */
export function copyJson(value: unknown, path: string): JsonValue {
  return new Copier(path).copyAll(value);
}

/** As {@link copyJson}, for a value that must be an object. */
export function copyJsonObject(value: unknown, path: string): JsonObject {
  const copy = copyJson(value, path);
  if (!isJsonObject(copy)) throw new InvalidMessageError(path, `must be an object, not ${nameOf(copy)}.`);
  return copy;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two JSON values are the same, whatever the order of their keys. */
export function sameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
  );
}

/** Gives a value that is a JSON object back. @throws InvalidMessageError when it is something else */
export function checkJsonObject(value: unknown): JsonObject {
  if (isJsonObject(value)) return value;
  throw new InvalidMessageError("value", `must be an object, not ${nameOf(value)}.`);
}

/**
 * Parses JSON that is to be written back: a number that JavaScript would write otherwise (Python's 2**64, or 1.0) keeps its
 * own text, as an opaque value that JSON.stringify writes as it was.
 */
export function parseKeepingNumbers(text: string): unknown {
  // Node has both since 22; TypeScript's library does not describe them yet.
  const json = JSON as typeof JSON & { rawJSON(text: string): unknown };
  const keep = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? json.rawJSON(context.source)
      : value;
  return JSON.parse(text, keep);
}

/** Sets an own property, also when it is called `__proto__`, which plain assignment would lose. */
export function setOwn<T>(target: { [key: string]: T }, key: string, value: T): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}

class Copier {
  readonly #keys: (string | number)[] = [];
  readonly #ancestors: object[] = [];
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Copies the whole. Reading a value may fail in ways of its own, since getters and proxies run code. */
  copyAll(value: unknown): JsonValue {
    try {
      return this.copy(value);
    } catch (error) {
      if (error instanceof InvalidMessageError) throw error;
      const problem = `the value can't be read: ${messageOf(error)}`;
      throw new InvalidMessageError(formatPath(this.#root, this.#keys), problem, { cause: error });
    }
  }

  copy(value: unknown): JsonValue {
    switch (typeof value) {
      case "string":
        return value.isWellFormed() ? value : value.toWellFormed();
      case "number":
        if (!Number.isFinite(value)) this.#refuse(`${value} is not JSON. Use null or a string.`);
        return value === 0 ? 0 : value;
      case "boolean":
        return value;
      case "bigint":
        return this.#refuse("a BigInt is not JSON. Convert it to a string or a number first.");
      case "object":
        if (value === null) return null;
        return this.#container(value);
      default:
        return this.#refuse(`${nameOf(value)} is not JSON.`);
    }
  }

  #container(value: object): JsonValue {
    if (this.#ancestors.includes(value)) this.#refuse("the value contains itself, and JSON can't say so.");
    if (this.#ancestors.length > MAX_DEPTH) this.#refuse(`values are nested deeper than ${MAX_DEPTH}.`);
    this.#ancestors.push(value);
    const copy = Array.isArray(value) ? this.#array(value) : this.#object(value);
    this.#ancestors.pop();
    return copy;
  }

  #array(value: unknown[]): JsonValue[] {
    const copy: JsonValue[] = [];
    for (let i = 0; i < value.length; i++) {
      this.#keys.push(i);
      if (!(i in value)) this.#refuse("the array has a hole here. Use null.");
      copy.push(this.copy(value[i]));
      this.#keys.pop();
    }
    return copy;
  }

  #object(value: object): JsonObject {
    const prototype: unknown = Object.getPrototypeOf(value);
    // The parent of a plain object's prototype is null in every realm; a class instance's is not.
    if (prototype !== null && (Object.getPrototypeOf(prototype) !== null || Object.hasOwn(value, Symbol.toStringTag))) {
      this.#refuse(`${nameOf(value)} is not JSON. Convert it to text, numbers or plain objects first.`);
    }
    const copy: JsonObject = {};
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      this.#keys.push(key);
      const wellFormed = key.isWellFormed() ? key : key.toWellFormed();
      if (wellFormed !== key && (Object.hasOwn(value, wellFormed) || Object.hasOwn(copy, wellFormed))) {
        this.#refuse("two keys would become one once their ill-formed text is mended. Rename one.");
      }
      setOwn(copy, wellFormed, this.copy(item));
      this.#keys.pop();
    }
    if (Object.getOwnPropertySymbols(value).length > 0) this.#refuse("a property named by a symbol is not JSON.");
    return copy;
  }

  #refuse(problem: string): never {
    throw new InvalidMessageError(formatPath(this.#root, this.#keys), problem);
  }
}

/** Writes a path as JavaScript would: `message.content[0].arguments["odd key"]`. */
export function formatPath(root: string, keys: readonly (string | number)[]): string {
  let path = root;
  for (const key of keys) {
    if (typeof key === "number") path += `[${key}]`;
    else if (/^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(key)) path += path === "" ? key : `.${key}`;
    else path += `[${JSON.stringify(key)}]`;
  }
  return path;
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value !== "object") return value === undefined ? "undefined" : `a ${typeof value}`;
  const name = (value.constructor as { name?: unknown } | undefined)?.name;
  if (name === "Object" || name === undefined) return "an object";
  return `an object of class ${String(name)}`;
}
