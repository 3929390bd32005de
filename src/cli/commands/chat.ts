/** `everthread chat`: one message, or a session on a terminal. */
import type { Checkpointer } from "../../checkpoint/checkpointer.ts";
import { newId } from "../../util/ids.ts";
import { harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { CommandError, UsageError } from "../errors.ts";
import { respondCommand } from "../respond-command.ts";
import { type RunOptions, setUp } from "../setup.ts";
import { findOrBegin, withStore } from "../store.ts";
import { reportEnding, takeTurn } from "../turn.ts";

export interface ChatOptions extends RunOptions {
  thread?: string;
  runId?: string;
  approve?: string;
}

export async function chat(context: Context, argument: string | undefined, options: ChatOptions): Promise<number> {
  const { out } = context;
  const asksForSession = argument === undefined && process.stdin.isTTY === true;
  if (asksForSession && !(out.live && options.runId === undefined)) {
    throw new UsageError(
      "Give a message as an argument or on stdin; a session needs a terminal, without --json and --run-id.",
    );
  }
  const message = asksForSession ? undefined : (argument ?? (await readStdin()));
  if (message !== undefined && message.trim() === "") throw new UsageError("The message is empty.");
  const setup = await setUp(context, options, options.approve);
  return await withStore(context, "create", async (store, session) => {
    if (session && options.thread !== undefined) throw new UsageError("A session is one thread: leave --thread out.");
    const { threadId, isNew } = session
      ? { threadId: session.threadId, isNew: false }
      : await threadOf(store, options.thread);
    if (isNew) out.note(out.noteStyle("dim", `New thread: ${harmlessLine(threadId)}`));
    const agent = setup.agentOn(store, threadId, session);
    const about = { threadId, repeat: setup.repeat };
    if (message === undefined) {
      const { converse } = await import("../session.ts");
      return await converse(out, agent, about);
    }
    const waiting = options.runId === undefined ? await agent.pending() : undefined;
    if (waiting) {
      const command = respondCommand(threadId, waiting.request, setup.repeat);
      throw new CommandError(
        "hitl_pending",
        `Thread ${JSON.stringify(threadId)} waits on an answer, so the message was not taken. Answer with: ${command}`,
      );
    }
    const ask = out.canAsk ? (await import("../ask.ts")).askPerson : undefined;
    const turn = await takeTurn(
      out,
      (turnOptions) => agent.prompt(message, { ...turnOptions, runId: options.runId }),
      ask && ((request, { signal }) => ask(request, signal)),
    );
    return reportEnding(out, turn, about);
  });
}

async function threadOf(store: Checkpointer, given: string | undefined) {
  return given === undefined ? { threadId: newId(), isNew: true } : await findOrBegin(store, given);
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  // Without a byte order mark, and without the end of the last line, which is no part of what is said.
  return new TextDecoder().decode(Buffer.concat(chunks)).replace(/\r?\n$/, "");
}
