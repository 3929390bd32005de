/** How a thread stands in a store, against the thread that is to be copied there. Reads all of both, and writes nothing. */
import type { ArchivePart, RecordedAnswer } from "../checkpoint/checkpointer.ts";
import { type JsonValue, sameJson } from "../messages/json.ts";
import { compareCodePoints } from "../util/ids.ts";
import { type CheckedSource, codeOf, type Rest, type ThreadSource } from "./source.ts";

export type Comparison =
  | { kind: "same" }
  /** It is the beginning of the source's, or nothing (`begun` is false). What follows `from` is to be written. */
  | { kind: "behind"; begun: boolean; from: Positions; compacted: boolean }
  | { kind: "conflict"; reason: string };

/** Of the last message that both have; 0 where there is none. */
export interface Positions {
  source: number;
  target: number;
}

class Conflict extends Error {}

/** @throws Damage when the source can't be read; a target that can't be is a conflict */
export async function compare(source: CheckedSource, target: ThreadSource): Promise<Comparison> {
  try {
    const messages = await compareMessages(source, target);
    const runs = await compareRuns(source, target);
    const theirs = await source.rest(messages.last);
    const ours = await target.rest(messages.from.target);
    const compacted = theirs.archives.length > ours.archives.length;
    const answered = hasMore(theirs.answers, ours.answers);
    const moved = messages.count > 0 && (messages.more || runs.more || answered || compacted);
    const sameRest = compareRest(theirs, ours, moved);
    if (!messages.more && !runs.more && sameRest) return { kind: "same" };
    const begun = messages.count > 0 || runs.count > 0 || !sameJson(asJson(ours), asJson(NOTHING));
    return { kind: "behind", begun, from: messages.from, compacted: theirs.archives.length > 0 };
  } catch (error) {
    if (error instanceof Conflict) return { kind: "conflict", reason: error.message };
    if (codeOf(error) !== "checkpoint_corruption") throw error;
    return { kind: "conflict", reason: "the store's own rows of it are damaged" };
  }
}

const NOTHING: Rest = { parentThreadId: null, extra: undefined, pending: null, answers: [], archives: [] };

/** The target's messages must be the first of the source's. The source is read to its end: damage there is damage. */
async function compareMessages(source: CheckedSource, target: ThreadSource) {
  const theirs = source.messages()[Symbol.asyncIterator]();
  const from: Positions = { source: 0, target: 0 };
  let count = 0;
  for await (const { position, message, error } of target.messages()) {
    if (error) throw error;
    const next = await theirs.next();
    if (next.done) throw new Conflict("the store has more messages");
    count++;
    if (!sameJson(asJson(message), asJson(next.value.message)))
      throw new Conflict(`the store has another message ${count}`);
    from.source = next.value.position;
    from.target = position;
  }
  let last = from.source;
  for (let next = await theirs.next(); !next.done; next = await theirs.next()) last = next.value.position;
  return { count, from, last, more: last > from.source };
}

/** Every run of the target must be one of the source's, and completed only where that has, in the same order. */
async function compareRuns(source: CheckedSource, target: ThreadSource) {
  const theirs = source.runs()[Symbol.asyncIterator]();
  let [count, more] = [0, false];
  let next = await theirs.next();
  for await (const run of target.runs()) {
    count++;
    while (!next.done && compareCodePoints(next.value.runId, run.runId) < 0) {
      more = true;
      next = await theirs.next();
    }
    if (next.done || next.value.runId !== run.runId) {
      throw new Conflict(`the store has another run, ${JSON.stringify(run.runId)}`);
    }
    const { completedAt, completionSeq } = next.value;
    if (run.completedAt === null) more ||= completedAt !== null;
    else if (completedAt === null || completionSeq !== run.completionSeq) {
      throw new Conflict("its runs completed in another order");
    }
    next = await theirs.next();
  }
  for (; !next.done; next = await theirs.next()) more = true;
  return { count, more };
}

/**
 * Whether the rest is the same.
 *
 * @param moved whether the source has gone on since the target was like it: then what differs is older here, and is replaced
 */
function compareRest(theirs: Rest, ours: Rest, moved: boolean): boolean {
  const extra = ours.extra ?? {};
  const sameExtra = sameJson(theirs.extra ?? {}, extra);
  // Extra never loses a key, so one that only the target has was put there by somebody else.
  const older = moved && Object.keys(extra).every((key) => Object.hasOwn(theirs.extra ?? {}, key));
  if (!sameExtra && !older && Object.keys(extra).length > 0) throw new Conflict("its extra is another");
  const samePending = sameJson(asJson(theirs.pending), asJson(ours.pending));
  if (!samePending && !moved && ours.pending) throw new Conflict("it waits on another question");
  const sameAnswers = sameJson(asJson(theirs.answers), asJson(ours.answers));
  if (!sameAnswers && !moved && !hasMore(theirs.answers, ours.answers)) {
    throw new Conflict("other answers are recorded of it");
  }
  const sameParent = theirs.parentThreadId === ours.parentThreadId;
  if (!sameParent && ours.parentThreadId !== null) throw new Conflict("it was forked from another thread");
  const sameArchives = theirs.archives.length === ours.archives.length;
  if (!beginsWith(theirs.archives, ours.archives)) throw new Conflict("it was compacted otherwise");
  return sameExtra && samePending && sameAnswers && sameParent && sameArchives;
}

/** Whether the source's archives are the target's, and perhaps more: a thread is compacted again and again. */
function beginsWith(theirs: readonly ArchivePart[], ours: readonly ArchivePart[]): boolean {
  return ours.every((one, i) => sameJson(archiveAsJson(one), archiveAsJson(theirs[i])));
}

/** An archive as it is compared: to the millisecond, which every store keeps. */
function archiveAsJson(archive: ArchivePart | undefined): JsonValue {
  return JSON.parse(JSON.stringify(archive ?? null));
}

/** Whether a ledger has all of another's answers, and more. */
function hasMore(theirs: readonly RecordedAnswer[], ours: readonly RecordedAnswer[]): boolean {
  const answers = new Map(theirs.map((one) => [keyOf(one), one.answer]));
  return theirs.length > ours.length && ours.every((one) => sameJson(answers.get(keyOf(one)), one.answer));
}

function keyOf({ runId, questionId }: RecordedAnswer): string {
  return JSON.stringify([runId, questionId]);
}

/** All that is compared is JSON by what it is; the types only name the fields that are known. */
function asJson(value: object | null): JsonValue {
  return value as JsonValue;
}
