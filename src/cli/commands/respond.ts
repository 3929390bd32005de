/** `everthread respond`: answers what a thread waits on, and goes on with its run. */
import type { Agent, PromptOptions } from "../../agent/agent.ts";
import { HitlNoPendingRequestError, HitlStaleAnswerError } from "../../agent/errors.ts";
import type { AgentResult } from "../../agent/events.ts";
import type { PendingPayload, PendingRequest } from "../../checkpoint/pending.ts";
import type { JsonValue } from "../../messages/json.ts";
import type { Context } from "../context.ts";
import { EXIT, UsageError } from "../errors.ts";
import { parseJson, parseJsonObject } from "../json-argument.ts";
import { otherAnswers, respondCommand } from "../respond-command.ts";
import { closingAgent, type RunOptions, setUp } from "../setup.ts";
import { findThread, withStore } from "../store.ts";
import { notePending, reportEnding, takeTurn } from "../turn.ts";

export interface RespondOptions extends RunOptions {
  approve?: true;
  deny?: string | true;
  edit?: string;
  answer?: string;
  yes?: true;
  no?: true;
  abort?: string;
  question?: string;
  approveTools?: string;
}

const ANSWERS = ["approve", "deny", "edit", "answer", "yes", "no", "abort"] as const;
type Given = (typeof ANSWERS)[number];
const FITTING: Record<PendingPayload["kind"], readonly Given[]> = {
  approve: ["approve", "deny", "edit", "answer"],
  confirm: ["yes", "no", "answer"],
  ask: ["answer"],
};

export async function respond(context: Context, thread: string | undefined, options: RespondOptions): Promise<number> {
  const { out } = context;
  const [given, another] = ANSWERS.filter((name) => options[name] !== undefined);
  if (another) throw new UsageError(`Give one answer: --${given} and --${another} are two.`);
  // Before anything is opened, so that a slip in the JSON costs nothing.
  const answer = given && answerOf(given, options);
  if (given === "abort") return await closeThread(context, thread, options);
  const setup = await setUp(context, options, options.approveTools);
  return await withStore(context, "change", async (store, session) => {
    const { threadId } = await findThread(store, thread);
    const agent = setup.agentOn(store, threadId, session);
    const about = { threadId, repeat: setup.repeat };
    const request = await waitingRequest(agent, threadId, options.question);
    const ask = out.canAsk ? (await import("../ask.ts")).askPerson : undefined;
    const chosen = given ? answer : await ask?.(request, new AbortController().signal);
    if (chosen === undefined) {
      if (!ask) {
        const command = respondCommand(threadId, request, setup.repeat);
        throw new UsageError(`Give an answer, such as: ${command} (${otherAnswers(request.payload)}).`);
      }
      notePending(out, threadId, request, setup.repeat);
      return EXIT.suspended;
    }
    if (given && !FITTING[request.payload.kind].includes(given)) {
      const fitting = FITTING[request.payload.kind].map((name) => `--${name}`).join(", ");
      throw new UsageError(`--${given} is no answer to what this thread waits on; ${fitting} would be.`);
    }
    const turn = await takeTurn(
      out,
      respondTo(agent, request.question_id, chosen),
      ask && ((next, { signal }) => ask(next, signal)),
    );
    return reportEnding(out, turn, about);
  });
}

function respondTo(agent: Agent, questionId: string, answer: JsonValue) {
  return (options: PromptOptions): Promise<AgentResult> => agent.respond(questionId, answer, options);
}

function answerOf(given: Given, options: RespondOptions): JsonValue | undefined {
  switch (given) {
    case "approve":
      return { decision: "approve" };
    case "deny":
      return { decision: "deny", reason: typeof options.deny === "string" ? options.deny : null };
    case "edit":
      return { decision: "edit", edited_args: parseJsonObject(options.edit ?? "", "--edit") };
    case "answer":
      return parseJson(options.answer ?? "", "--answer");
    case "yes":
      return true;
    case "no":
      return false;
    case "abort":
      return undefined;
  }
}

/** @throws HitlNoPendingRequestError, HitlStaleAnswerError when another question waits than the one that is meant */
async function waitingRequest(agent: Agent, threadId: string, meant: string | undefined): Promise<PendingRequest> {
  const waiting = await agent.pending();
  if (!waiting) throw new HitlNoPendingRequestError(threadId);
  const { request } = waiting;
  if (meant !== undefined && meant !== request.question_id) throw new HitlStaleAnswerError(meant, request.question_id);
  return request;
}

async function closeThread(context: Context, thread: string | undefined, options: RespondOptions): Promise<number> {
  return await withStore(context, "change", async (store) => {
    const { threadId } = await findThread(store, thread);
    const agent = closingAgent(store, threadId);
    await waitingRequest(agent, threadId, options.question);
    const { runId, status } = await agent.abortPending(options.abort);
    if (context.out.json) await context.out.record({ type: "run_end", status, run_id: runId });
    else context.out.note("Closed: what it waited on was denied, and the thread takes messages again.");
    return EXIT.ok;
  });
}
