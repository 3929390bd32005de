/** The command that answers a question, ready to be copied into a shell. */
import type { PendingPayload, PendingRequest } from "../checkpoint/pending.ts";
import { shellQuote } from "./text.ts";

/** @param options words to repeat, such as `--db` and `--tools` with their values */
export function respondCommand(threadId: string, request: PendingRequest, options: readonly string[]): string {
  const { question_id: question, payload } = request;
  const answer = ["--question", question, ...answerWords(payload), ...options];
  // After "--" nothing is taken for an option.
  const words = threadId.startsWith("-") ? [...answer, "--", threadId] : [threadId, ...answer];
  return ["everthread", "respond", ...words].map(shellQuote).join(" ");
}

/** What may be answered besides. */
export function otherAnswers({ kind }: PendingPayload): string {
  if (kind === "approve") return "or --deny [reason], --edit <json>, --abort <reason>";
  return kind === "confirm" ? "or --no, --abort <reason>" : "or --abort <reason>";
}

function answerWords(payload: PendingPayload): string[] {
  if (payload.kind === "approve") return ["--approve"];
  if (payload.kind === "confirm") return ["--yes"];
  const answers = payload.questions.map(({ key, options, multi_select }) => {
    const example = options?.[0]?.value ?? "…";
    return [key, multi_select ? [example] : example];
  });
  return ["--answer", JSON.stringify(Object.fromEntries(answers))];
}
