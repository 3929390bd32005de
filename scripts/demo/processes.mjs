// Starts the tour's programs, each in a process of its own, shows what they print, and gives it back.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Deviation } from "./check.mjs";

/** A program that takes longer is ended, and the tour with it. */
const LONGEST_MS = 30_000;

/** Runs a program to its end. @returns what it printed, a line an item, and its process id */
export async function run(program, ...args) {
  const child = start(program, args);
  const { code, signal } = await child.ended;
  if (code !== 0) {
    throw new Deviation(`${program} ends well`, "exit code 0", `${signal ?? `exit code ${code}`}\n${child.stderr()}`);
  }
  return { pid: child.pid, lines: child.lines };
}

/** Runs a program, and kills it with SIGKILL as soon as it prints a line that `isTime` is true of. */
export async function runAndKill(isTime, program, ...args) {
  const child = start(program, args, (line) => {
    if (isTime(line)) process.kill(child.pid, "SIGKILL");
  });
  const { signal } = await child.ended;
  console.log("     killed with SIGKILL");
  return { pid: child.pid, lines: child.lines, signal };
}

function start(program, args, onLine = () => {}) {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const node = ["--disable-warning=ExperimentalWarning", path, ...args];
  const child = spawn(process.execPath, node, { stdio: ["ignore", "pipe", "pipe"], timeout: LONGEST_MS });
  console.log(`   process ${child.pid}, ${program}`);
  const lines = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    console.log(`     ${line}`);
    lines.push(line);
    onLine(line);
  });
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal }));
  return { pid: child.pid, lines, ended, stderr: () => stderr };
}
