/** Appending a batch, whose rows are made before a connection is taken, and finding out what became of one whose answer was lost. */
import { ValueTooLargeError } from "../../db/errors.ts";
import type { Session, Statement, Value } from "../../db/mysql.ts";
import type { Message } from "../../messages/schema.ts";
import { ConnectionLostError, ThreadConflictError } from "../errors.ts";
import { columnsOf } from "../server-rows.ts";
import { toColumn } from "./columns.ts";
import type { Queries } from "./queries.ts";
import { checkExpected, checkOpenRun, ensureThread, type ThreadState } from "./threads.ts";

export interface NewRow {
  role: string;
  metadata: string;
  payload: Buffer;
  runId: string | null;
  /** When it was stored elsewhere, in seconds since 1970; absent for now. */
  createdAt?: number;
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

export interface Batch {
  threadId: string;
  expected: number | undefined;
  rows: readonly NewRow[];
  maxPacket: number;
}

/** Runs work in a transaction. */
type Write = (run: (session: Session) => Promise<number>) => Promise<number>;

/**
 * Appends a batch and gives the new revision.
 *
 * When the connection breaks while committing, the batch may be stored or not. With an expected revision that is found
 * out: tried again, it can't be stored twice, and if the thread has moved by exactly these messages, they were ours.
 *
 * @throws ThreadConflictError, RunAlreadyCompletedError, InvalidIdError, ConnectionLostError
 */
export async function appendBatch(write: Write, queries: Queries, batch: Batch): Promise<number> {
  try {
    return await write((session) => appendOnce(session, queries, batch));
  } catch (lost) {
    if (!(lost instanceof ConnectionLostError) || lost.outcome !== "unknown" || batch.expected === undefined)
      throw lost;
    try {
      return await write((session) => appendOrFind(session, queries, batch));
    } catch (error) {
      throw error instanceof ConnectionLostError ? lost : error;
    }
  }
}

async function appendOnce(session: Session, queries: Queries, batch: Batch): Promise<number> {
  const { threadId, expected, rows } = batch;
  const runIds = [...new Set(rows.flatMap((row) => row.runId ?? []))];
  const state = await ensureThread(session, queries, threadId, runIds);
  checkExpected(threadId, expected, state.revision);
  for (const runId of runIds) checkOpenRun(state.runs.get(runId), threadId, runId);
  await session.finish(insertsOf(queries, batch, state.after));
  return state.base + state.after + rows.length;
}

async function appendOrFind(session: Session, queries: Queries, batch: Batch): Promise<number> {
  // The lock is had only when the transaction whose answer was lost has ended.
  const state = await ensureThread(session, queries, batch.threadId);
  if (state.revision === batch.expected) return await appendOnce(session, queries, batch);
  const found = await revisionOfOurs(session, queries, batch, state);
  if (found === undefined) throw new ThreadConflictError(batch.threadId, batch.expected ?? 0, state.revision);
  return found;
}

/** The revision up to which the thread holds the batch, if that is what moved it. */
async function revisionOfOurs(session: Session, queries: Queries, batch: Batch, state: ThreadState) {
  const { threadId, expected = 0, rows } = batch;
  const after = expected === 0 ? 0 : expected - state.base;
  if (after < 0) return undefined;
  const stored = await session.rows(queries.PAYLOADS_AFTER, [threadId, after, rows.length]);
  const same = rows.every(({ payload }, i) => payload.equals((stored[i]?.payload as Buffer | undefined) ?? EMPTY));
  return same ? state.base + Number(stored.at(-1)?.seq) : undefined;
}

const EMPTY = Buffer.alloc(0);

/** What inserts rows after a seq: as many statements as the packets need. */
export function insertsOf(
  queries: Queries,
  { threadId, rows, maxPacket }: Pick<Batch, "threadId" | "rows" | "maxPacket">,
  after: number,
): Statement[] {
  const statements: Statement[] = [];
  let seq = after;
  for (let start = 0; start < rows.length; ) {
    const count = SIZES.find((size) => fits(rows, start, size, maxPacket)) ?? 1;
    const values: Value[] = [];
    const places: string[] = [];
    for (const { role, metadata, payload, runId, createdAt } of rows.slice(start, start + count)) {
      values.push(threadId, ++seq, role, metadata, payload, runId);
      places.push(`(?, ?, ?, ?, ?, ?, ${createdAt === undefined ? "DEFAULT" : "FROM_UNIXTIME(?)"})`);
      if (createdAt !== undefined) values.push(createdAt);
    }
    statements.push([`${queries.INSERT_MESSAGES} ${places.join(", ")}`, values]);
    start += count;
  }
  return statements;
}

function fits(rows: readonly NewRow[], start: number, count: number, maxPacket: number): boolean {
  if (start + count > rows.length) return false;
  let bytes = 0;
  for (const row of rows.slice(start, start + count)) bytes += row.bytes;
  return bytes <= maxPacket;
}
