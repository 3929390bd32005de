/** Writes that need more than a statement: a thread's extra, and a part of another store's thread. Run inside a write. */
import type { SqliteStore } from "../../db/sqlite.ts";
import { messageToJson } from "../../messages/codec.ts";
import { type JsonObject, parseKeepingNumbers, setOwn } from "../../messages/json.ts";
import type { AdmittedPart } from "../part.ts";
import * as Q from "./queries.ts";
import { readExtra, toJulianDay } from "./rows.ts";

/** Merging nothing stores nothing, as everywhere. @throws CheckpointCorruptionError when the extra that is there can't be read */
export function mergeExtra(store: SqliteStore, threadId: string, changes: JsonObject): void {
  if (Object.keys(changes).length === 0) return;
  const row = store.prepare(Q.EXTRA).get(threadId);
  const merged = row ? readExtra(threadId, row.extra_json, parseKeepingNumbers) : {};
  for (const [key, value] of Object.entries(changes)) setOwn(merged, key, value);
  store.prepare(Q.SAVE_EXTRA).run(threadId, JSON.stringify(merged));
}

/** Gives the new revision; undefined when the part has no messages. */
export function putPart(store: SqliteStore, threadId: string, part: AdmittedPart): number | undefined {
  let revision: number | undefined;
  const insert = store.prepare(Q.IMPORT_MESSAGE);
  for (const { message, createdAt } of part.messages) {
    const json = messageToJson(message);
    revision = Number(insert.run(threadId, json, toJulianDay(createdAt), message.run_id ?? null).lastInsertRowid);
  }
  for (const { runId, claimedAt, completedAt, completionSeq } of part.runs) {
    const completed = completedAt && toJulianDay(completedAt);
    store.prepare(Q.IMPORT_RUN).run(threadId, runId, toJulianDay(claimedAt), completed, completionSeq);
  }
  if (part.parentThreadId !== undefined) store.prepare(Q.IMPORT_PARENT).run(threadId, part.parentThreadId);
  if (part.extra) mergeExtra(store, threadId, part.extra);
  if (part.pending === null) store.prepare(Q.DELETE_PENDING).run(threadId);
  else if (part.pending) {
    const { request, runId } = part.pending;
    store.prepare(Q.SAVE_PENDING).run(threadId, JSON.stringify(request), runId);
  }
  if (part.answers) store.prepare(Q.DELETE_LEDGER).run(threadId);
  for (const { runId, questionId, answer } of part.answers ?? []) {
    store.prepare(Q.SAVE_ANSWER).run(threadId, runId ?? "", questionId, JSON.stringify(answer));
  }
  return revision;
}
