/** The pages name everything there is. The lists are typed by the code, so that something new must be listed here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Middleware } from "../../src/agent/middleware.ts";
import { SqliteCheckpointer, type SqliteOptions } from "../../src/checkpoint/sqlite/checkpointer.ts";
import type { AgentEvent, AgentOptions, AgentResult, CopyOptions, CopyReport, ToolContext } from "../../src/index.ts";
import * as everthread from "../../src/index.ts";
import type { ThreadState } from "../../src/messages/state.ts";
import type { Finding } from "../../src/messages/view.ts";
import type { AiSdkModelOptions } from "../../src/model/ai-sdk.ts";
import type { RetryPolicy } from "../../src/model/retry.ts";
import { tempDir } from "../support/temp.ts";

const page = (name: string) => readFileSync(`docs/${name}.md`, "utf8");

type ErrorClass = new (...args: never[]) => everthread.EverthreadError;
const isErrorClass = (value: unknown): value is ErrorClass =>
  typeof value === "function" && value.prototype instanceof everthread.EverthreadError;

describe("docs/errors.md", () => {
  const exported: unknown[] = Object.values(everthread);
  const classes = exported.filter(isErrorClass);
  const text = page("errors");

  test("there are errors to list", () => {
    expect(classes.length).toBeGreaterThan(30);
  });

  test.each(classes.map((Class) => [Class.name, Class] as const))("lists %s with its code", (name, Class) => {
    // Any arguments will do: the code does not depend on them.
    const where = { threadId: "t", backend: "b", rowRef: "r", cause: "c" };
    const third = name === "ArchivePrunedError" ? new Date(0) : "c";
    const args = [name === "CheckpointCorruptionError" ? where : "a", "b", third] as unknown as never[];
    const { code } = new Class(...args);
    const row = text.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
    if (row) expect(row.split("|")[2]?.trim()).toBe(`\`${code}\``);
    else expect(text).toContain(`\`${name}\` (\`${code}\`)`);
  });

  test("lists no error that there is not", () => {
    const named = [...text.matchAll(/^\| `(\w+Error)` \|/gm)].map(([, name]) => name);
    expect(named.filter((name) => !classes.some((Class) => Class.name === name))).toEqual([]);
    expect(new Set(named).size).toBe(named.length);
  });
});

type All<Name extends PropertyKey> = Record<Name, true>;

const agentOptions: All<keyof AgentOptions> = {
  model: true,
  system: true,
  tools: true,
  approve: true,
  middleware: true,
  retry: true,
  compaction: true,
  checkpointer: true,
  threadId: true,
  onEvent: true,
};
const statuses: All<AgentResult["status"]> = { completed: true, suspended: true, aborted: true, failed: true };
const results: All<keyof AgentResult> = {
  status: true,
  runId: true,
  text: true,
  messages: true,
  stopReason: true,
  usage: true,
  pending: true,
  error: true,
  unused: true,
  replayed: true,
};
const events: All<AgentEvent["type"]> = {
  run_start: true,
  text_delta: true,
  thinking_delta: true,
  tool_call_delta: true,
  model_retry: true,
  message: true,
  tool_start: true,
  tool_update: true,
  tool_end: true,
  turn_end: true,
  pending: true,
  answer: true,
  compaction_start: true,
  compaction_end: true,
  compaction_failed: true,
  retention_failed: true,
  run_end: true,
};
const hooks: All<keyof Middleware> = {
  tools: true,
  systemPrompt: true,
  context: true,
  afterModelResponse: true,
  beforeToolCall: true,
  afterToolCall: true,
  stopAfterTurn: true,
  endOfRun: true,
};
const toolContext: All<keyof ToolContext> = {
  threadId: true,
  runId: true,
  toolCallId: true,
  signal: true,
  extra: true,
  update: true,
};
const states: All<ThreadState> = {
  empty: true,
  complete: true,
  partial: true,
  awaiting_model: true,
  awaiting_results: true,
  awaiting_answer: true,
};
const findings: All<Finding["kind"]> = {
  dangling_call: true,
  orphan_result: true,
  duplicate_result: true,
  misplaced_result: true,
  reused_call_id: true,
  blank_text: true,
  empty_message: true,
  cut_short: true,
};
const sqliteOptions: All<keyof SqliteOptions> = {
  readOnly: true,
  busyTimeoutMs: true,
  journalMode: true,
  durability: true,
};
const modelOptions: All<keyof AiSdkModelOptions> = {
  maxOutputTokens: true,
  temperature: true,
  topP: true,
  stopSequences: true,
  toolChoice: true,
  providerOptions: true,
  headers: true,
  onWarning: true,
};
const copyOptions: All<keyof CopyOptions> = { threadIds: true, verify: true, onProgress: true };
const copyReport: All<keyof CopyReport> = {
  copied: true,
  continued: true,
  unchanged: true,
  messages: true,
  conflicts: true,
  damaged: true,
  differences: true,
};
const retry: All<keyof RetryPolicy> = { maxAttempts: true, baseDelayMs: true, maxDelayMs: true };

test.each([
  ["agent", "options", agentOptions],
  ["agent", "statuses", statuses],
  ["agent", "fields of a result", results],
  ["agent", "events", events],
  ["agent", "hooks", hooks],
  ["agent", "fields of a tool's context", toolContext],
  ["messages", "thread states", states],
  ["messages", "findings", findings],
  ["sqlite", "options", sqliteOptions],
  ["models", "options of an AI SDK model", modelOptions],
  ["models", "options of a retry", retry],
  ["copying", "options of a copy", copyOptions],
  ["copying", "fields of its report", copyReport],
] as const)("docs/%s.md names all %s", (name, _what, names) => {
  const text = page(name);
  expect(Object.keys(names).filter((item) => !new RegExp(`\`${item}\\b`).test(text))).toEqual([]);
});

test("docs/sqlite.md names every table and column of a file", async () => {
  const file = join(tempDir(), "agent.db");
  await (await SqliteCheckpointer.open(file)).close();
  const db = new DatabaseSync(file);
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
  const text = page("sqlite");
  for (const { name } of tables) {
    const row = text.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
    expect(row, `the table ${name}`).toBeDefined();
    if (name === "everthread_schema") continue;
    for (const column of db.prepare("SELECT name FROM pragma_table_info(?)").all(String(name))) {
      expect(row).toContain(`\`${column.name}\``);
    }
  }
  db.close();
});

test("docs/sqlite.md says which `synchronous` each durability is", () => {
  for (const [durability, synchronous] of Object.entries({ full: "EXTRA", normal: "NORMAL", off: "OFF" })) {
    expect(page("sqlite")).toMatch(new RegExp(`^\\| \`${durability}\`.*\\| ${synchronous} \\|$`, "m"));
  }
  expect(readFileSync("src/db/sqlite.ts", "utf8")).toContain('{ full: "EXTRA", normal: "NORMAL", off: "OFF" }');
});

test("the links between the pages lead somewhere", () => {
  for (const name of ["agent", "sqlite", "messages", "models", "errors", "copying"]) {
    for (const [, target = "", anchor] of page(name).matchAll(/\]\(([\w-]+)\.md(?:#([\w-]+))?\)/g)) {
      const headings = [...page(target).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
        heading
          .toLowerCase()
          .replace(/[^\w -]/g, "")
          .replaceAll(" ", "-"),
      );
      if (anchor) expect(headings, `${name}.md -> ${target}.md#${anchor}`).toContain(anchor);
    }
  }
});
