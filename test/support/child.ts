/** Child processes that run TypeScript, as real as the ones of a user. */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Where children keep what they have compiled: many of them start with the same modules. */
const COMPILED = join(tmpdir(), "everthread-test-compiled");

/** Starts `file` (a URL beside the caller) with arguments. Node 22 needs the flag to read TypeScript; later it is the default. */
export function startChild(file: URL, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(process.execPath, ["--experimental-strip-types", "--no-warnings", fileURLToPath(file), ...args], {
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  lines: string[];
  stderr: string;
}

/** Waits for the end of a child and gives what it wrote, whole lines only. */
export async function ended(child: ChildProcess): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const { promise, resolve } = Promise.withResolvers<[number | null, NodeJS.Signals | null]>();
  child.on("close", (code, signal) => resolve([code, signal]));
  const [code, signal] = await promise;
  return { code, signal, lines: stdout.split("\n").slice(0, -1), stderr };
}

/** Kills a child once it has said `n` lines, and gives how many whole lines it said in all. */
export async function killAfter(child: ChildProcess, n: number): Promise<number> {
  let lines = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  child.on("close", () => resolve());
  if (!child.stdout) throw new Error("The child has no stdout.");
  createInterface({ input: child.stdout }).on("line", () => {
    lines++;
    if (lines === n + 1) child.kill("SIGKILL");
  });
  await promise;
  return lines;
}
