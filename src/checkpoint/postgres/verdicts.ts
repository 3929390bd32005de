/** What a query found in the way of its write. */
import type { Row } from "../../db/postgres.ts";
import { RunNotCompletedError, ThreadConflictError, ThreadNotFoundError } from "../errors.ts";

/** Gives the thread's revision. @throws ThreadConflictError when another was expected */
export function checkExpected(threadId: string, expected: number | undefined, actual: number): number {
  if (expected !== undefined && actual !== expected) throw new ThreadConflictError(threadId, expected, actual);
  return actual;
}

/** @throws ThreadNotFoundError, RunNotCompletedError when there is nothing to take up to the end of this run */
export function checkCut(threadId: string, runId: string, row: Row | undefined): void {
  if (row?.found !== "t") throw new ThreadNotFoundError(threadId);
  if (typeof row.cut !== "string") throw new RunNotCompletedError(threadId, runId);
}
