/** Rows as values. */
import { StoreError } from "../../db/errors.ts";
import type { Row } from "../../db/sqlite.ts";
import type { HistoryRecord, WindowMessage } from "../history.ts";

export function readRecord(row: Row): HistoryRecord {
  return {
    id: readText(row, "id") ?? "",
    memory_id: readText(row, "memory_id") ?? "",
    old_memory: readText(row, "old_memory"),
    new_memory: readText(row, "new_memory"),
    event: readText(row, "event") ?? "",
    created_at: readText(row, "created_at"),
    updated_at: readText(row, "updated_at"),
    is_deleted: Boolean(row.is_deleted),
    actor_id: readText(row, "actor_id"),
    role: readText(row, "role"),
  };
}

export function readMessage(row: Row): WindowMessage {
  return {
    role: readText(row, "role") ?? "",
    content: readText(row, "content"),
    name: readText(row, "name"),
    created_at: readText(row, "created_at"),
  };
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function readText(row: Row, column: string): string | null {
  const value = row[column] ?? null;
  if (value === null || typeof value === "string") return value;
  if (!(value instanceof Uint8Array)) return String(value);
  try {
    return UTF8.decode(value);
  } catch (cause) {
    throw new StoreError(
      `The column ${column} of a row is damaged: its bytes are not text. ${JSON.stringify({ id: row.id })}`,
      { cause },
    );
  }
}
