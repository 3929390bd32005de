/** A thread's extra, within a transaction that holds its lock. */
import type { Session } from "../../db/mysql.ts";
import { type JsonObject, setOwn } from "../../messages/json.ts";
import { checkSize } from "./append.ts";
import { toColumn } from "./columns.ts";
import type { Queries } from "./queries.ts";
import { readExtra } from "./rows.ts";

interface Tables {
  prefix: string;
  queries: Queries;
}

export async function extraOf(session: Session, { queries, prefix }: Tables, threadId: string): Promise<JsonObject> {
  const [row] = await session.rows(queries.EXTRA, [threadId]);
  return readExtra(prefix, threadId, row?.json);
}

/** Puts the changes in place of the keys of the same names. @throws ValueTooLargeError */
export async function mergeExtra(
  session: Session,
  tables: Tables,
  threadId: string,
  { changes, maxPacket }: { changes: JsonObject; maxPacket: number },
): Promise<void> {
  const merged = await extraOf(session, tables, threadId);
  for (const [key, value] of Object.entries(changes)) setOwn(merged, key, value);
  await session.run(tables.queries.SAVE_EXTRA, [checkSize("extra", toColumn(merged), maxPacket), threadId]);
}
