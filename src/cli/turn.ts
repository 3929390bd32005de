/** One call of an agent from the command line: shows it, lets Ctrl-C stop it, and says how it ended. */
import type { PromptOptions } from "../agent/agent.ts";
import type { AgentResult } from "../agent/events.ts";
import type { OnPending } from "../agent/run.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import { describeQuestion, indent } from "./describe.ts";
import { EXIT, reportError } from "./errors.ts";
import { onInterrupt } from "./interrupt.ts";
import { otherAnswers, respondCommand } from "./respond-command.ts";
import { runOutput } from "./run-output.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Works until the run settles; the first Ctrl-C stops it, and the thread is kept.
 *
 * @param onPending asks the person who is there (Default: the run is suspended)
 */
export async function takeTurn(
  out: Terminal,
  start: (options: PromptOptions) => Promise<AgentResult>,
  onPending?: OnPending,
): Promise<{ result: AgentResult; interrupted: boolean }> {
  // The run goes on when nobody reads any more: what it has begun is better ended than broken off.
  out.keepWorking();
  const stopping = new AbortController();
  const done = onInterrupt(() => stopping.abort());
  const output = runOutput(out);
  try {
    const onEvent: PromptOptions["onEvent"] = (event) => output.event(event);
    const result = await start({ signal: stopping.signal, onPending, onEvent });
    output.result(result);
    return { result, interrupted: stopping.signal.aborted };
  } finally {
    done();
  }
}

/** Says how a run ended, where that is not the answer itself, and gives the exit code. */
export function reportEnding(
  out: Terminal,
  ended: { result: AgentResult; interrupted: boolean },
  about: { threadId: string; repeat: readonly string[] },
): number {
  const { result, interrupted } = ended;
  switch (result.status) {
    case "completed":
      return EXIT.ok;
    case "suspended":
      if (result.pending) notePending(out, about.threadId, result.pending, about.repeat);
      return EXIT.suspended;
    case "aborted":
      out.note(interrupted ? "Stopped. The thread is kept." : "The run was closed.");
      return interrupted ? EXIT.interrupted : EXIT.ok;
    case "failed":
      return reportError(result.error, out.json);
  }
}

/** What a thread waits on, and the command that answers. */
export function notePending(out: Terminal, threadId: string, request: PendingRequest, repeat: readonly string[]): void {
  out.note(`Waits on an answer:\n${indent(describeQuestion(request.payload))}`);
  out.note(
    `Answer with:\n${indent(respondCommand(threadId, request, repeat))}\n${indent(otherAnswers(request.payload))}`,
  );
}
