/** A thread's messages and runs, read a page at a time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Checkpointer, LogEntry, RecordedAnswer, RunInfo, ThreadInfo } from "../checkpoint/checkpointer.ts";
import { CheckpointCorruptionError } from "../checkpoint/errors.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import { toolCallsOf } from "../messages/construct.ts";
import type { JsonObject } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import { type ThreadState, threadState } from "../messages/state.ts";

// Messages may be large (images, long tool results), so a page of them is small.
const MESSAGES = 20;
const RUNS = 1000;

export async function* entriesOf(store: Checkpointer, threadId: string): AsyncGenerator<LogEntry> {
  let after: number | undefined;
  do {
    const page = await store.listMessages(threadId, { after, limit: MESSAGES });
    yield* page.items;
    after = page.next ?? undefined;
    // SQLite answers at once; without a turn of the event loop no signal would be heard until the end.
    await nextTurn();
  } while (after !== undefined);
}

/** The runs in the order of their completion; those that have not completed come last, as they were claimed. */
export async function runsOf(store: Checkpointer, threadId: string): Promise<RunInfo[]> {
  const runs: RunInfo[] = [];
  let after: string | undefined;
  do {
    const page = await store.listRuns(threadId, { after, limit: RUNS });
    runs.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  const seq = (run: RunInfo) => run.completionSeq ?? Number.POSITIVE_INFINITY;
  return runs.sort((a, b) => (seq(a) === seq(b) ? a.claimedAt.getTime() - b.claimedAt.getTime() : seq(a) - seq(b)));
}

/** What a thread has besides messages and runs. What can't be read is in `damage`. */
export interface Rest {
  extra: JsonObject;
  pending: { request: PendingRequest; runId: string | null } | undefined;
  answers: RecordedAnswer[];
  damage: CheckpointCorruptionError[];
}

export async function restOf(store: Checkpointer, info: ThreadInfo): Promise<Rest> {
  const damage: CheckpointCorruptionError[] = [];
  const readable = async <T>(read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof CheckpointCorruptionError)) throw error;
      damage.push(error);
      return undefined;
    }
  };
  // After the last message, so that no message is read only for the extra.
  const loaded = await readable(() => store.load(info.threadId, { after: info.revision }));
  const pending = await readable(() => store.loadPending(info.threadId));
  const answers = await readable(() => store.listHitlAnswers(info.threadId));
  return { extra: loaded?.extra ?? {}, pending, answers: answers ?? [], damage };
}

/** Finds where a thread stands while its messages go by, keeping little of what follows the assistant's last turn. */
export class StateWatch {
  #tail: Message[] = [];

  see(message: Message): void {
    if (message.role === "assistant") this.#tail = [{ ...message, content: toolCallsOf(message) }];
    else this.#tail.push({ ...message, content: [] });
  }

  state(pending: boolean): ThreadState {
    return threadState(this.#tail, pending);
  }
}
