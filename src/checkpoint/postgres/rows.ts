/** Rows as values: what a row holds, or the error that names the row. */
import type { Row } from "../../db/postgres.ts";
import { checkJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { CheckpointCorruptionError } from "../errors.ts";
import { checkPending, type PendingRequest } from "../pending.ts";
import { messageOfColumns, readRow } from "../server-rows.ts";
import { fromJsonb } from "./jsonb.ts";

export const BACKEND = "postgres";

/** Names a row as SQL would find it. */
export function messageRef(prefix: string, threadId: string, seq: unknown): string {
  return `${prefix}messages(thread_id=${JSON.stringify(threadId)}, seq=${String(seq)})`;
}

/** A row of the log. @throws CheckpointCorruptionError */
export function readMessage(prefix: string, threadId: string, row: Row): Message {
  const { role, metadata, payload, seq } = row;
  try {
    return messageOfColumns({
      role,
      metadata: fromJsonb(textOf(metadata)),
      payload: Buffer.from(textOf(payload), "base64"),
    });
  } catch (cause) {
    // The name is made only where it is needed: a long log is read row by row.
    throw new CheckpointCorruptionError({
      threadId,
      backend: BACKEND,
      rowRef: messageRef(prefix, threadId, seq),
      cause,
    });
  }
}

/** The column `extra`. @throws CheckpointCorruptionError */
export function readExtra(prefix: string, threadId: string, extra: string | null | undefined): JsonObject {
  const rowRef = `${prefix}threads(thread_id=${JSON.stringify(threadId)}).extra`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => checkJsonObject(fromJsonb(textOf(extra))));
}

/** The column `pending_request`. @throws CheckpointCorruptionError */
export function readPending(prefix: string, threadId: string, request: string | null | undefined): PendingRequest {
  const rowRef = `${prefix}threads(thread_id=${JSON.stringify(threadId)}).pending_request`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => checkPending(fromJsonb(textOf(request))));
}

/** The column `answer`. @throws CheckpointCorruptionError */
export function readAnswer(
  prefix: string,
  threadId: string,
  questionId: string,
  answer: string | null | undefined,
): JsonValue {
  const rowRef = `${prefix}hitl_answers(thread_id=${JSON.stringify(threadId)}, question_id=${JSON.stringify(questionId)})`;
  return readRow({ threadId, backend: BACKEND, rowRef }, () => fromJsonb(textOf(answer)));
}

/** Milliseconds since 1970, as a query gives them. */
export function toDate(milliseconds: string | null | undefined): Date {
  return new Date(Number(milliseconds));
}

function textOf(column: string | null | undefined): string {
  if (typeof column !== "string") throw new TypeError("the column is NULL.");
  return column;
}
