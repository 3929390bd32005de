/** `everthread pending`: what waits on a person. */
import type { Checkpointer, ThreadInfo } from "../../checkpoint/checkpointer.ts";
import { CheckpointCorruptionError } from "../../checkpoint/errors.ts";
import type { PendingRequest } from "../../checkpoint/pending.ts";
import { harmlessLine } from "../../util/text.ts";
import { withoutPassword } from "../../util/urls.ts";
import type { Context } from "../context.ts";
import { describeQuestion, indent } from "../describe.ts";
import { EXIT, errorJson, oneLine } from "../errors.ts";
import { otherAnswers, respondCommand } from "../respond-command.ts";
import { allThreads, findThread, withStore } from "../store.ts";
import { ago } from "../text.ts";

export async function pending(context: Context, given: string | undefined): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    const found: object[] = [];
    let exitCode: number = EXIT.ok;
    for await (const info of threadsToLookAt(store, given)) {
      if (!info.pending) continue;
      const { threadId } = info;
      const waiting = await readPending(store, threadId);
      if (waiting instanceof CheckpointCorruptionError) {
        exitCode = EXIT.failure;
        found.push({ thread_id: threadId, error: errorJson(waiting) });
        out.note(oneLine(waiting));
      } else if (waiting) {
        found.push({ thread_id: threadId, run_id: waiting.runId, request: waiting.request });
        if (!out.json) await print(context, threadId, waiting.request);
      }
    }
    if (out.json) await out.record({ pending: found });
    else if (found.length === 0) out.note("Nothing waits on an answer.");
    return exitCode;
  });
}

async function print({ out, db }: Context, threadId: string, request: PendingRequest): Promise<void> {
  const since = ago(new Date(request.created_at * 1000));
  await out.line(`${out.style("bold", harmlessLine(threadId))} ${out.style("dim", `asked ${since}`)}`);
  await out.line(indent(describeQuestion(request.payload)));
  const command = respondCommand(threadId, request, db === undefined ? [] : ["--db", withoutPassword(db)]);
  await out.line(indent(out.style("dim", `${command}\n${otherAnswers(request.payload)}`)));
}

/** One that can't be read hides no other. */
async function readPending(store: Checkpointer, threadId: string) {
  try {
    return await store.loadPending(threadId);
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return error;
    throw error;
  }
}

async function* threadsToLookAt(store: Checkpointer, given: string | undefined): AsyncGenerator<ThreadInfo> {
  if (given === undefined) yield* allThreads(store);
  else yield await findThread(store, given);
}
