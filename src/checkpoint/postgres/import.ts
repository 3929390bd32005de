/** A part of another store's thread, as the query takes it. */
import type { Value } from "../../db/postgres.ts";
import type { JsonObject } from "../../messages/json.ts";
import type { AdmittedPart } from "../part.ts";
import { batchOf } from "./append.ts";
import { toJsonb } from "./jsonb.ts";

/** The parameters of the query that imports an admitted part. @throws ValueTooLargeError */
export function importValues(threadId: string, expected: number | undefined, part: AdmittedPart): Value[] {
  const { messages, parentThreadId, extra, pending, answers, archives } = part;
  const batch = batchOf(
    messages.map(({ message }) => message),
    messages.map(({ createdAt }) => createdAt),
  );
  const begins =
    messages.length + part.runs.length + (answers?.length ?? 0) > 0 || [parentThreadId, extra, archives].some(Boolean);
  return [
    threadId,
    expected ?? null,
    batch.payloads,
    batch.rows,
    runsJson(part),
    parentThreadId ?? null,
    extra === undefined ? null : toJsonb(extra),
    pending === undefined ? "keep" : "put",
    pending ? toJsonb(pending.request as unknown as JsonObject) : null,
    pending?.runId ?? null,
    answers === undefined ? null : ledgerJson(answers),
    String(begins || Boolean(pending)),
    (archives ?? []).reduce((sum, { messageCount }) => sum + messageCount, 0),
  ];
}

// Of two of one id the last counts, as if they were put one after the other.

function runsJson({ runs }: AdmittedPart): string {
  const byId = new Map(runs.map((run) => [run.runId, run]));
  const rows = [...byId.values()].map((run) => ({
    run_id: run.runId,
    claimed_at: run.claimedAt,
    completed_at: run.completedAt,
    completion_seq: run.completionSeq,
  }));
  return JSON.stringify(rows);
}

function ledgerJson(answers: NonNullable<AdmittedPart["answers"]>): string {
  const byId = new Map(answers.map((item) => [JSON.stringify([item.runId, item.questionId]), item]));
  const rows = [...byId.values()].map(({ runId, questionId, answer }) => {
    const id = `"run_id":${JSON.stringify(runId ?? "")},"question_id":${JSON.stringify(questionId)}`;
    return `{${id},"answer":${toJsonb(answer)}}`;
  });
  return `[${rows.join(",")}]`;
}
