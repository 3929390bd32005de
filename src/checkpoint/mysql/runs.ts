/** Claiming and completing runs, within a transaction. */
import type { Session } from "../../db/mysql.ts";
import { RunAlreadyClaimedError, RunAlreadyCompletedError, RunNotClaimedError } from "../errors.ts";
import type { Queries } from "./queries.ts";
import { ensureThread, findRun, lockThread } from "./threads.ts";

/** @throws RunAlreadyClaimedError, RunAlreadyCompletedError */
export async function claimRun(session: Session, queries: Queries, threadId: string, runId: string): Promise<void> {
  await ensureThread(session, queries, threadId);
  const run = await findRun(session, queries, { threadId, runId, create: true });
  if (run?.done) throw new RunAlreadyCompletedError(threadId, runId);
  if (run) throw new RunAlreadyClaimedError(threadId, runId);
  await session.finish([[queries.INSERT_RUN, [threadId, runId]]]);
}

/** Gives the run the thread's next completion number, once. @throws RunNotClaimedError */
export async function completeRun(session: Session, queries: Queries, threadId: string, runId: string): Promise<void> {
  const run = (await lockThread(session, queries, threadId))
    ? await findRun(session, queries, { threadId, runId })
    : undefined;
  if (!run) throw new RunNotClaimedError(threadId, runId);
  if (run.done) return;
  const [row] = await session.rows(queries.LAST_COMPLETION, [threadId]);
  await session.finish([[queries.COMPLETE_RUN, [Number(row?.seq) + 1, threadId, runId]]]);
}
