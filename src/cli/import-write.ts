/**
 * Puts a thread of an export into a store. All messages go in one append, so a thread is there whole or not at all; what an
 * import that was killed left out (runs, extra, the question) is made up for by the next.
 */
import type { Checkpointer, RunInfo } from "../checkpoint/checkpointer.ts";
import { CheckpointCorruptionError } from "../checkpoint/errors.ts";
import { EverthreadError } from "../errors.ts";
import { type JsonValue, sameJson } from "../messages/json.ts";
import type { FileThread } from "./import-read.ts";
import { entriesOf, restOf, runsOf } from "./log.ts";
import { threadInfo } from "./store.ts";

export type Outcome =
  | { kind: "imported" | "continued" | "unchanged" }
  /** The store has a thread of this id that holds something else. It was left as it is. */
  | { kind: "conflict"; reason: string };

/** What the store still lacks of a thread. */
interface Missing {
  claims: string[];
  messages: boolean;
  extra: boolean;
  pending: boolean;
  completions: string[];
}

export async function writeThread(store: Checkpointer, thread: FileThread): Promise<Outcome> {
  const known = await threadInfo(store, thread.threadId);
  const missing = known ? await compare(store, thread) : everything(thread);
  if ("conflict" in missing) return { kind: "conflict", reason: missing.conflict };
  try {
    const wrote = await write(store, thread, missing);
    return { kind: !wrote ? "unchanged" : known ? "continued" : "imported" };
  } catch (error) {
    if (!isConflict(error)) throw error;
    return { kind: "conflict", reason: "another program wrote to it meanwhile" };
  }
}

function everything({ messages, runs, extra, pending }: FileThread): Missing {
  const nothingElse = messages.length === 0 && runs.length === 0 && pending === undefined;
  return {
    claims: runs.map(({ runId }) => runId),
    messages: messages.length > 0,
    // Where there is nothing else, this is what makes the thread be there.
    extra: Object.keys(extra).length > 0 || nothingElse,
    pending: pending !== undefined,
    completions: completedIn(runs),
  };
}

/** The order matters: a completed run takes no messages, and a late write must find the thread as it was. */
async function write(store: Checkpointer, thread: FileThread, missing: Missing): Promise<boolean> {
  const { threadId, messages, extra, pending } = thread;
  for (const runId of missing.claims) await store.claimRun(threadId, runId);
  if (missing.messages) await store.append(threadId, messages, { expectedRevision: 0 });
  if (missing.extra) await store.saveExtra(threadId, extra);
  if (missing.pending && pending) await store.savePendingRequest(threadId, pending.request, { runId: pending.runId });
  for (const runId of missing.completions) await store.markRunComplete(threadId, runId);
  return (
    missing.messages || missing.extra || missing.pending || missing.claims.length > 0 || missing.completions.length > 0
  );
}

async function compare(store: Checkpointer, thread: FileThread): Promise<Missing | { conflict: string }> {
  const { threadId } = thread;
  const messages = await compareMessages(store, thread);
  if (typeof messages === "string") return { conflict: messages };
  const runs = compareRuns(await runsOf(store, threadId), thread);
  if (typeof runs === "string") return { conflict: runs };
  const info = await threadInfo(store, threadId);
  if (!info) return { conflict: "it was deleted meanwhile" };
  const { extra, pending, damage } = await restOf(store, info);
  if (damage.length > 0) return { conflict: "the store's own rows of it are damaged" };
  const sameExtra = sameJson(extra, thread.extra);
  if (!sameExtra && Object.keys(extra).length > 0) return { conflict: "its extra is another" };
  const samePending = sameJson(asJson(pending), asJson(thread.pending));
  if (!samePending && pending) return { conflict: "it waits on another question" };
  return { ...runs, messages: messages.missing, extra: !sameExtra, pending: !samePending };
}

async function compareMessages(store: Checkpointer, thread: FileThread): Promise<{ missing: boolean } | string> {
  let index = 0;
  for await (const { message } of entriesOf(store, thread.threadId)) {
    if (!message) return "the store's own rows of it are damaged";
    const same = sameJson(asJson(message), asJson(thread.messages[index++]));
    if (!same) return `the store has ${index > thread.messages.length ? "more messages" : `another message ${index}`}`;
  }
  if (index > 0 && index < thread.messages.length) return "the store has fewer messages";
  return { missing: index < thread.messages.length };
}

/** A run that the store has and the file has not, or another order of completion, is other content. */
function compareRuns(stored: readonly RunInfo[], thread: FileThread): Pick<Missing, "claims" | "completions"> | string {
  const known = new Set(stored.map(({ runId }) => runId));
  const inFile = new Set(thread.runs.map(({ runId }) => runId));
  const other = stored.find(({ runId }) => !inFile.has(runId));
  if (other) return `the store has another run, ${JSON.stringify(other.runId)}`;
  const completed = stored.filter(({ completionSeq }) => completionSeq !== null);
  const order = completedIn(thread.runs);
  if (completed.some(({ runId }, i) => order[i] !== runId)) return "its runs completed in another order";
  const claims = thread.runs.map(({ runId }) => runId).filter((runId) => !known.has(runId));
  return { claims, completions: order.slice(completed.length) };
}

/** The runs that completed, in the order in which they did. */
function completedIn(runs: FileThread["runs"]): string[] {
  return runs
    .flatMap(({ runId, completionSeq }) => (completionSeq === null ? [] : [{ runId, completionSeq }]))
    .sort((a, b) => a.completionSeq - b.completionSeq)
    .map(({ runId }) => runId);
}

function isConflict(error: unknown): boolean {
  if (!(error instanceof EverthreadError) || error instanceof CheckpointCorruptionError) return false;
  return ["thread_conflict", "run_already_claimed", "run_already_completed"].includes(error.code);
}

/** Messages and requests are JSON by what they are; their types only name the fields that are known. */
function asJson(value: object | undefined): JsonValue | undefined {
  return value as JsonValue | undefined;
}
