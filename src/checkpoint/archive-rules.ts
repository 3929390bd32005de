/** What every engine decides about archives in the same way: their ids, which a fork keeps, which retention removes. */
import { InvalidArgumentError } from "../errors.ts";
import type { ArchiveInfo } from "./archives.ts";
import type { ArchivePart } from "./checkpointer.ts";
import { ArchivePrunedError } from "./errors.ts";

/** The id of a thread's nth archive, from 1. */
export function archiveIdOf(number: number): string {
  return `a${number}`;
}

/** The other way round; NaN for what is no archive's id. */
export function archiveNumberOf(archiveId: string): number {
  return /^a[1-9]\d{0,14}$/.test(archiveId) ? Number(archiveId.slice(1)) : Number.NaN;
}

/** The number of the archive that a page of archives goes on after; 0 for the first page. @throws InvalidArgumentError */
export function checkArchiveCursor(after: unknown): number {
  if (after === undefined || after === archiveIdOf(0)) return 0;
  const number = typeof after === "string" ? archiveNumberOf(after) : Number.NaN;
  if (!Number.isNaN(number)) return number;
  throw new InvalidArgumentError(`after must be an archive id, such as "a1", not ${String(after)}.`);
}

/** Refuses imported archives that hold more than the thread has. @throws InvalidArgumentError */
export function checkArchiveCounts(archives: readonly Pick<ArchivePart, "messageCount">[], inThread: number): void {
  const held = archives.reduce((sum, { messageCount }) => sum + messageCount, 0);
  if (held <= inThread) return;
  throw new InvalidArgumentError(
    `The archives hold ${held} messages, and the thread has ${inThread}. Import its messages first, or with them.`,
  );
}

/**
 * The archives that a fork keeps: those that end before its last run does. What a later one holds is active again in the fork.
 *
 * @param archives oldest first
 * @param cut the position of the last message of the completed runs that the fork takes; 0 when there is none
 * @throws ArchivePrunedError when messages that would be active again were removed
 */
export function keptByFork<A extends Pick<ArchiveInfo, "archiveId" | "upTo" | "prunedAt">>(
  threadId: string,
  archives: readonly A[],
  cut: number,
): A[] {
  const kept = archives.filter(({ upTo }) => upTo <= cut);
  for (const { archiveId, prunedAt } of archives.slice(kept.length)) {
    if (prunedAt) throw new ArchivePrunedError(threadId, archiveId, prunedAt);
  }
  return kept;
}

/**
 * What retention does with a thread's archives.
 *
 * @param archives oldest first
 * @param keep how many of the newest are kept; 0 keeps all
 * @param holdsWaitingRun whether an archive holds part of the run that waits on a person
 */
export function chooseToPrune<A extends Pick<ArchiveInfo, "archiveId" | "prunedAt">>(
  archives: readonly A[],
  keep: number,
  holdsWaitingRun: (archive: A) => boolean,
): { remove: A[]; protected: { archiveId: string; reason: string }[] } {
  const old = keep === 0 ? [] : archives.slice(0, -keep).filter(({ prunedAt }) => prunedAt === null);
  const waiting = old.filter(holdsWaitingRun);
  return {
    remove: old.filter((archive) => !waiting.includes(archive)),
    protected: waiting.map(({ archiveId }) => ({
      archiveId,
      reason: "It holds part of a run that waits on a person.",
    })),
  };
}
