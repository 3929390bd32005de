/** Copies threads from one store to another, whichever engines they are. */
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { ThreadNotFoundError } from "../checkpoint/errors.ts";
import { InvalidArgumentError } from "../errors.ts";
import { checkThreadId, compareCodePoints } from "../util/ids.ts";
import { isSameStore } from "./same.ts";
import { threadOf } from "./source.ts";
import { copyThread } from "./thread.ts";

const PAGE = 100;
/** Threads at once: a store that commits them together, or is far away, need not wait for each. */
const AT_ONCE = 8;

export interface CopyOptions {
  /** The threads to copy. (Default: all) */
  threadIds?: readonly string[] | undefined;
  /** Compare every thread with the source once it is written. (Default: true) */
  verify?: boolean | undefined;
  /** Is told how far it is, after every batch and every thread. (Default: nobody is) */
  onProgress?: ((progress: { threads: number; messages: number }) => void) | undefined;
}

/** A thread that is not in the target as it is in the source. */
export interface CopyProblem {
  threadId: string;
  reason: string;
  /** The row, where it is one. */
  rowRef?: string;
}

export interface CopyReport {
  /** Threads that the target did not have. */
  copied: number;
  /** Threads of which the target had the beginning. */
  continued: number;
  /** Threads that the target had as they are. */
  unchanged: number;
  /** Messages that were written. */
  messages: number;
  /** Threads of which the target holds something else. They were left as they are. */
  conflicts: CopyProblem[];
  /** Threads that can't be read whole, or hold what a store does not take. Nothing of them was written. */
  damaged: CopyProblem[];
  /** Threads that were written and are not the same. */
  differences: CopyProblem[];
}

/**
 * Copies whole stores or chosen threads: messages with their times, extra, where a thread was forked from, runs with their
 * order of completion, the question it waits on and the answers already given. The source is only read.
 *
 * Again is harmless: what is there is compared, what is missing is added, what is another is left and reported. So a copy that
 * was killed is completed by the next, and a thread that has gone on in the source goes on in the target. Holds a few pages of
 * messages in memory, however long the threads are.
 *
 * @throws ThreadNotFoundError when one of `threadIds` is not in the source; then nothing was copied
 * @throws InvalidArgumentError when both are one store; then nothing was copied
 */
export async function copyThreads(
  from: Checkpointer,
  to: Checkpointer,
  options: CopyOptions = {},
): Promise<CopyReport> {
  if (await isSameStore(from, to)) {
    throw new InvalidArgumentError("The source and the target are one store. Name another one to copy to.");
  }
  const { threadIds, verify = true, onProgress } = options;
  const report: CopyReport = {
    ...{ copied: 0, continued: 0, unchanged: 0, messages: 0 },
    ...{ conflicts: [], damaged: [], differences: [] },
  };
  const progress = { threads: 0, messages: 0 };
  const onWritten = (messages: number) => {
    progress.messages += messages;
    onProgress?.({ ...progress });
  };
  for (const threadId of threadIds ?? []) await mustBeIn(from, threadId);
  // One of them for all: when a worker fails, it ends for the others too.
  const ids = threadIds ? each(new Set(threadIds)) : idsOf(from);
  const work = async () => {
    for await (const threadId of ids) {
      take(report, threadId, await copyThread(threadOf(from, threadId), to, { verify, onWritten }));
      progress.threads++;
      onProgress?.({ ...progress });
    }
  };
  // All have ended before an error is thrown: the caller may close the stores then.
  const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
  for (const one of ended) if (one.status === "rejected") throw one.reason;
  for (const list of [report.conflicts, report.damaged, report.differences]) {
    list.sort((a, b) => compareCodePoints(a.threadId, b.threadId));
  }
  return report;
}

function take(report: CopyReport, threadId: string, outcome: Awaited<ReturnType<typeof copyThread>>): void {
  switch (outcome.kind) {
    case "conflict":
      report.conflicts.push({ threadId, reason: outcome.reason });
      break;
    case "different":
      report.differences.push({ threadId, reason: outcome.reason });
      break;
    case "damaged": {
      const { reason, rowRef } = outcome;
      report.damaged.push({ threadId, reason, ...(rowRef === undefined ? {} : { rowRef }) });
      break;
    }
    default:
      report[outcome.kind]++;
      report.messages += outcome.messages;
  }
}

async function* idsOf(store: Checkpointer): AsyncGenerator<string> {
  let after: string | undefined;
  do {
    const page = await store.listThreads({ after, limit: PAGE });
    for (const { threadId } of page.items) yield threadId;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

async function* each(threadIds: Iterable<string>): AsyncGenerator<string> {
  yield* threadIds;
}

async function mustBeIn(store: Checkpointer, threadId: string): Promise<void> {
  const { items } = await store.listThreads({ prefix: checkThreadId(threadId), limit: 1 });
  if (items[0]?.threadId !== threadId) throw new ThreadNotFoundError(threadId);
}
