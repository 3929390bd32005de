/** The door of `importThread`: a piece of another store's thread, checked and copied. */
import { InvalidArgumentError } from "../errors.ts";
import { admitMessage } from "../messages/admit.ts";
import { copyJson, copyJsonObject } from "../messages/json.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkThreadId } from "../util/ids.ts";
import type { RunInfo, ThreadPart } from "./checkpointer.ts";
import { admitPending } from "./pending.ts";

/** A part that has passed; no messages and no runs are empty lists. */
export type AdmittedPart = ThreadPart &
  Required<Pick<{ [K in keyof ThreadPart]: NonNullable<ThreadPart[K]> }, "messages" | "runs">>;

/**
 * Gives the part as it will be stored: a copy that later changes to `part` don't reach.
 *
 * @throws InvalidMessageError naming the path of the first value that is not JSON or not of its shape
 * @throws InvalidIdError for what is no id, and for a run id of over 64 characters
 * @throws InvalidArgumentError for what is no list, no date, or no order of completion
 */
export function admitPart(part: ThreadPart): AdmittedPart {
  const { messages = [], runs = [], parentThreadId, extra, pending, answers } = part;
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
  };
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
