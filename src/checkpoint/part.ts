/** The doors of `importThread` and `archives.compact`: what they are given, checked and copied. */
import { InvalidArgumentError } from "../errors.ts";
import { admitMessage } from "../messages/admit.ts";
import { copyJson, copyJsonObject } from "../messages/json.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkThreadId } from "../util/ids.ts";
import { archiveNumberOf } from "./archive-rules.ts";
import type { CompactOptions } from "./archives.ts";
import type { ArchivePart, Capabilities, RunInfo, ThreadPart } from "./checkpointer.ts";
import { UnsupportedError } from "./errors.ts";
import { checkRevision } from "./page.ts";
import { admitPending } from "./pending.ts";

/** A part that has passed; no messages and no runs are empty lists. */
export type AdmittedPart = ThreadPart &
  Required<Pick<{ [K in keyof ThreadPart]: NonNullable<ThreadPart[K]> }, "messages" | "runs">>;

/**
 * Gives the part as it will be stored: a copy that later changes to `part` don't reach.
 *
 * @param store what the store that it is for can do: one that keeps no archives takes none (Default: it keeps them)
 * @throws UnsupportedError
 * @throws InvalidMessageError naming the path of the first value that is not JSON or not of its shape
 * @throws InvalidIdError for what is no id, and for a run id of over 64 characters
 * @throws InvalidArgumentError for what is no list, no date, or no order of completion
 */
export function admitPart(part: ThreadPart, store?: Pick<Capabilities, "backend" | "archives">): AdmittedPart {
  const { messages = [], runs = [], parentThreadId, extra, pending, answers, archives } = part;
  if (store && store.archives !== true && archives && archives.length > 0) {
    throw new UnsupportedError(store.backend, "importThread of archives", store.archives.reason);
  }
  return {
    messages: listOf(messages, "messages").map((item, i) => {
      const message = admitMessage(item.message, `messages[${i}].message`);
      if (typeof message.run_id === "string") checkNewRunId(message.run_id);
      return { message, createdAt: copyDate(item.createdAt, `messages[${i}].createdAt`) };
    }),
    runs: listOf(runs, "runs").map((run, i) => admitRun(run, `runs[${i}]`)),
    parentThreadId: parentThreadId === undefined ? undefined : checkThreadId(parentThreadId),
    extra: extra === undefined ? undefined : copyJsonObject(extra, "extra"),
    pending: pending ? { request: admitPending(pending.request), runId: checkOptionalRunId(pending.runId) } : pending,
    answers:
      answers &&
      listOf(answers, "answers").map(({ runId, questionId, answer }, i) => ({
        runId: checkOptionalRunId(runId),
        questionId: checkQuestionId(questionId),
        answer: copyJson(answer, `answers[${i}].answer`),
      })),
    archives: archives && inOrder(listOf(archives, "archives").map((one, i) => admitArchive(one, `archives[${i}]`))),
  };
}

/** What a compaction stores. @throws InvalidArgumentError */
export function admitCompaction({ upTo, summary, system }: CompactOptions) {
  return {
    upTo: checkPosition(upTo),
    summary: checkProse(summary, "summary"),
    system: system === undefined || system === null ? null : checkProse(system, "system"),
  };
}

function checkPosition(upTo: unknown): number {
  if (typeof upTo === "number" && Number.isSafeInteger(upTo) && upTo > 0) return upTo;
  throw new InvalidArgumentError(`upTo must be the position of an active message, not ${String(upTo)}.`);
}

function admitArchive(archive: ArchivePart, path: string): ArchivePart {
  const { archiveId, createdAt, messageCount, kept = 0, summary, system, extra, prunedAt } = archive;
  if (typeof archiveId !== "string" || Number.isNaN(archiveNumberOf(archiveId))) {
    throw new InvalidArgumentError(`${path}.archiveId must be such as "a1", not ${JSON.stringify(archiveId)}.`);
  }
  if (prunedAt !== null && messageCount !== 0) {
    throw new InvalidArgumentError(`${path} was pruned, so its messageCount must be 0, not ${String(messageCount)}.`);
  }
  return {
    archiveId,
    createdAt: copyDate(createdAt, `${path}.createdAt`),
    messageCount: checkRevision(messageCount ?? Number.NaN, `${path}.messageCount`) as number,
    kept: checkRevision(kept, `${path}.kept`),
    summary: checkProse(summary, `${path}.summary`),
    system: system === null ? null : checkProse(system, `${path}.system`),
    extra: copyJsonObject(extra, `${path}.extra`),
    prunedAt: prunedAt === null ? null : copyDate(prunedAt, `${path}.prunedAt`),
  };
}

function inOrder(archives: ArchivePart[]): ArchivePart[] {
  archives.forEach(({ archiveId }, i) => {
    if (archiveNumberOf(archiveId) !== i + 1) {
      throw new InvalidArgumentError(
        `archives must be all of the thread's, oldest first: archives[${i}].archiveId must be "a${i + 1}".`,
      );
    }
  });
  return archives;
}

/** Text for people and models; ill-formed text is mended, as in messages. */
function checkProse(value: unknown, path: string): string {
  if (typeof value === "string") return value.toWellFormed();
  throw new InvalidArgumentError(`${path} must be a string, not ${value === null ? "null" : typeof value}.`);
}

function admitRun({ runId, claimedAt, completedAt, completionSeq }: RunInfo, path: string): RunInfo {
  const numbered = Number.isSafeInteger(completionSeq) && Number(completionSeq) > 0 && completedAt !== null;
  if (completionSeq !== null && !numbered) {
    throw new InvalidArgumentError(
      `${path}.completionSeq must be a whole number from 1 of a run that has completed, or null; not ${String(completionSeq)}.`,
    );
  }
  return {
    runId: checkNewRunId(runId),
    claimedAt: copyDate(claimedAt, `${path}.claimedAt`),
    completedAt: completedAt === null ? null : copyDate(completedAt, `${path}.completedAt`),
    completionSeq,
  };
}

function listOf<T>(value: readonly T[], name: string): readonly T[] {
  if (Array.isArray(value) && value.every((item) => typeof item === "object" && item !== null)) return value;
  throw new InvalidArgumentError(`${name} must be an array of objects.`);
}

function copyDate(value: unknown, path: string): Date {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return new Date(value);
  throw new InvalidArgumentError(`${path} must be a valid Date, not ${String(value)}.`);
}
