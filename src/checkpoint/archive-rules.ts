/** What every engine decides about archives in the same way: their ids, which a fork keeps, which retention removes. */
import type { ArchiveInfo } from "./archives.ts";
import { ArchivePrunedError } from "./errors.ts";

/** The id of a thread's nth archive, from 1. */
export function archiveIdOf(number: number): string {
  return `a${number}`;
}

/** The other way round; NaN for what is no archive's id. */
export function archiveNumberOf(archiveId: string): number {
  return /^a[1-9]\d{0,14}$/.test(archiveId) ? Number(archiveId.slice(1)) : Number.NaN;
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
