/** Pending requests and the ledger of answers, within a transaction. */
import type { Session } from "../../db/mysql.ts";
import type { JsonValue } from "../../messages/json.ts";
import type { RecordedAnswer } from "../checkpointer.ts";
import type { PendingRequest } from "../pending.ts";
import type { Queries } from "./queries.ts";
import { readAnswer, readPending } from "./rows.ts";
import { checkExpected, checkSame, ensureThread, lockThread } from "./threads.ts";

export interface Tables {
  prefix: string;
  queries: Queries;
  /** Whether they tell apart all ids. */
  exact: boolean;
}

export async function readPendingOf(
  session: Session,
  { queries, prefix }: Tables,
  threadId: string,
): Promise<{ request: PendingRequest; runId: string | null } | undefined> {
  const [row] = await session.rows(queries.PENDING, [threadId]);
  if (row?.thread_id !== threadId) return undefined;
  return { request: readPending(prefix, threadId, row.json), runId: (row.run_id as string | null) ?? null };
}

/** Stores the request in place of any other; null removes it. */
export async function savePending(
  session: Session,
  { queries }: Tables,
  pending: { threadId: string; json: string | null; runId: string | null; expected: number | undefined },
): Promise<void> {
  const { threadId, json, runId, expected } = pending;
  if (json === null && !(await lockThread(session, queries, threadId))) {
    checkExpected(threadId, expected, 0);
    return;
  }
  const { revision } = await ensureThread(session, queries, threadId);
  checkExpected(threadId, expected, revision);
  await session.run(queries.SAVE_PENDING, [json, json === null ? null : runId, threadId]);
}

/** Puts `next` in the place of the pending request if it is this one of this run. Gives whether it was. */
export async function takePending(
  session: Session,
  tables: Tables,
  threadId: string,
  match: { questionId: string; runId: string | null; next: string | null },
): Promise<boolean> {
  if (!(await lockThread(session, tables.queries, threadId))) return false;
  const pending = await readPendingOf(session, tables, threadId);
  if (!pending || pending.request.question_id !== match.questionId || pending.runId !== match.runId) return false;
  const runId = match.next === null ? null : match.runId;
  await session.run(tables.queries.SAVE_PENDING, [match.next, runId, threadId]);
  return true;
}

export async function saveAnswer(
  session: Session,
  { queries, exact }: Tables,
  key: { threadId: string; runId: string; questionId: string },
  json: string,
): Promise<void> {
  const { threadId, runId, questionId } = key;
  if (!exact) {
    const [row] = await session.rows(queries.ANSWER, [threadId, runId, questionId]);
    if (row) {
      checkSame(row.run_id, runId, "run id");
      checkSame(row.question_id, questionId, "question id");
    }
  }
  await session.run(queries.SAVE_ANSWER, [threadId, runId, questionId, json]);
}

export async function readAnswerOf(
  session: Session,
  { queries, prefix }: Tables,
  key: { threadId: string; runId: string; questionId: string },
): Promise<JsonValue | undefined> {
  const { threadId, runId, questionId } = key;
  const [row] = await session.rows(queries.ANSWER, [threadId, runId, questionId]);
  const same = row?.run_id === runId && row.question_id === questionId && row.thread_id === threadId;
  return same ? readAnswer(prefix, threadId, questionId, row.json) : undefined;
}

export async function listAnswersOf(
  session: Session,
  { queries, prefix }: Tables,
  threadId: string,
): Promise<RecordedAnswer[]> {
  const rows = await session.rows(queries.ANSWERS, [threadId]);
  return rows
    .filter((row) => row.thread_id === threadId)
    .map((row) => ({
      runId: row.run_id === "" ? null : String(row.run_id),
      questionId: String(row.question_id),
      answer: readAnswer(prefix, threadId, String(row.question_id), row.json),
    }));
}
