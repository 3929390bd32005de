/** Appending a batch, and finding out what became of one whose answer was lost. */
import type { Row, Value } from "../../db/postgres.ts";
import type { Message } from "../../messages/schema.ts";
import { checkNewRunId, MAX_RUN_ID_LENGTH } from "../../util/ids.ts";
import {
  ConnectionLostError,
  RunAlreadyCompletedError,
  StoreError,
  ThreadConflictError,
  ValueTooLargeError,
} from "../errors.ts";
import { columnsOf } from "../server-rows.ts";
import { toJsonb } from "./jsonb.ts";
import * as Q from "./queries.ts";
import { checkExpected } from "./verdicts.ts";

/** A batch as the query takes it: the payloads in one piece of bytes, and where each is. */
export interface Batch {
  payloads: Buffer;
  count: number;
  rows: string;
  runIds: string[];
}

/** What one message may take, in bytes: STORED_AFTER reads it back as two digits a byte, and JavaScript's strings end at 512 MB. */
const MAX_MESSAGE = 2 ** 28 - 2 ** 16;
/** What a batch may take: the protocol's messages end at 1 GB. */
const MAX_BATCH = 10 ** 9;

/** Runs one of the queries while it holds the thread's lock, and gives its first row. */
type Write = (sql: string, values: Value[]) => Promise<Row | undefined>;

/** @param times when each was stored, for messages of another store (Default: now) @throws ValueTooLargeError */
export function batchOf(messages: readonly Message[], times: readonly Date[] = []): Batch {
  const columns = messages.map(columnsOf);
  for (const [i, { payload }] of columns.entries()) checkSize(`messages[${i}]`, payload.length, MAX_MESSAGE);
  checkSize(
    "The batch",
    columns.reduce((sum, { payload }) => sum + payload.length, 0),
    MAX_BATCH,
  );
  let start = 1;
  const rows = columns.map(({ role, metadata, payload, runId }, i) => {
    const place = `"n":${i + 1},"start":${start},"length":${payload.length}`;
    start += payload.length;
    const more = `"role":"${role}","run_id":${JSON.stringify(runId)},"created_at":${JSON.stringify(times[i] ?? null)}`;
    return `{${place},${more},"metadata":${toJsonb(metadata)}}`;
  });
  return {
    payloads: Buffer.concat(columns.map(({ payload }) => payload)),
    count: columns.length,
    rows: `[${rows.join(",")}]`,
    runIds: [...new Set(columns.flatMap(({ runId }) => runId ?? []))],
  };
}

/**
 * Appends a batch and gives the new revision.
 *
 * When the connection breaks before the answer, the batch may be stored or not. With an expected revision that is found
 * out: tried again, it can't be stored twice, and if the thread has moved by exactly these messages, they were ours.
 *
 * @throws ThreadConflictError, RunAlreadyCompletedError, InvalidIdError, ConnectionLostError, StoreError
 */
export async function appendBatch(
  write: Write,
  threadId: string,
  expected: number | undefined,
  batch: Batch,
): Promise<number> {
  try {
    return await appendOnce(write, threadId, expected, batch);
  } catch (lost) {
    if (!(lost instanceof ConnectionLostError) || lost.outcome !== "unknown" || expected === undefined) throw lost;
    try {
      return await appendOnce(write, threadId, expected, batch);
    } catch (error) {
      if (error instanceof ConnectionLostError) throw lost;
      if (!(error instanceof ThreadConflictError)) throw error;
      return await revisionOfOurs(write, error, batch);
    }
  }
}

async function appendOnce(
  write: Write,
  threadId: string,
  expected: number | undefined,
  { payloads, rows, runIds }: Batch,
): Promise<number> {
  const long = runIds.filter((id) => [...id].length > MAX_RUN_ID_LENGTH);
  const values = [threadId, expected ?? null, arrayText(runIds), payloads, rows, arrayText(long)];
  const row = await write(Q.APPEND, values);
  if (typeof row?.revision === "string") return Number(row.revision);
  checkExpected(threadId, expected, Number(row?.actual));
  const [completed, claimed] = [row?.completed, row?.claimed].map((list): string[] => JSON.parse(list ?? "[]"));
  for (const runId of runIds) {
    if (completed?.includes(runId)) throw new RunAlreadyCompletedError(threadId, runId);
    // A longer id is taken only where another program began that run in these tables.
    if (long.includes(runId) && !claimed?.includes(runId)) checkNewRunId(runId);
  }
  throw new StoreError("Postgres appended nothing, and gave no reason. Nothing was written.");
}

/** A list as Postgres writes an array. */
function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

function checkSize(what: string, bytes: number, limit: number): void {
  if (bytes > limit) throw new ValueTooLargeError(what, bytes, limit);
}

/** The revision up to which the thread holds the batch, if that is what moved it. @throws ThreadConflictError if not */
async function revisionOfOurs(write: Write, conflict: ThreadConflictError, batch: Batch): Promise<number> {
  const row = await write(Q.STORED_AFTER, [conflict.threadId, conflict.expected, batch.count]);
  if (row?.payloads !== batch.payloads.toString("hex")) throw conflict;
  return Number(row.revision);
}
