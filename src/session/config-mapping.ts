/** One mapping of a configuration, read key by key; every error names the key, and the line when it came from YAML. */
import { type ConfigPlace, SessionConfigError } from "./errors.ts";
import { nearest } from "./nearest.ts";

/** Where the value of a key path is written, or the key itself. */
export type Locate = (path: readonly string[], what: "key" | "value") => ConfigPlace;

export class ConfigMapping {
  readonly #path: readonly string[];
  readonly #locate: Locate;
  readonly #values: Readonly<Record<string, unknown>>;

  /** @throws SessionConfigError when it is no mapping, or holds a key that is not `known`; one that is undefined counts as absent */
  constructor(value: unknown, path: readonly string[], known: readonly string[], locate: Locate) {
    this.#path = path;
    this.#locate = locate;
    if (!isMapping(value)) throw this.error([], `must be a mapping of keys to values, not ${nameOf(value)}.`);
    this.#values = value;
    for (const key of Object.keys(value)) {
      if (known.includes(key)) continue;
      const meant = nearest(key, known);
      throw this.error([key], `is not known. Did you mean ${meant}? Known are ${known.join(", ")}.`, "key");
    }
  }

  get(key: string): unknown {
    return Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.get(key);
    if (value === undefined) return fallback;
    if (typeof value !== "boolean") throw this.error([key], `must be true or false, not ${nameOf(value)}.`);
    return value;
  }

  choice<T extends string>(key: string, choices: readonly T[]): T | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value);
    if (found === undefined) throw this.error([key], `must be ${choices.join(" or ")}, not ${nameOf(value)}.`);
    return found;
  }

  /** A whole number in a range. */
  number(key: string, min: number, max: number): number | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
      throw this.error([key], `must be a whole number from ${min} to ${max}, not ${nameOf(value)}.`);
    }
    // -0 is 0.
    return value === 0 ? 0 : value;
  }

  /** A path as text: not empty, without U+0000, and nothing that another program would have expanded first. */
  path(key: string): string | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    const hint = value === null ? " In YAML, ~ alone means nothing; put text in quotes." : "";
    if (typeof value !== "string") throw this.error([key], `must be a path as text, not ${nameOf(value)}.${hint}`);
    const problem = problemOfPath(value);
    if (problem) throw this.error([key], problem);
    return value;
  }

  /** The mapping under a key; an absent one is empty. */
  under(key: string, known: readonly string[]): ConfigMapping {
    const value = this.get(key);
    return new ConfigMapping(value === undefined ? {} : value, [...this.#path, key], known, this.#locate);
  }

  error(path: readonly string[], problem: string, what: "key" | "value" = "value"): SessionConfigError {
    return new SessionConfigError(this.#locate([...this.#path, ...path], what), problem);
  }
}

function problemOfPath(path: string): string | undefined {
  if (path.trim() === "") return "is empty. Name a directory.";
  if (path.includes("\0")) return "holds U+0000, which no path may.";
  if (!path.isWellFormed()) return "is not well-formed Unicode: it holds half of a surrogate pair.";
  if (/^~(?:$|[/\\])/.test(path)) return `is ${JSON.stringify(path)}, and ~ is not expanded here. Write the path out.`;
  if (path === ":memory:") return "can't be :memory:. `enabled: false` keeps the session in memory only.";
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(path)) return "is a URL, and must be the path of a directory.";
  return undefined;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The parent of a plain object's prototype is null; a list's, a date's or another class's is not.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The value as an error may show it. */
function nameOf(value: unknown): string {
  if (value === null) return "empty";
  if (typeof value === "string") {
    return `the text ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60).toWellFormed()}…` : value)}`;
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? (isMapping(value) ? "a mapping" : "an object of a class") : `a ${typeof value}`;
}
