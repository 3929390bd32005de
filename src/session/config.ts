/**
 * The configuration of a session: the `persistence` key of a worker's YAML file, or the same as a plain object. Names are
 * those of the file in both, and everything is checked before anything is touched.
 */
import { readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { messageOf } from "../errors.ts";
import { ConfigMapping, type Locate } from "./config-mapping.ts";
import { parseYaml } from "./config-yaml.ts";
import { SessionConfigError } from "./errors.ts";

export type SessionBackend = "sqlite" | "json";

/** What is written under `persistence`. */
export interface PersistenceOptions {
  /** false keeps the session in memory only: nothing is read or written, whatever the other keys say. (Default: true) */
  enabled?: boolean | undefined;
  /**
   * The session's own directory; nothing is appended to it. A relative one starts at the configuration file's directory, or
   * at the current directory for a plain object. Required unless `enabled` is false.
   */
  directory?: string | undefined;
  /** (Default: that of the store which is there, else sqlite) */
  backend?: SessionBackend | undefined;
  /** The directory of the store, within `directory`. (Default: "state") */
  state?: string | undefined;
  /** The directory of the JSON backend's archives, within `directory`. (Default: "memory") */
  memory?: string | undefined;
  /** `never` refuses a directory that holds a conversation: it is neither restored nor overwritten. (Default: "if_present") */
  restore?: "if_present" | "never" | undefined;
  memory_retention?: {
    /** How many archives to keep, 0 to 10,000; 0 keeps all. (Default: 5) */
    max_archives?: number | undefined;
  };
  /** Record every event of the agent in events.jsonl. (Default: false) */
  events?: boolean | undefined;
  /** Keep readable.md, an export for people. (Default: false) */
  readable?: boolean | undefined;
  /** When the older part of the context is set aside. (Default: left to the agent) */
  compaction?: {
    /** Compact once the context takes so many tokens, 1,000 to 100,000,000. */
    trigger_tokens?: number | undefined;
    /** How many tokens of the newest turns stay as they are, 0 to 100,000,000 and below `trigger_tokens`. */
    keep_tokens?: number | undefined;
  };
  /** Budgets of memory_search and memory_fetch. */
  search?: {
    /** How long one search may take, 1 to 600,000 ms. (Default: 2000) */
    time_limit_ms?: number | undefined;
    /** How many hits one search gives, 1 to 1,000. (Default: 20) */
    max_results?: number | undefined;
    /** The length of a hit's preview, 16 to 10,000 bytes. (Default: 300) */
    preview_bytes?: number | undefined;
    /** How much of a source one fetch gives, 16 to 1,000,000 bytes. (Default: 4000) */
    fetch_bytes?: number | undefined;
  };
}

interface Common {
  restore: "if_present" | "never";
  memory_retention: { max_archives: number };
  compaction: { trigger_tokens: number | undefined; keep_tokens: number | undefined };
  search: { time_limit_ms: number; max_results: number; preview_bytes: number; fetch_bytes: number };
}

/** A session that lives in memory only. */
export interface MemorySessionConfig extends Common {
  enabled: false;
}

/** A session in a directory. All paths are absolute. */
export interface StoredSessionConfig extends Common {
  enabled: true;
  directory: string;
  /** Undefined: what is there, else sqlite. */
  backend: SessionBackend | undefined;
  state: string;
  memory: string;
  events: boolean;
  readable: boolean;
}

/** A configuration that was checked, with the defaults filled in. */
export type SessionConfig = MemorySessionConfig | StoredSessionConfig;

const KEYS = [
  "enabled",
  "directory",
  "backend",
  "state",
  "memory",
  "restore",
  "memory_retention",
  "events",
  "readable",
  "compaction",
  "search",
] as const satisfies (keyof PersistenceOptions)[];

const LARGEST_FILE = 1024 * 1024;

/**
 * Checks a configuration given as a plain object, with the keys that the YAML has under `persistence`.
 *
 * @param base where a relative `directory` starts (Default: the current directory)
 * @throws SessionConfigError naming the key
 */
export function checkSessionConfig(options: PersistenceOptions, base = process.cwd()): SessionConfig {
  return check(options, base, (path) => ({ key: path.join(".") }));
}

/**
 * Checks a configuration given as YAML text, whose top level holds `persistence`; its other keys are for others.
 *
 * @param options.file how errors name the text (Default: not at all)
 * @param options.base where a relative `directory` starts (Default: the current directory)
 * @returns the configuration, and the whole document as plain values
 * @throws SessionConfigError naming the key, the line and the column
 */
export function parseSessionConfig(
  text: string,
  options: { file?: string; base?: string } = {},
): { config: SessionConfig; document: Record<string, unknown> } {
  const { file, base = process.cwd() } = options;
  const { document, locate } = parseYaml(text, file);
  if (!Object.hasOwn(document, "persistence")) {
    throw new SessionConfigError({ key: "persistence", file }, "is missing at the top level.");
  }
  return { config: check(document.persistence, base, locate), document };
}

/**
 * As {@link parseSessionConfig}, for a file in UTF-8 of at most 1 MB. A relative `directory` starts at the file's own.
 *
 * @throws SessionConfigError also when the file can't be read
 */
export async function readSessionConfig(
  path: string,
): Promise<{ config: SessionConfig; document: Record<string, unknown> }> {
  const file = resolve(path);
  return parseSessionConfig(await readText(file), { file, base: dirname(file) });
}

async function readText(file: string): Promise<string> {
  const refuse = (problem: string, cause?: unknown) =>
    new SessionConfigError({ key: undefined, file }, problem, { cause });
  try {
    const found = await stat(file);
    if (!found.isFile()) throw refuse("A configuration must be a regular file.");
    if (found.size > LARGEST_FILE) throw refuse(`The file has ${found.size} bytes; a configuration has at most 1 MB.`);
    return new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (error instanceof SessionConfigError) throw error;
    if (error instanceof TypeError) throw refuse("The file is not UTF-8 text.", error);
    throw refuse(`The file can't be read: ${messageOf(error)}.`, error);
  }
}

function check(value: unknown, base: string, locate: Locate): SessionConfig {
  const top = new ConfigMapping(value, ["persistence"], KEYS, locate);
  const enabled = top.flag("enabled", true);
  const given = top.path("directory");
  const directory = given === undefined ? undefined : resolve(base, given);
  const backend = top.choice("backend", ["sqlite", "json"]);
  // Without a directory they are checked all the same.
  const state = within(top, "state", directory ?? base);
  const memory = within(top, "memory", directory ?? base);
  if (state === memory) throw top.error(["memory"], "is the same directory as state. Give each its own.");
  const events = top.flag("events", false);
  const readable = top.flag("readable", false);
  const common: Common = {
    restore: top.choice("restore", ["if_present", "never"]) ?? "if_present",
    memory_retention: {
      max_archives: top.under("memory_retention", ["max_archives"]).number("max_archives", 0, 10_000) ?? 5,
    },
    compaction: checkCompaction(top),
    search: checkSearch(top),
  };
  if (!enabled) return { enabled, ...common };
  if (directory === undefined) {
    throw top.error(["directory"], "is missing. Name the session's directory, or set `enabled: false`.");
  }
  return { enabled, directory, backend, state, memory, events, readable, ...common };
}

/** What the session keeps is all in its directory, so that a copy of that is a whole backup. */
function within(top: ConfigMapping, key: "state" | "memory", directory: string): string {
  const path = resolve(directory, top.path(key) ?? key);
  const way = relative(directory, path);
  if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way)) {
    throw top.error([key], "leads out of persistence.directory. Name a directory within it.");
  }
  return path;
}

function checkCompaction(top: ConfigMapping): Common["compaction"] {
  const mapping = top.under("compaction", ["trigger_tokens", "keep_tokens"]);
  const trigger_tokens = mapping.number("trigger_tokens", 1000, 100_000_000);
  const keep_tokens = mapping.number("keep_tokens", 0, 100_000_000);
  if (trigger_tokens !== undefined && keep_tokens !== undefined && keep_tokens >= trigger_tokens) {
    throw mapping.error(["keep_tokens"], `must be less than trigger_tokens, which is ${trigger_tokens}.`);
  }
  return { trigger_tokens, keep_tokens };
}

function checkSearch(top: ConfigMapping): Common["search"] {
  const mapping = top.under("search", ["time_limit_ms", "max_results", "preview_bytes", "fetch_bytes"]);
  return {
    time_limit_ms: mapping.number("time_limit_ms", 1, 600_000) ?? 2000,
    max_results: mapping.number("max_results", 1, 1000) ?? 20,
    preview_bytes: mapping.number("preview_bytes", 16, 10_000) ?? 300,
    fetch_bytes: mapping.number("fetch_bytes", 16, 1_000_000) ?? 4000,
  };
}
