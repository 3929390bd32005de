/** What a row of `cubepi_messages` holds, on every server: the payload, and two columns beside it for SQL to query. */
import { messageFromMsgpack, messageToMsgpack } from "../messages/codec.ts";
import { InvalidMessageError } from "../messages/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, sameJson } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import { CheckpointCorruptionError } from "./errors.ts";

/** The column `role` of each kind of message, as CubeLoop writes it. */
const ROLES: Record<Message["role"], string> = { user: "user", assistant: "assistant", tool_result: "tool" };

export interface MessageColumns {
  role: string;
  metadata: JsonObject;
  payload: Uint8Array;
  runId: string | null;
}

/** The columns of an admitted message. */
export function columnsOf(message: Message): MessageColumns {
  return {
    role: ROLES[message.role],
    metadata: message.metadata ?? {},
    payload: messageToMsgpack(message),
    runId: message.run_id ?? null,
  };
}

/**
 * The message of a row. The payload is the message, key for key; where SQL has changed the column `metadata`, so that it
 * no longer says what the payload does, the column is what counts.
 *
 * @throws InvalidMessageError when the payload is no message, or not one of the row's role
 */
export function messageOfColumns(row: { role: unknown; metadata: JsonValue; payload: Uint8Array }): Message {
  const message = messageFromMsgpack(row.payload);
  if (ROLES[message.role] !== row.role) {
    throw new InvalidMessageError(
      "role",
      `the column says ${JSON.stringify(row.role)}, the payload "${message.role}".`,
    );
  }
  if (!isJsonObject(row.metadata)) throw new InvalidMessageError("metadata", "the column must hold an object.");
  return sameJson(row.metadata, message.metadata ?? {}) ? message : { ...message, metadata: row.metadata };
}

/** Reads a row, and names it in the error when that fails. @throws CheckpointCorruptionError */
export function readRow<T>(where: { threadId: string; backend: string; rowRef: string }, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new CheckpointCorruptionError({ ...where, cause });
  }
}
