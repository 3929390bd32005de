/** Puts a part of another store's thread here, as it stood there. */
import type { Session } from "../../db/mysql.ts";
import type { JsonObject } from "../../messages/json.ts";
import { checkNewRunId } from "../../util/ids.ts";
import type { AdmittedPart } from "../part.ts";
import { checkSize, insertsOf, type NewRow, rowsOf } from "./append.ts";
import { archiveRowsOf, importArchives } from "./archive-marks.ts";
import type { ArchiveQueries } from "./archive-queries.ts";
import { toColumn } from "./columns.ts";
import { mergeExtra } from "./extra.ts";
import { saveAnswer, type Tables } from "./hitl.ts";
import { checkExpected, ensureThread, findRun } from "./threads.ts";

export interface Import {
  threadId: string;
  expected: number | undefined;
  maxPacket: number;
  part: AdmittedPart;
  rows: readonly NewRow[];
  /** Undefined leaves the request as it is, null removes it. */
  pending: { json: string; runId: string | null } | null | undefined;
  answers: readonly { runId: string; questionId: string; json: string }[] | undefined;
  /** Undefined leaves the archives as they are. */
  archives: ReturnType<typeof archiveRowsOf> | undefined;
}

/** What an admitted part is as rows, made before a connection is taken. @throws ValueTooLargeError, InvalidIdError */
export function importOf(
  threadId: string,
  expected: number | undefined,
  part: AdmittedPart,
  maxPacket: number,
): Import {
  const json = (what: string, value: JsonObject) => checkSize(what, toColumn(value), maxPacket);
  const messages = part.messages.map(({ message }) => message);
  const rows = rowsOf(messages, maxPacket).map((row, i) => ({
    ...row,
    createdAt: toSeconds(part.messages[i]?.createdAt),
  }));
  const { pending } = part;
  return {
    threadId,
    expected,
    maxPacket,
    part,
    rows,
    // The column of the run holds 64 characters.
    pending: pending && {
      json: json("pending", pending.request as unknown as JsonObject),
      runId: pending.runId === null ? null : checkNewRunId(pending.runId),
    },
    answers: part.answers?.map(({ runId, questionId, answer }, i) => ({
      runId: runId ?? "",
      questionId,
      json: checkSize(`answers[${i}]`, toColumn(answer), maxPacket),
    })),
    archives: part.archives && archiveRowsOf(part.archives, maxPacket),
  };
}

/** Gives the new revision. */
export async function importPart(
  session: Session,
  tables: Tables & { archives: ArchiveQueries | undefined },
  given: Import,
): Promise<number> {
  const { threadId, expected, maxPacket, part, rows, pending, answers, archives } = given;
  const { queries } = tables;
  const { parentThreadId: parent, extra } = part;
  const { revision, base, after } = await ensureThread(session, queries, threadId);
  checkExpected(threadId, expected, revision);
  if (parent !== undefined) {
    // A parent that is not here gets a row that holds nothing, which the foreign key wants.
    if (parent !== threadId) await session.run(queries.ENSURE_THREAD, [parent]);
    await session.run(queries.SET_PARENT, [parent, threadId]);
  }
  if (extra) await mergeExtra(session, tables, threadId, { changes: extra, maxPacket });
  if (pending !== undefined) {
    await session.run(queries.SAVE_PENDING, [pending?.json ?? null, pending?.runId ?? null, threadId]);
  }
  for (const { runId, claimedAt, completedAt, completionSeq } of part.runs) {
    await findRun(session, queries, { threadId, runId, create: true });
    const times = [toSeconds(claimedAt), completedAt && toSeconds(completedAt)];
    await session.run(queries.IMPORT_RUN, [threadId, runId, ...times, completionSeq]);
  }
  if (answers) await session.run(queries.DELETE_ALL_ANSWERS, [threadId]);
  for (const { runId, questionId, json } of answers ?? []) {
    await saveAnswer(session, tables, { threadId, runId, questionId }, json);
  }
  const inserts = rows.length === 0 ? [] : insertsOf(queries, { threadId, rows, maxPacket }, after);
  if (archives && tables.archives) {
    if (inserts.length > 0) await session.all(inserts);
    await importArchives(session, tables.archives, threadId, archives);
  } else if (inserts.length > 0) await session.finish(inserts);
  return rows.length === 0 ? revision : base + after + rows.length;
}

/** What a TIMESTAMP can hold: whole seconds, from 1970 to 2038. Times are for display, and order is the log's. */
function toSeconds(date: Date = new Date()): number {
  return Math.min(Math.max(Math.floor(date.getTime() / 1000), 1), 2 ** 31 - 1);
}
