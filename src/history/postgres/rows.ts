/** Changes and messages as parameters, and rows as values. Texts are stored as `db/postgres-text.ts` says; ids as they are. */
import { ValueTooLargeError } from "../../db/errors.ts";
import type { Row } from "../../db/postgres.ts";
import { escapeText, unescapeText } from "../../db/postgres-text.ts";
import type { HistoryRecord, WindowMessage } from "../history.ts";
import { storedTime } from "../times.ts";

/** How many characters one parameter has, but for a larger last value. */
const PIECE_SIZE = 2 ** 22;
/** What the texts of one change or message may take, in bytes: as JSON each may take six characters, and a string ends at 2^29. */
const MAX_SIZE = 2 ** 26;

/**
 * Values as JSON arrays for a query each, in their order.
 *
 * @param path how an error names the list
 * @throws ValueTooLargeError
 */
export function piecesOf(values: readonly (HistoryRecord | WindowMessage)[], path: string): string[] {
  const pieces: string[] = [];
  let piece: string[] = [];
  let size = 0;
  for (const [i, value] of values.entries()) {
    const row = toRow(value, `${path}[${i}]`);
    piece.push(row);
    size += row.length;
    if (size < PIECE_SIZE && i < values.length - 1) continue;
    pieces.push(`[${piece.join(",")}]`);
    piece = [];
    size = 0;
  }
  return pieces;
}

function toRow(value: HistoryRecord | WindowMessage, path: string): string {
  const row: Record<string, unknown> = { ...value };
  let size = 0;
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") continue;
    size += Buffer.byteLength(text);
    if (!IDS.has(key)) row[key] = escapeText(text);
  }
  if (size > MAX_SIZE) throw new ValueTooLargeError(path, size, MAX_SIZE);
  return JSON.stringify(row);
}

const IDS: ReadonlySet<string> = new Set(["id", "memory_id"]);

/** A row of the log, with its position. */
export function readRecord(row: Row): { position: number; record: HistoryRecord } {
  const record = {
    id: row.id ?? "",
    memory_id: row.memory_id ?? "",
    old_memory: textOf(row.old_memory),
    new_memory: textOf(row.new_memory),
    event: textOf(row.event) ?? "",
    created_at: timeOf(row.created_at),
    updated_at: timeOf(row.updated_at),
    is_deleted: row.is_deleted === "t",
    actor_id: textOf(row.actor_id),
    role: textOf(row.role),
  };
  return { position: Number(row.position), record };
}

export function readMessage(row: Row): WindowMessage {
  return {
    role: textOf(row.role) ?? "",
    content: textOf(row.content),
    name: textOf(row.name),
    created_at: timeOf(row.created_at),
  };
}

function textOf(stored: string | null | undefined): string | null {
  return typeof stored === "string" ? unescapeText(stored) : null;
}

function timeOf(instant: string | null | undefined): string | null {
  return typeof instant === "string" ? storedTime(instant) : null;
}
