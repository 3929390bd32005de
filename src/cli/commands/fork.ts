/** `everthread fork`: a new thread that begins with a copy of another's completed runs. */
import type { Checkpointer } from "../../checkpoint/checkpointer.ts";
import { checkThreadId } from "../../util/ids.ts";
import { harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { CommandError, EXIT } from "../errors.ts";
import { parseJsonObject } from "../json-argument.ts";
import { runsOf } from "../log.ts";
import { findThread, withStore } from "../store.ts";

export interface ForkOptions {
  afterRun?: string;
  metadata?: string;
}

export async function fork(context: Context, given: string, newThread: string, options: ForkOptions): Promise<number> {
  const { out } = context;
  const metadata = options.metadata === undefined ? undefined : parseJsonObject(options.metadata, "--metadata");
  checkThreadId(newThread);
  return await withStore(context, "change", async (store) => {
    const { threadId } = await findThread(store, given);
    const afterRunId = options.afterRun ?? (await lastCompleted(store, threadId));
    await store.fork(threadId, newThread, { afterRunId, metadata });
    if (out.json) {
      await out.record({ thread_id: newThread, parent_thread_id: threadId, after_run_id: afterRunId });
    } else {
      await out.line(
        `${harmlessLine(newThread)} continues ${harmlessLine(threadId)} after run ${harmlessLine(afterRunId)}.`,
      );
    }
    return EXIT.ok;
  });
}

async function lastCompleted(store: Checkpointer, threadId: string): Promise<string> {
  const last = (await runsOf(store, threadId)).findLast((run) => run.completionSeq !== null);
  if (last) return last.runId;
  throw new CommandError(
    "run_not_completed",
    `Thread ${JSON.stringify(threadId)} has no completed run, so there is nothing to copy.`,
  );
}
