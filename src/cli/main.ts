/** The command line: parses, runs one command, and ends with its exit code. Commands are loaded when they are run. */
import { CommanderError } from "commander";
import { EXIT, reportError, UsageError } from "./errors.ts";
import { listenForInterrupts } from "./interrupt.ts";
import { buildProgram } from "./program.ts";
import { Terminal } from "./terminal.ts";

/** Runs `everthread` with these arguments and ends the process. */
export async function main(argv: readonly string[]): Promise<void> {
  listenForInterrupts();
  const exitCode = await runCommand(argv);
  // What is still to be written first; then exit(), since tools may keep connections or timers of their own.
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>((resolve) => stream.write("", () => resolve()));
  }
  process.exit(exitCode);
}

/** Runs one command, reports its error if it fails, and gives the exit code. */
export async function runCommand(argv: readonly string[]): Promise<number> {
  const end = argv.indexOf("--");
  const json = argv.slice(0, end === -1 ? undefined : end).includes("--json");
  return await run(argv, json).catch((error: unknown) => reportError(error, json));
}

async function run(argv: readonly string[], json: boolean): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = buildProgram(new Terminal(json), (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.ok;
    if (error.code === "commander.help" && !json) return EXIT.usage;
    const problem = error.code === "commander.help" ? "No command was given." : error.message;
    throw new UsageError(problem.replace(/^error: /, ""), { cause: error });
  }
}
