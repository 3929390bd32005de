/** The archives of a thread, as marks in its log; within a transaction or a snapshot. */
import type { Row, Session, Statement } from "../../db/mysql.ts";
import { archiveIdOf, archiveNumberOf, checkArchiveCounts, keptByFork } from "../archive-rules.ts";
import type { ArchivePart } from "../checkpointer.ts";
import { checkSize } from "./append.ts";
import type { ArchiveQueries } from "./archive-queries.ts";
import { toColumn } from "./columns.ts";
import type { Queries } from "./queries.ts";

export interface ArchiveTables {
  prefix: string;
  queries: Queries;
  archives: ArchiveQueries;
}

export interface Mark {
  archiveId: string;
  number: number;
  /** It holds the messages after this seq, up to the next. */
  after: number;
  upTo: number;
  at: number;
  createdAt: Date;
  prunedAt: Date | null;
}

export interface Marks {
  /** What positions have above seq. */
  base: number;
  /** The seq of the thread's last message, 0 when it has none. */
  last: number;
  /** Oldest first. */
  marks: Mark[];
  /** Whether there are archives of another log than the thread's; they don't count. */
  strays: boolean;
}

/**
 * The archives of a thread. Those of another log don't count: where another program has deleted a thread, seq begins at 1
 * again, and no archive may hide what is written then. The log is another one when it ends before the last archive does, or
 * when the message that this ended with was stored at another time.
 */
export async function marksOf(session: Session, tables: ArchiveTables, threadId: string): Promise<Marks> {
  const { queries, archives } = tables;
  const [[state] = [], rows = []] = await session.all([
    [queries.STATE, [null, threadId]],
    [archives.MARKS, [threadId]],
  ]);
  const there = state?.thread_id === threadId;
  const [base, last] = there ? [Number(state.base), Number(state.last)] : [0, 0];
  const marks = rows.map((row, i) => markOf(row, Number(rows[i - 1]?.up_to_seq ?? 0)));
  const newest = marks.at(-1);
  if (!newest) return { base, last, marks, strays: false };
  const [end] = await session.rows(archives.STORED_AT, [threadId, newest.upTo]);
  const same = !end || Number(end.created_at) === Number(rows.at(-1)?.up_to_created_at);
  const strays = !there || newest.upTo > last || !same;
  return { base, last, marks: strays ? [] : marks, strays };
}

function markOf(row: Row, after: number): Mark {
  const number = Number(row.archive_no);
  return {
    archiveId: archiveIdOf(number),
    number,
    after,
    upTo: Number(row.up_to_seq),
    at: Number(row.at_seq),
    createdAt: dateOf(row.created_at),
    prunedAt: row.pruned_at === null ? null : dateOf(row.pruned_at),
  };
}

/** Seconds since 1970 with three decimals, as a query gives them. */
function dateOf(seconds: unknown): Date {
  return new Date(Math.round(Number(seconds) * 1000));
}

/** A position in a thread's log; 0 for the place before the first message. */
export function positionOf(base: number, seq: number): number {
  return seq === 0 ? 0 : base + seq;
}

/** What a fork keeps and takes. @throws ArchivePrunedError */
export async function forkCut(
  session: Session,
  tables: ArchiveTables,
  { source, cut }: { source: string; cut: number },
): Promise<{ kept: Mark[]; taken: number[] }> {
  const { marks } = await marksOf(session, tables, source);
  const rows = marks.length === 0 ? [] : await session.rows(tables.archives.TAKEN_SEQS, [source, source, cut]);
  const end = Number(rows.findLast((row) => Number(row.of_run) === 1)?.seq ?? 0);
  return { kept: keptByFork(source, marks, end), taken: rows.map((row) => Number(row.seq)) };
}

/**
 * What puts the archives that a fork keeps into it, once its messages are there.
 *
 * @param fork.first the seq that the first of its messages follows
 */
export function archiveForks(
  archives: ArchiveQueries,
  fork: { source: string; target: string; first: number; kept: Mark[]; taken: number[] },
): Statement[] {
  const { source, target, first, kept, taken } = fork;
  const placeOf = (seq: number) => {
    const count = countUpTo(taken, seq);
    return count === 0 ? 0 : first + count;
  };
  const copies = kept.map(({ number, upTo, at }): Statement => {
    const end = placeOf(upTo);
    return [archives.FORK, [target, end, target, end, placeOf(at), source, number]];
  });
  return [[archives.DELETE, [target]], ...copies];
}

/** How many of the numbers, which are in order, are this one or below. */
function countUpTo(numbers: readonly number[], most: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Archives of another store, made ready before a connection is taken. @throws ValueTooLargeError */
export function archiveRowsOf(parts: readonly ArchivePart[], maxPacket: number) {
  return parts.map((part, i) => {
    const extra = toColumn(part.extra);
    checkSize(`archives[${i}]`, `${part.summary}${part.system ?? ""}${extra}`, maxPacket);
    return { ...part, extra };
  });
}

/** Puts archives of another store in place of the thread's. @throws InvalidArgumentError */
export async function importArchives(
  session: Session,
  archives: ArchiveQueries,
  threadId: string,
  parts: ReturnType<typeof archiveRowsOf>,
): Promise<void> {
  await session.run(archives.DELETE, [threadId]);
  if (parts.length === 0) return;
  const seqs = (await session.rows(archives.SEQS, [threadId])).map((row) => Number(row.seq));
  checkArchiveCounts(parts, seqs.length);
  const placeOf = (count: number) => seqs[Math.min(count, seqs.length) - 1] ?? 0;
  let count = 0;
  for (const { archiveId, createdAt, messageCount, kept = 0, summary, system, extra, prunedAt } of parts) {
    count += messageCount;
    const [end, number] = [placeOf(count), archiveNumberOf(archiveId)];
    const place = [threadId, number, end, threadId, end, placeOf(count + kept)];
    const times = [secondsOf(createdAt), prunedAt && secondsOf(prunedAt)];
    await session.run(archives.IMPORT, [...place, summary, system, extra, ...times]);
  }
}

/** What a TIMESTAMP(3) can hold: from 1970 to 2038. Times are for display, and order is the log's. */
function secondsOf(date: Date): string {
  return (Math.min(Math.max(date.getTime(), 1000), 2 ** 31 * 1000 - 1) / 1000).toFixed(3);
}
