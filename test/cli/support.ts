/** Runs the built command line as a real process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export const BIN = fileURLToPath(new URL("../../bin/everthread.js", import.meta.url));

export interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
  /** Of stdout: each line as JSON. */
  records(): Record<string, unknown>[];
}

export interface RunOptions {
  db?: string | undefined;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** What stdin holds. (Default: nothing) */
  input?: string | Uint8Array;
}

/** The environment without what could change a command's behaviour. */
export function plainEnv(options: RunOptions): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(EVERTHREAD_|ANTHROPIC_|OPENAI_|NO_COLOR|FORCE_COLOR|NODE_DISABLE_COLORS|COLORTERM|CI$|TEAMCITY|TMUX|COLUMNS|DEBUG|NODE_OPTIONS|NODE_V8)/.test(
        name,
      ),
  );
  return { ...Object.fromEntries(kept), ...(options.db ? { EVERTHREAD_DB: options.db } : {}), ...options.env };
}

export function start(args: readonly string[], options: RunOptions = {}): ChildProcess {
  return spawn(process.execPath, [BIN, ...args], { env: plainEnv(options), cwd: options.cwd, stdio: "pipe" });
}

export async function everthread(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = start(args, options);
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.input ?? "");
  return await outcome(child);
}

export async function outcome(child: ChildProcess): Promise<Outcome> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  const records = () =>
    stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  return { code, stdout, stderr, records };
}

/** Resolves with what stderr or stdout of a child holds so far, once it holds `text`. */
export async function shows(stream: NodeJS.ReadableStream | null, text: string): Promise<void> {
  let seen = "";
  for await (const chunk of stream ?? []) {
    seen += chunk;
    if (seen.includes(text)) return;
  }
  throw new Error(`It ended without ${JSON.stringify(text)}: ${seen}`);
}
