/** Where a thread stands, read from its log: whose move it is. */
import { danglingCalls } from "./pairing.ts";
import type { Message } from "./schema.ts";

/**
 * - `empty`: nothing was said
 * - `complete`: the last turn of the assistant ended whole
 * - `partial`: the last turn of the assistant was cut short (aborted, or the model failed)
 * - `awaiting_model`: the last word is the user's or a tool's, and the model has not answered
 * - `awaiting_results`: a tool call of the last turn has no result: its run is under way, or was interrupted
 * - `awaiting_answer`: the thread waits on a person (see `loadPending`)
 */
export type ThreadState = "empty" | "complete" | "partial" | "awaiting_model" | "awaiting_results" | "awaiting_answer";

/** @param pending whether the thread has a pending request */
export function threadState(messages: readonly Message[], pending: boolean): ThreadState {
  if (pending) return "awaiting_answer";
  const last = messages.at(-1);
  if (!last) return "empty";
  // A call that an older turn left open stays open for ever once its run has completed; it is nobody's move.
  const lastTurn = messages.findLastIndex((message) => message.role === "assistant");
  if (danglingCalls(messages).some(({ index }) => index === lastTurn)) return "awaiting_results";
  if (last.role !== "assistant") return "awaiting_model";
  return isCutShort(last) ? "partial" : "complete";
}

/** Whether a turn of the assistant was aborted, or the model failed in it. */
export function isCutShort(message: Message): boolean {
  return message.role === "assistant" && (message.stop_reason === "aborted" || message.stop_reason === "error");
}
