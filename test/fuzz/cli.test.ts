/**
 * Any command line ends with one of the exit codes that scripts rely on and, when it fails, one line on stderr that is no stack;
 * and a command that reads changes no file. Most are run in one process after another for speed; some as the program itself.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { everthread, plainEnv } from "../cli/support.ts";
import { commandLines, onlyReads } from "./cli-arguments.ts";
import type { CommandLine, Ended } from "./cli-loop.ts";
import { furnish } from "./damage.ts";
import { fastDir, fuzz } from "./fuzz.ts";

/** No command may take longer, in ms. */
const TIME_LIMIT = 30_000;

const original = fastDir();
beforeAll(async () => {
  const home = join(original, "home");
  mkdirSync(join(home, "session", "state"), { recursive: true });
  mkdirSync(join(home, "directory"));
  for (const path of ["threads.db", "session/state/state.sqlite3"]) {
    const store = await SqliteCheckpointer.open(join(home, path));
    await furnish(store);
    await store.close();
  }
  writeFileSync(join(home, "garbage"), "\0garbage\xff".repeat(1000));
  writeFileSync(join(home, "empty"), "");
  writeFileSync(join(home, "config.yaml"), "persistence:\n  directory: ./session\n");
  writeFileSync(
    join(home, "export.jsonl"),
    (await everthread(["export", "--all"], { db: join(home, "threads.db") })).stdout,
  );
  writeFileSync(join(home, "broken.jsonl"), '{"type":"thread","format":1,"thread_id":"x"}\n{"type":');
});
afterAll(() => rmSync(original, { recursive: true }));

/** Runs something in a copy of the directory; gives what it gave, and which files it left otherwise. */
async function inCopy<T>(body: (cwd: string) => Promise<T>): Promise<{ result: T; changed: string[] }> {
  const directory = fastDir();
  try {
    cpSync(original, directory, { recursive: true });
    const before = filesIn(directory);
    const result = await body(join(directory, "home"));
    const after = filesIn(directory);
    const names = new Set([...before.keys(), ...after.keys()]);
    return { result, changed: [...names].filter((name) => before.get(name) !== after.get(name)) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The files of a directory, and what is in each. */
function filesIn(directory: string): Map<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const content = entry.isFile() ? createHash("sha1").update(readFileSync(path)).digest("hex") : "directory";
      return [relative(directory, path), content];
    }),
  );
}

/** How often each exit code was seen. */
const codes: Record<number, number> = {};
const summary = () => `Exit codes: ${JSON.stringify(codes)}.`;

async function checkLine(argv: string[], run: (cwd: string) => Promise<Ended>): Promise<void> {
  const { result, changed } = await inCopy(run);
  const { code, stderr } = result;
  codes[code] = (codes[code] ?? 0) + 1;
  expect([0, 1, 2, 3]).toContain(code);
  expect(stderr).not.toMatch(/^\s+at .*[:(]|node:internal|TypeError|undefined is not/m);
  if (code === 1 || code === 2) checkError(argv, stderr);
  if (onlyReads(argv)) expect(changed).toEqual([]);
}

function checkError(argv: string[], stderr: string): void {
  const lines = stderr.trimEnd().split("\n");
  const last = lines.at(-1) ?? "";
  if (argv.includes("--json") && last.startsWith("{")) {
    expect(JSON.parse(last)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
  } else if (!stderr.startsWith("Usage:")) {
    // doctor and migrate --check have told on stdout what they found, and need no error.
    if (stderr !== "") expect(last).toMatch(/^error: ./);
  }
}

let child: ChildProcess | undefined;
afterAll(() => child?.kill());

/** Runs a line in the process that waits for the next. */
async function inLoop(argv: string[], cwd: string): Promise<Ended> {
  if (!child?.connected) {
    const execArgv = ["--experimental-strip-types", "--no-warnings"];
    const file = fileURLToPath(new URL("./cli-loop.ts", import.meta.url));
    child = fork(file, { execArgv, env: plainEnv({}), stdio: ["ignore", "ignore", "inherit", "ipc"] });
    await once(child, "message");
  }
  const answer = once(child, "message", { signal: AbortSignal.timeout(TIME_LIMIT) });
  child.send({ argv, cwd } satisfies CommandLine);
  const [ended] = (await answer) as [Ended];
  return ended;
}

const property = fc.asyncProperty(commandLines, (argv) => checkLine(argv, (cwd) => inLoop(argv, cwd)));
fuzz("any command line ends with an exit code and at most one line of error", 80, property, { summary });

const asProcess = fc.asyncProperty(commandLines, (argv) => checkLine(argv, (cwd) => runProcess(argv, cwd)));
fuzz("any command line ends so as a process too", 8, asProcess, { summary });

async function runProcess(argv: string[], cwd: string): Promise<Ended> {
  const { code, stdout, stderr } = await everthread(argv, { cwd });
  return { code: code ?? -1, stdout, stderr };
}
