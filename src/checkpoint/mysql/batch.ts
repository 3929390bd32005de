/** The rows of an append, made before a connection is taken, and the statements that insert them. */
import { ValueTooLargeError } from "../../db/errors.ts";
import type { Session, Value } from "../../db/mysql.ts";
import type { Message } from "../../messages/schema.ts";
import { columnsOf } from "../server-rows.ts";
import { toColumn } from "./columns.ts";
import type { Queries } from "./queries.ts";

export interface NewRow {
  role: string;
  metadata: string;
  payload: Buffer;
  runId: string | null;
  /** About how many bytes it takes in a packet. */
  bytes: number;
}

/** What a packet holds beside the values: its head, and of each row the ids and the types. */
const OVERHEAD = 4096;
/** Statements are prepared for these numbers of rows, so that a server keeps few of them. */
const SIZES = [64, 16, 4, 1];

/**
 * Admitted messages as rows.
 *
 * @param maxPacket the largest packet that the server takes, in bytes
 * @throws ValueTooLargeError when one of them is over it
 */
export function rowsOf(messages: readonly Message[], maxPacket: number): NewRow[] {
  return messages.map((message, i) => {
    const { role, metadata, payload, runId } = columnsOf(message);
    const json = toColumn(metadata);
    // A server may write JSON with spaces when the row is read, in a packet of the same limit.
    const bytes = payload.byteLength + 2 * Buffer.byteLength(json) + OVERHEAD;
    if (bytes > maxPacket) throw new ValueTooLargeError(`messages[${i}]`, bytes, maxPacket);
    const bytesOf = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    return { role, metadata: json, payload: bytesOf, runId, bytes };
  });
}

/** Checks a value that is stored alone. @throws ValueTooLargeError */
export function checkSize(what: string, json: string, maxPacket: number): string {
  const bytes = 2 * Buffer.byteLength(json) + OVERHEAD;
  if (bytes > maxPacket) throw new ValueTooLargeError(what, bytes, maxPacket);
  return json;
}

/** Inserts rows from `seq` on, in as many statements as the packets need. Gives the last seq. */
export async function insertRows(
  session: Session,
  queries: Queries,
  rows: readonly NewRow[],
  at: { threadId: string; after: number; maxPacket: number },
): Promise<number> {
  let seq = at.after;
  for (let start = 0; start < rows.length; ) {
    const count = SIZES.find((size) => fits(rows, start, size, at.maxPacket)) ?? 1;
    const values: Value[] = [];
    for (const { role, metadata, payload, runId } of rows.slice(start, start + count)) {
      values.push(at.threadId, ++seq, role, metadata, payload, runId);
    }
    const places = Array(count).fill("(?, ?, ?, ?, ?, ?)").join(", ");
    await session.run(`${queries.INSERT_MESSAGES} ${places}`, values);
    start += count;
  }
  return seq;
}

function fits(rows: readonly NewRow[], start: number, count: number, maxPacket: number): boolean {
  if (start + count > rows.length) return false;
  let bytes = 0;
  for (const row of rows.slice(start, start + count)) bytes += row.bytes;
  return bytes <= maxPacket;
}
