/** Runs one command line after another in this process, as the program would, and tells by IPC what came of each. */
import process from "node:process";
import { runCommand } from "../../src/cli/main.ts";

export interface CommandLine {
  argv: string[];
  cwd: string;
}

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const written = { stdout: "", stderr: "" };
for (const name of ["stdout", "stderr"] as const) {
  const stream = process[name];
  stream.setMaxListeners(0);
  stream.write = (chunk: string | Uint8Array, encodingOrDone?: unknown, done?: unknown) => {
    written[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    const callback = typeof encodingOrDone === "function" ? encodingOrDone : done;
    if (typeof callback === "function") queueMicrotask(() => callback());
    return true;
  };
}

process.on("message", async ({ argv, cwd }: CommandLine) => {
  process.chdir(cwd);
  written.stdout = "";
  written.stderr = "";
  const code = await runCommand(argv);
  process.send?.({ code, ...written } satisfies Ended);
});
process.on("uncaughtException", (error) => {
  process.send?.({ code: -1, stdout: "", stderr: `uncaught: ${error.stack}` } satisfies Ended);
});
process.send?.("ready");
