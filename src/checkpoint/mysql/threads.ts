/** A thread within a transaction: its lock, its state, and what it has. Ids are compared here as well, since CubeLoop's tables take some for the same. */
import { StoreError } from "../../db/errors.ts";
import type { Row, Session, Statement } from "../../db/mysql.ts";
import { checkNewRunId, MAX_RUN_ID_LENGTH } from "../../util/ids.ts";
import { RunAlreadyCompletedError, RunNotCompletedError, ThreadConflictError } from "../errors.ts";
import type { Queries } from "./queries.ts";

export interface ThreadState {
  /** The position of the last message, 0 when there is none. */
  revision: number;
  /** What positions have above seq. */
  base: number;
  /** The seq that the next message follows. */
  after: number;
  /** Of the runs that were asked for, those that are there. */
  runs: ReadonlyMap<string, StoredRun>;
}

/**
 * Takes the thread's lock, making its row when there is none, and says where it stands.
 *
 * @param runIds runs to look up by the way, which saves round trips (Default: none)
 */
export async function ensureThread(
  session: Session,
  queries: Queries,
  threadId: string,
  runIds: readonly string[] = [],
): Promise<ThreadState> {
  const [runId = null, ...others] = runIds;
  // The second statement begins when the first holds the lock, so it sees what the one before us committed.
  const [, [row] = [], ...more] = await session.all([
    [queries.ENSURE_THREAD, [threadId]],
    [queries.STATE, [runId, threadId]],
    ...others.map((id): Statement => [queries.RUN, [threadId, id]]),
  ]);
  checkSame(row?.thread_id, threadId, "thread id");
  const base = Number(row?.base);
  const last = Number(row?.last);
  return {
    revision: last === 0 ? 0 : base + last,
    base,
    after: last === 0 ? Math.max(0, Number(row?.erased) - base) : last,
    runs: new Map([row, ...more.flat()].flatMap((run) => (run?.run_id ? [[String(run.run_id), runOf(run)]] : []))),
  };
}

/** Takes the lock of a thread that is there. Gives false, and locks nothing, when it has no row. */
export async function lockThread(session: Session, queries: Queries, threadId: string): Promise<boolean> {
  const [row] = await session.rows(queries.LOCK_THREAD, [threadId]);
  return row?.thread_id === threadId;
}

/** The position of the thread's last message, 0 when it has none. */
export async function revisionOf(session: Session, queries: Queries, threadId: string): Promise<number> {
  const [row] = await session.rows(queries.STATE, [null, threadId]);
  return row?.thread_id === threadId && Number(row.last) > 0 ? Number(row.base) + Number(row.last) : 0;
}

/** @throws ThreadConflictError */
export function checkExpected(threadId: string, expected: number | undefined, actual: number): void {
  if (expected !== undefined && actual !== expected) throw new ThreadConflictError(threadId, expected, actual);
}

/** Whether anything is stored of a thread. */
export async function isUsed(session: Session, queries: Queries, threadId: string): Promise<boolean> {
  const [row] = await session.rows(queries.USED, [threadId]);
  return row?.thread_id === threadId && Number(row.used) === 1;
}

export interface StoredRun {
  done: boolean;
  completionSeq: number | null;
}

/** A run of the thread. @param create whether it will be made when it is not there; then an id that the tables take for another's is refused */
export async function findRun(
  session: Session,
  queries: Queries,
  run: { threadId: string; runId: string; create?: boolean },
): Promise<StoredRun | undefined> {
  const [row] = await session.rows(queries.RUN, [run.threadId, run.runId]);
  if (!row) return undefined;
  if (row.run_id !== run.runId) {
    if (run.create) checkSame(row.run_id, run.runId, "run id");
    return undefined;
  }
  return runOf(row);
}

function runOf(row: Row): StoredRun {
  const completionSeq = row.completion_seq === null ? null : Number(row.completion_seq);
  return { done: Number(row.done) === 1, completionSeq };
}

/** Checks that a run, which was looked up, takes messages. @throws RunAlreadyCompletedError, InvalidIdError */
export function checkOpenRun(run: StoredRun | undefined, threadId: string, runId: string): void {
  if (run?.done) throw new RunAlreadyCompletedError(threadId, runId);
  // A longer id is taken only where another program began that run in these tables.
  if (!run && runId.length > MAX_RUN_ID_LENGTH) checkNewRunId(runId);
}

/** The completion number up to which a fork or snapshot takes runs. @throws RunNotCompletedError */
export async function cutOf(session: Session, queries: Queries, threadId: string, runId: string): Promise<number> {
  const seq = (await findRun(session, queries, { threadId, runId }))?.completionSeq;
  if (typeof seq !== "number") throw new RunNotCompletedError(threadId, runId);
  return seq;
}

/** @throws StoreError when the row that the tables found for an id has another one */
export function checkSame(found: unknown, id: string, kind: string): void {
  if (found === id) return;
  throw new StoreError(
    `These tables can't tell the ${kind} ${JSON.stringify(id)} from ${JSON.stringify(found)}, which is there already: their collation takes them for the same. Nothing was written. Run the SQL of exactIdsSql() from everthread/mysql, or choose another id.`,
  );
}

/** A thread's row and the rows of its log from a position on, in order. Undefined when there is no such thread. */
export async function readLog(session: Session, queries: Queries, threadId: string, from: number) {
  const found = await session.rows(queries.LOAD, [threadId, threadId, from]);
  const thread = found.find((row) => row.thread_id === threadId);
  if (!thread) return undefined;
  const rows = found.filter((row) => row.thread_id === null).sort((a, b) => Number(a.seq) - Number(b.seq));
  const positionOf = (row: Row | undefined) => (row ? Number(thread.base) + Number(row.seq) : 0);
  return {
    thread,
    rows,
    firstPosition: positionOf(rows[0]),
    lastPosition: positionOf(rows.at(-1)),
    compaction: undefined,
  };
}

/**
 * Removes everything of a thread whose lock is held. Gives whether there was anything.
 *
 * @param more a statement that removes what else there is (Default: none)
 */
export async function eraseThread(
  session: Session,
  queries: Queries,
  threadId: string,
  more?: string | undefined,
): Promise<boolean> {
  const used = await isUsed(session, queries, threadId);
  const revision = await revisionOf(session, queries, threadId);
  if (revision > 0) await session.run(queries.RAISE_ERASED, [revision]);
  await session.run(queries.ORPHAN_FORKS, [threadId]);
  await session.run(queries.DELETE_MESSAGES, [threadId]);
  await session.run(queries.DELETE_RUNS, [threadId]);
  await session.run(queries.DELETE_ALL_ANSWERS, [threadId]);
  if (more) await session.run(more, [threadId]);
  await session.run(queries.DELETE_THREAD, [threadId]);
  return used;
}
