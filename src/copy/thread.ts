/** Copies one thread into a store: compares, writes what is missing, and compares again. */
import type { Checkpointer, RunInfo, ThreadPart } from "../checkpoint/checkpointer.ts";
import type { Message } from "../messages/schema.ts";
import { compare, type Positions } from "./compare.ts";
import { type CheckedSource, checked, codeOf, Damage, type ThreadSource, threadOf } from "./source.ts";

// One transaction takes so many messages, or so much JSON text.
const BATCH_MESSAGES = 500;
const BATCH_LENGTH = 1_000_000;
const BATCH_RUNS = 1000;
/** How often a thread is compared that its own program writes to meanwhile. */
const ROUNDS = 5;

export type Outcome =
  /** `continued`: the target had the beginning of it. */
  | { kind: "copied" | "continued" | "unchanged"; messages: number }
  /** The target has a thread of this id that holds something else. It was left as it is. */
  | { kind: "conflict"; reason: string }
  /** It can't be copied whole, and nothing of it was. */
  | { kind: "damaged"; reason: string; rowRef: string | undefined }
  /** It was copied, and is not the same. */
  | { kind: "different"; reason: string };

export interface ThreadOptions {
  /** Compare with the source once it is written. */
  verify: boolean;
  /** Write it in one transaction, however long it is: then all of it is in memory. (Default: batch by batch) */
  atOnce?: boolean;
  /** Is told how many messages were written. */
  onWritten?: ((messages: number) => void) | undefined;
}

/** Copies a thread. Killed at any moment it goes on where it was; a thread that fits one batch is there whole or not at all. */
export async function copyThread(thread: ThreadSource, target: Checkpointer, options: ThreadOptions): Promise<Outcome> {
  const source = checked(thread);
  const there = threadOf(target, thread.threadId);
  const { archives } = target.capabilities;
  let kind: "copied" | "continued" | undefined;
  let messages = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const found = await compare(source, there);
      if (found.kind === "conflict") return kind ? { ...found, kind: "different" } : found;
      if (found.kind === "same") return { kind: kind ?? "unchanged", messages };
      if (found.compacted && archives !== true) {
        const reason = `it was compacted, and the target keeps no archives: ${archives.reason}`;
        return { kind: "damaged", reason, rowRef: undefined };
      }
      kind ??= found.begun ? "continued" : "copied";
      for await (const written of write(source, target, found.from, options.atOnce ?? false)) {
        messages += written;
        options.onWritten?.(written);
      }
      if (!options.verify) return { kind, messages };
    }
    return { kind: "different", reason: "its own program went on with it all the while; copy it again" };
  } catch (error) {
    if (error instanceof Damage) return { kind: "damaged", reason: error.message, rowRef: error.rowRef };
    if (codeOf(error) !== "thread_conflict") throw error;
    return { kind: "conflict", reason: "another program wrote to it meanwhile" };
  }
}

/**
 * Writes what the target lacks, a part at a time; each gives how many messages it had. The messages come first and what
 * changes with them last, so that a copy which was cut short is the beginning of the thread and nothing else.
 */
async function* write(
  source: CheckedSource,
  target: Checkpointer,
  from: Positions,
  atOnce: boolean,
): AsyncGenerator<number> {
  let revision = from.target;
  let last = from.source;
  let part: ThreadPart = {};
  const put = async (): Promise<number> => {
    const { messages = [] } = part;
    revision = await target.importThread(source.threadId, part, { expectedRevision: revision });
    part = {};
    return messages.length;
  };
  for await (const batch of batchesOf(source, from.source, atOnce)) {
    if (part.messages) yield await put();
    part.messages = batch.messages;
    last = batch.last;
  }
  for await (const runs of runsOf(source, atOnce)) {
    if (part.runs) yield await put();
    part.runs = runs;
  }
  const { parentThreadId, archives, ...rest } = await source.rest(last);
  part = { ...part, ...rest, parentThreadId: parentThreadId ?? undefined };
  if (archives.length > 0) part.archives = archives;
  yield await put();
}

async function* batchesOf(source: CheckedSource, after: number, atOnce: boolean) {
  let messages: { message: Message; createdAt: Date }[] = [];
  let [length, last] = [0, after];
  for await (const { position, message, createdAt } of source.messages(after)) {
    messages.push({ message, createdAt });
    length += JSON.stringify(message).length;
    last = position;
    if (atOnce || (messages.length < BATCH_MESSAGES && length < BATCH_LENGTH)) continue;
    yield { messages, last };
    [messages, length] = [[], 0];
  }
  if (messages.length > 0) yield { messages, last };
}

async function* runsOf(source: CheckedSource, atOnce: boolean): AsyncGenerator<RunInfo[]> {
  let runs: RunInfo[] = [];
  for await (const run of source.runs()) {
    if (runs.push(run) < BATCH_RUNS || atOnce) continue;
    yield runs;
    runs = [];
  }
  if (runs.length > 0) yield runs;
}
