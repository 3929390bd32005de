/** Where a context may be cut in two: at whole turns, so that what is kept can be sent and what waits can be answered. */
import { toolCallsOf } from "../messages/construct.ts";
import { type PairedCall, pairToolCalls } from "../messages/pairing.ts";
import type { Message, UserMessage } from "../messages/schema.ts";
import { isSigned } from "../messages/signatures.ts";
import { isCutShort } from "../messages/state.ts";

/**
 * How many of the messages, from the first, are to be set aside; 0 when none can be.
 *
 * A cut is made before a user's message, or, within the tool calls that the last turns made, before an answer of the model.
 * Never between a call and its result. These always stay: a user's message that has no answer yet, tool results that the
 * model has not read, calls of the last turn that have no result, and the failed attempts at the end, which a retried request
 * is recognised by. Of the rest the newest turns stay that `keepTokens` have room for; nothing is cut when all fits.
 *
 * Some providers refuse to go on with tool calls whose reasoning they signed and don't see again, and what they signed is
 * not sent once something before it is gone. So signed tool calls that the model has not gone on from are set aside whole,
 * with their results; while one of them is open nothing is.
 *
 * @param tokensOf the size of a message
 */
export function chooseCut(
  messages: readonly Message[],
  keepTokens: number,
  tokensOf: (message: Message) => number,
): number {
  const { calls } = pairToolCalls(messages);
  let end = messages.length;
  while (isAttempt(messages[end - 1])) end--;
  while (messages[end - 1]?.role === "user") end--;
  // An attempt that was broken off says nothing of what the model has gone on from.
  const turn = messages.findLastIndex((one, i) => i < end && one.role === "assistant" && !isMereAttempt(one));
  if (turn < 0 || sum(messages, tokensOf) <= keepTokens) return 0;
  const steps = messages.findLastIndex(({ role }, i) => i < turn && role === "user") + 1;
  const calling = toolCallsOf(messages[turn] as Message).length > 0;
  const open = calls.some(({ index, result }) => index === turn && result === undefined);
  const signed = calling && messages.slice(steps, end).some(isSigned);
  if (open && signed) return 0;
  const unread =
    !signed && messages[end - 1]?.role === "tool_result" && belongTogether(messages[end - 1], messages[end]);
  if (open) end = turn;

  const lastResults = lastResultsBefore(calls, messages.length);
  const fits = (cut: number) => {
    const [before, after] = [messages[cut - 1], messages[cut]];
    if (after?.role === "tool_result" || (lastResults[cut] ?? 0) >= cut) return false;
    if (cut === end) return open || !unread;
    return after?.role === "user" ? before?.role !== "user" : calling && cut >= steps;
  };
  // At the least a whole exchange: what only the user said is not worth a summary.
  const least = signed ? end : messages.findIndex(({ role }) => role === "assistant") + 1;
  let best = 0;
  let kept = sum(messages.slice(end), tokensOf);
  for (let cut = end; cut >= least && cut > 0; cut--) {
    if (cut < end) kept += tokensOf(messages[cut] as Message);
    if (best > 0 && kept > keepTokens) break;
    if (fits(cut)) best = cut;
  }
  return best;
}

/** What the user asked for in the run that goes on after the cut, as far as it is set aside. */
export function requestSetAside(messages: readonly Message[], cut: number): UserMessage[] {
  const runId = messages.at(-1)?.run_id ?? null;
  const answered = messages.findLastIndex((one) => one.role === "assistant" && isAnswer(one)) + 1;
  return messages
    .slice(answered, cut)
    .filter((message) => message.role === "user")
    .filter((message) => (message.run_id ?? null) === runId);
}

/** Whether the model had its last word: it neither called a tool nor was cut short. */
export function isAnswer(message: Message): boolean {
  return message.role === "assistant" && toolCallsOf(message).length === 0 && !isCutShort(message);
}

function sum(messages: readonly Message[], tokensOf: (message: Message) => number): number {
  return messages.reduce((total, message) => total + tokensOf(message), 0);
}

function isAttempt(message: Message | undefined): boolean {
  return message !== undefined && isCutShort(message);
}

function isMereAttempt(message: Message): boolean {
  return isCutShort(message) && toolCallsOf(message).length === 0;
}

/** For each cut, where the last result is to a call before it; 0 when there is none. */
function lastResultsBefore(calls: readonly PairedCall[], length: number): number[] {
  const last = new Array<number>(length + 1).fill(0);
  for (const { index, result = 0 } of calls) last[index + 1] = Math.max(last[index + 1] ?? 0, result);
  for (let i = 1; i <= length; i++) last[i] = Math.max(last[i] ?? 0, last[i - 1] ?? 0);
  return last;
}

/** Whether what follows tool results is of their run, or nothing follows: then the model is to read them yet. */
function belongTogether(result: Message | undefined, next: Message | undefined): boolean {
  return next === undefined || (result?.run_id ?? null) === (next.run_id ?? null);
}
