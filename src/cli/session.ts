/** An interactive session: lines are prompts while the agent is idle, and steering while it works. */
import type { Agent } from "../agent/agent.ts";
import type { OnPending } from "../agent/run.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import { textOf } from "../messages/construct.ts";
import { askPerson } from "./ask.ts";
import { EXIT, reportError } from "./errors.ts";
import { LineInput } from "./line-input.ts";
import type { Terminal } from "./terminal.ts";
import { notePending, reportEnding, takeTurn } from "./turn.ts";

const LEAVE = "/exit";

/** Talks until /exit, Ctrl-D, or Ctrl-C while idle. Gives the exit code: 3 when the thread is left waiting on an answer. */
export async function converse(
  out: Terminal,
  agent: Agent,
  about: { threadId: string; repeat: readonly string[] },
): Promise<number> {
  out.note(out.noteStyle("dim", "Type a message. Ctrl-C stops the agent while it works; /exit leaves."));
  const input = new LineInput();
  let postponed: PendingRequest | undefined;
  const onPending: OnPending = async (request, { signal }) => {
    // Where menus don't work, the question waits for `everthread respond`.
    const answer = out.canAsk ? await input.aside(() => askPerson(request, signal)) : undefined;
    if (answer === undefined) postponed = request;
    return answer;
  };
  const work = async (start: Parameters<typeof takeTurn>[1]): Promise<void> => {
    input.whileBusy((line) => steer(out, agent, input, line));
    try {
      const turn = await takeTurn(out, start, onPending);
      if (turn.result.status !== "suspended") reportEnding(out, turn, about);
      // What came too late for this run is what is said next.
      for (const message of turn.result.unused) input.unread(textOf(message));
    } catch (error) {
      // The store's and the thread's errors: the next prompt reads the thread again.
      reportError(error, false);
    } finally {
      input.whileBusy(undefined);
    }
  };
  try {
    for (;;) {
      const waiting = postponed ? undefined : await agent.pending();
      if (waiting) {
        const { question_id: questionId } = waiting.request;
        const answer = await onPending(waiting.request, { signal: new AbortController().signal });
        if (answer !== undefined) await work((options) => agent.respond(questionId, answer, options));
        continue;
      }
      if (postponed) {
        notePending(out, about.threadId, postponed, about.repeat);
        return EXIT.suspended;
      }
      const line = await input.next(out.style("green", "> "));
      if (line === undefined || line.trim() === LEAVE) return EXIT.ok;
      if (line.trim() !== "") await work((options) => agent.prompt(line, options));
    }
  } finally {
    input.close();
  }
}

function steer(out: Terminal, agent: Agent, input: LineInput, line: string): void {
  if (line.trim() === "") return;
  if (line.trim() === LEAVE) {
    // Once the run has ended.
    input.unread(line);
    return;
  }
  try {
    agent.steer(line);
    out.note(out.noteStyle("dim", "(the agent reads this before its next step)"));
  } catch {
    // The run has just ended.
    input.unread(line);
  }
}
