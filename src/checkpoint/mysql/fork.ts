/** Forks: a new thread that begins with a copy of another's completed runs, made within the server. */
import type { Session, Statement } from "../../db/mysql.ts";
import type { JsonObject } from "../../messages/json.ts";
import { ThreadAlreadyExistsError, ThreadNotFoundError } from "../errors.ts";
import { checkSize } from "./append.ts";
import { type ArchiveTables, archiveForks, forkCut } from "./archive-marks.ts";
import { toColumn } from "./columns.ts";
import { extraOf } from "./extra.ts";
import type { Queries } from "./queries.ts";
import { cutOf, ensureThread, isUsed, lockThread } from "./threads.ts";

export interface Fork {
  source: string;
  target: string;
  afterRunId: string;
  metadata: JsonObject | undefined;
  maxPacket: number;
  /** Where the store keeps archives. */
  archives: ArchiveTables | undefined;
}

export async function forkThread(
  session: Session,
  { queries, prefix }: { queries: Queries; prefix: string },
  { source, target, afterRunId, metadata, maxPacket, archives }: Fork,
): Promise<void> {
  const found = (await lockThread(session, queries, source)) && (await isUsed(session, queries, source));
  if (!found) throw new ThreadNotFoundError(source);
  const cut = await cutOf(session, queries, source, afterRunId);
  const kept = archives && (await forkCut(session, archives, { source, cut }));
  const { after } = await ensureThread(session, queries, target);
  if (await isUsed(session, queries, target)) throw new ThreadAlreadyExistsError(target);
  const extra = await extraOf(session, { queries, prefix }, source);
  if (metadata) extra.fork = metadata;
  const json = checkSize("extra", toColumn(extra), maxPacket);
  const [row] = await session.rows(queries.TAKEN_SPAN, [source, cut, source]);
  const [count, first, last] = [Number(row?.count), Number(row?.first), Number(row?.last)];
  const messages: Statement =
    last - first + 1 === count
      ? [queries.FORK_SPAN, [target, after + 1 - first, source, first, last]]
      : [queries.FORK_MESSAGES, [target, after, source, source, cut, source]];
  await session.finish([
    [queries.FORK_THREAD, [source, json, count === 0 ? null : last, target]],
    ...(count === 0 ? [] : [messages]),
    [queries.FORK_RUNS, [target, source, cut]],
    ...(kept ? archiveForks(archives.archives, { source, target, first: after, ...kept }) : []),
  ]);
}
