/** What is wrong with one thread: damage, and loose ends that crashes and other programs leave. Reads only. */
import type { Checkpointer, RunInfo, ThreadInfo } from "../checkpoint/checkpointer.ts";
import { messageOf } from "../errors.ts";
import { danglingCalls } from "../messages/pairing.ts";
import type { Message } from "../messages/schema.ts";
import { type Finding, modelView } from "../messages/view.ts";
import { entriesOf, type Rest, restOf, runsOf } from "./log.ts";
import { ago } from "./text.ts";

export interface Problem {
  /** Damage loses something that was stored; a warning is a loose end that the agent copes with. */
  severity: "damage" | "warning";
  kind: string;
  thread_id?: string;
  row_ref?: string;
  problem: string;
}

interface Seen {
  message: Message;
  rowRef: string;
}

/** Of the model view's findings those that tell of a crash or of another program's fault. */
const FINDINGS: Partial<Record<Finding["kind"], (toolCallId: string) => string>> = {
  dangling_call: (id) =>
    `Tool call ${id} has no result: its run was interrupted, and whether the tool ran is not known.`,
  orphan_result: (id) => `The result to tool call ${id} has no call before it.`,
  duplicate_result: (id) => `Tool call ${id} has a result already, and this is another.`,
  misplaced_result: (id) => `The result to tool call ${id} does not follow its call.`,
};

/** Every problem of a thread. Never throws: one that can't be read at all has that as its problem. */
export async function checkThread(store: Checkpointer, info: ThreadInfo): Promise<Problem[]> {
  try {
    return (await problemsOf(store, info)).map((problem) => ({ ...problem, thread_id: info.threadId }));
  } catch (error) {
    return [{ severity: "damage", kind: "unreadable", thread_id: info.threadId, problem: messageOf(error) }];
  }
}

async function problemsOf(store: Checkpointer, info: ThreadInfo): Promise<Problem[]> {
  const rest = await restOf(store, info);
  const runs = await runsOf(store, info.threadId);
  const damaged: Problem[] = [];
  const seen: Seen[] = [];
  for await (const { message, rowRef, error } of entriesOf(store, info.threadId)) {
    if (message) seen.push({ message, rowRef });
    else damaged.push(damage(error.rowRef, error.cause));
  }
  damaged.push(...rest.damage.map(({ rowRef, cause }) => damage(rowRef, cause)));
  // What the damaged rows held is not known, so nothing is said of what seems to lack a counterpart.
  if (damaged.length > 0) return damaged;
  return [...looseCalls(seen, rest), ...staleClaims(runs, seen, rest), ...strayQuestion(seen, rest)];
}

function damage(rowRef: string, cause: unknown): Problem {
  return { severity: "damage", kind: "damaged_row", row_ref: rowRef, problem: messageOf(cause) };
}

function looseCalls(seen: readonly Seen[], { pending }: Rest): Problem[] {
  const messages = seen.map(({ message }) => message);
  const waiting = pending ? danglingCalls(messages).at(-1)?.index : undefined;
  return modelView(messages).findings.flatMap(({ kind, index, toolCallId }): Problem[] => {
    const what = FINDINGS[kind];
    // The calls of the turn that waits on a person have no results yet.
    if (what === undefined || (kind === "dangling_call" && index === waiting)) return [];
    const row = seen[index]?.rowRef;
    const problem = what(JSON.stringify(toolCallId));
    return [{ severity: "warning", kind, ...(row === undefined ? {} : { row_ref: row }), problem }];
  });
}

/** Runs that were begun and not ended, by what is stored: under way in another process, or interrupted. */
function staleClaims(runs: readonly RunInfo[], seen: readonly Seen[], { pending }: Rest): Problem[] {
  const lastOf = new Map(seen.map(({ message }) => [message.run_id ?? null, message]));
  return runs.flatMap(({ runId, claimedAt, completedAt }): Problem[] => {
    if (completedAt !== null || pending?.runId === runId) return [];
    const last = lastOf.get(runId);
    // A run that was stopped, or whose model failed, has ended and never completes.
    if (last?.role === "assistant" && ["aborted", "error"].includes(last.stop_reason ?? "")) return [];
    const problem = `Run ${JSON.stringify(runId)} was claimed ${ago(claimedAt)} and has not completed.`;
    return [{ severity: "warning", kind: "stale_claim", problem }];
  });
}

function strayQuestion(seen: readonly Seen[], { pending }: Rest): Problem[] {
  if (!pending) return [];
  const open = danglingCalls(seen.map(({ message }) => message));
  const { payload, question_id } = pending.request;
  const asked = payload.kind === "approve" ? open.filter(({ call }) => call.id === payload.tool_call_id) : open;
  if (asked.length > 0) return [];
  const problem = `It waits on question ${JSON.stringify(question_id)}, and no open tool call asks it; everthread respond --abort closes it.`;
  return [{ severity: "warning", kind: "stray_question", problem }];
}
