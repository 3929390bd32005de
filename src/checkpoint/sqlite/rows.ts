/** Rows as values: what a row holds, or the error that names the row. */
import { messageFromJson } from "../../messages/codec.ts";
import { checkJsonObject, type JsonObject, type JsonValue } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import { CheckpointCorruptionError } from "../errors.ts";

export const BACKEND = "sqlite";

/** A message's row. @throws CheckpointCorruptionError */
export function readMessage(threadId: string, id: unknown, json: unknown): Message {
  const rowRef = `messages.id=${String(id)}`;
  try {
    return messageFromJson(json as string);
  } catch (cause) {
    throw new CheckpointCorruptionError({ threadId, backend: BACKEND, rowRef, cause });
  }
}

/** A column of JSON. @throws CheckpointCorruptionError */
export function readJson<T>(
  threadId: string,
  rowRef: string,
  json: unknown,
  check: (value: unknown) => T,
  parse: (text: string) => unknown = JSON.parse,
): T {
  try {
    return check(parse(json as string));
  } catch (cause) {
    throw new CheckpointCorruptionError({ threadId, backend: BACKEND, rowRef, cause });
  }
}

/** A thread's extra. @param parse how the text is read (Default: JSON.parse) @throws CheckpointCorruptionError */
export function readExtra(threadId: string, json: unknown, parse?: (text: string) => unknown): JsonObject {
  return readJson(threadId, `thread_extra.thread_id=${JSON.stringify(threadId)}`, json, checkJsonObject, parse);
}

/** A recorded answer's row. @throws CheckpointCorruptionError */
export function readAnswer(threadId: string, questionId: string, json: unknown): JsonValue {
  const rowRef = `thread_hitl_answers.question_id=${JSON.stringify(questionId)}`;
  return readJson(threadId, rowRef, json, (value) => value as JsonValue);
}

/** SQLite's julianday as a date. */
export function toDate(julianDay: unknown): Date {
  return new Date(Math.round((Number(julianDay) - 2_440_587.5) * 86_400_000));
}

/** The other way round. */
export function toJulianDay(date: Date): number {
  return date.getTime() / 86_400_000 + 2_440_587.5;
}
