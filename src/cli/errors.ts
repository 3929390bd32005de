/** How a command ends: exit codes, and errors as one sentence on stderr, or as one JSON object under --json. */
import { EverthreadError, messageOf } from "../errors.ts";
import { harmlessLine } from "../util/text.ts";

/** The exit codes that scripts may rely on. */
export const EXIT = {
  ok: 0,
  failure: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** A run waits on a person. */
  suspended: 3,
  interrupted: 130,
} as const;

/** The command line is wrong: an option, an argument, or what they hold. */
export class UsageError extends EverthreadError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("usage", message, options);
  }
}

/** A command can't do what was asked. */
export class CommandError extends EverthreadError {}

/** Writes an error to stderr and gives the exit code for it. DEBUG=everthread shows the stack too. */
export function reportError(error: unknown, json: boolean): number {
  process.stderr.write(json ? `${JSON.stringify({ error: errorJson(error) })}\n` : `error: ${oneLine(error)}\n`);
  if (process.env.DEBUG === "everthread") console.error(error);
  return error instanceof UsageError ? EXIT.usage : EXIT.failure;
}

/** An error as programs read it: its stable code and what it says. */
export function errorJson(error: unknown): { code: string; message: string } {
  const code = (error as { code?: unknown } | undefined)?.code;
  return { code: typeof code === "string" ? code : "error", message: messageOf(error).toWellFormed() };
}

/** What an error says, as one line that is safe on a terminal. */
export function oneLine(error: unknown): string {
  return harmlessLine(
    messageOf(error)
      .replaceAll(/\s*\n\s*/g, " ")
      .trim(),
  );
}
