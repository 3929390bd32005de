/** Puts a thread of an export into a store, as `copy` would put it there from another store, but in one transaction. */
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import type { ThreadSource } from "../copy/source.ts";
import { copyThread } from "../copy/thread.ts";
import { compareCodePoints } from "../util/ids.ts";
import type { FileThread } from "./import-read.ts";

export type Outcome =
  /** `continued`: the store had the beginning of it. */
  | { kind: "imported" | "continued" | "unchanged"; messages: number }
  /** The store has a thread of this id that holds something else. It was left as it is. */
  | { kind: "conflict"; reason: string };

export async function writeThread(store: Checkpointer, thread: FileThread): Promise<Outcome> {
  const outcome = await copyThread(sourceOf(thread), store, { verify: false, atOnce: true });
  if ("reason" in outcome) return { kind: "conflict", reason: outcome.reason };
  return { kind: outcome.kind === "copied" ? "imported" : outcome.kind, messages: outcome.messages };
}

function sourceOf(thread: FileThread): ThreadSource {
  const { threadId, parentThreadId, extra, messages, runs, pending, answers, archives } = thread;
  return {
    threadId,
    async *messages(after = 0) {
      for (const entry of messages) {
        if (entry.position > after) yield { ...entry, rowRef: `position ${entry.position}` };
      }
    },
    async *runs() {
      yield* runs.toSorted((a, b) => compareCodePoints(a.runId, b.runId));
    },
    async rest() {
      const some = Object.keys(extra).length > 0;
      const byQuestion = answers.toSorted(
        (a, b) => compareCodePoints(a.runId ?? "", b.runId ?? "") || compareCodePoints(a.questionId, b.questionId),
      );
      return { parentThreadId, extra: some ? extra : undefined, pending, answers: byQuestion, archives };
    },
  };
}
