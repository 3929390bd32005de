/** Rows as values: what a row holds, or the error that names the row. */
import type { Row } from "../../db/mysql.ts";
import { copyJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { CheckpointCorruptionError } from "../errors.ts";
import { checkPending, type PendingRequest } from "../pending.ts";
import { messageOfColumns, readRow } from "../server-rows.ts";
import { fromColumn } from "./columns.ts";

export const BACKEND = "mysql";

/** Names a row as SQL would find it. */
export function messageRef(prefix: string, threadId: string, seq: unknown): string {
  return `${prefix}messages(thread_id=${JSON.stringify(threadId)}, seq=${String(seq)})`;
}

/** A row of the log. @throws CheckpointCorruptionError */
export function readMessage(prefix: string, threadId: string, row: Row): Message {
  try {
    return messageOfColumns({ role: row.role, metadata: fromColumn(row.json), payload: row.payload as Buffer });
  } catch (cause) {
    // The name is made only where it is needed: a long log is read row by row.
    const rowRef = messageRef(prefix, threadId, row.seq);
    throw new CheckpointCorruptionError({ threadId, backend: BACKEND, rowRef, cause });
  }
}

/** The column `extra`. @throws CheckpointCorruptionError */
export function readExtra(prefix: string, threadId: string, json: unknown): JsonObject {
  const rowRef = `${prefix}threads(thread_id=${JSON.stringify(threadId)}).extra`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => copyJsonObject(fromColumn(json), "extra"));
}

/** The column `pending_request`. @throws CheckpointCorruptionError */
export function readPending(prefix: string, threadId: string, json: unknown): PendingRequest {
  const rowRef = `${prefix}threads(thread_id=${JSON.stringify(threadId)}).pending_request`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => checkPending(fromColumn(json)));
}

/** The column `answer`. @throws CheckpointCorruptionError */
export function readAnswer(prefix: string, threadId: string, questionId: string, json: unknown): JsonValue {
  const rowRef = `${prefix}hitl_answers(thread_id=${JSON.stringify(threadId)}, question_id=${JSON.stringify(questionId)})`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => fromColumn(json));
}

/** Seconds since 1970, as a query gives them. */
export function toDate(seconds: unknown): Date {
  return new Date(Number(seconds) * 1000);
}
