/** A message as it stands in the log: a damaged one is listed with its error, never left out. */
import type { Message } from "../messages/schema.ts";
import { CheckpointCorruptionError } from "./errors.ts";

/** A message as it stands in the log, for people and tools. A damaged one is there with its error: never a silent gap. */
export type LogEntry = { position: number; rowRef: string; createdAt: Date } & (
  | { message: Message; error?: never }
  | { message?: never; error: CheckpointCorruptionError }
);

/** @param read gives the row's message, or throws a CheckpointCorruptionError that names the row */
export function logEntry(about: Pick<LogEntry, "position" | "rowRef" | "createdAt">, read: () => Message): LogEntry {
  try {
    return { ...about, message: read() };
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return { ...about, error };
    throw error;
  }
}
