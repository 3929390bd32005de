/**
 * What happens to each tool call of a batch, decided before any of it runs: run, be answered without running, or wait for
 * a person. A decision is made again when a suspended run is resumed, with the answers that the ledger holds by then.
 */
import type { PendingPayload, PendingRequest } from "../checkpoint/pending.ts";
import { messageOf } from "../errors.ts";
import { now } from "../messages/construct.ts";
import { copyJsonObject, isJsonObject, type JsonObject, type JsonValue, sameJson } from "../messages/json.ts";
import type { Message, ToolCallBlock, ToolResultMessage } from "../messages/schema.ts";
import { MAX_ID_LENGTH } from "../util/ids.ts";
import { answeredResult, askPayload, askUserTool, checkAskAnswer } from "./ask-user.ts";
import { HitlInvalidAnswerError, HitlMismatchError } from "./errors.ts";
import type { HookContext, Hooks } from "./middleware.ts";
import { askQuestionIds, asksTheSame, normalQuestions } from "./question-id.ts";
import { checkArguments, errorResult, type Tool } from "./tools.ts";

/** What a policy says of a call. "ask" shows a person the tool, its arguments and `details`, or puts the question `confirm`. */
export type Decision =
  | "allow"
  | "deny"
  | "ask"
  | { decision: "allow" }
  | { decision: "deny"; reason?: string }
  | { decision: "ask"; details?: JsonObject; confirm?: string };

/** A call as a policy sees it. */
export interface ApprovalContext {
  toolName: string;
  toolCallId: string;
  arguments: JsonObject;
  threadId: string | undefined;
  runId: string;
  extra: JsonObject;
  /** The thread's active messages, the call's own last. */
  messages: readonly Message[];
}

/** Decides about a call. One that throws, or gives something else, denies: nothing runs by mistake. */
export type ApprovalPolicy = (call: ApprovalContext) => Decision | Promise<Decision>;

/** Denies a call, with a reason that the model reads. */
export const deny = (reason?: string): Decision => (reason === undefined ? "deny" : { decision: "deny", reason });

/** A person's answer to an approval, in CubeLoop's form. */
export type ApprovalAnswer = {
  decision: "approve" | "deny" | "edit";
  /** With "edit": the arguments to run with instead. */
  edited_args?: JsonObject | null;
  /** With "deny": why, for the model. */
  reason?: string | null;
};

export type Plan = { call: ToolCallBlock; questionId: string } & (
  | { kind: "run"; tool: Tool; args: unknown; shown: JsonObject; decision?: JsonObject }
  | { kind: "answered"; result: ToolResultMessage }
  | { kind: "ask"; payload: PendingPayload }
);

export interface Batch {
  /** All calls of the assistant message, so that question ids stay what they are. */
  calls: readonly ToolCallBlock[];
  /** Those that have no result yet. */
  open: readonly ToolCallBlock[];
}

interface Deps {
  tools: ReadonlyMap<string, Tool>;
  hooks: Hooks;
  hookContext: HookContext;
  approve: ApprovalPolicy | undefined;
  messages: readonly Message[];
}

/** A call that may run: its tool, what a person is shown, and what the tool gets. */
interface Prepared {
  tool: Tool;
  shown: JsonObject;
  value: unknown;
}

export class Approvals {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Decides about every open call. @param answerTo the recorded answer to a question, or undefined */
  async decide(
    batch: Batch,
    answerTo: (questionId: string) => Promise<JsonValue | undefined> | JsonValue | undefined,
  ): Promise<Plan[]> {
    const ids = questionIds(batch.calls);
    const plans: Plan[] = [];
    for (const call of batch.open) {
      const questionId = ids.get(call) ?? call.id;
      plans.push(await this.#decideCall(call, questionId, await answerTo(questionId)));
    }
    return plans;
  }

  /**
   * Finds the open call that a pending request is about, and checks that it still is what the person was shown.
   *
   * @throws HitlMismatchError when the thread holds no such call, or with other arguments, or in another run
   * @throws HitlInvalidAnswerError when the answer is not of the form that the question takes
   */
  async match(batch: Batch, request: PendingRequest, answer: JsonValue): Promise<string> {
    const { payload, question_id: asked } = request;
    const ids = questionIds(batch.calls);
    const idOf = (call: ToolCallBlock) => ids.get(call) ?? call.id;
    const call =
      batch.open.find((open) => idOf(open) === asked) ??
      (payload.kind === "ask" ? batch.open.find((open) => asksTheSame(idOf(open), asked)) : undefined);
    if (!call) throw new HitlMismatchError("No open tool call of this thread asks this question.");
    const prepared = await this.#prepare(call);
    if ("kind" in prepared) {
      throw new HitlMismatchError(
        `Tool ${JSON.stringify(call.name)} can't be called as the thread holds it: ${JSON.stringify(prepared.result.content)}.`,
      );
    }
    if (payload.kind === "approve") {
      if (payload.tool_name !== call.name || !isShown(payload.args, prepared)) {
        throw new HitlMismatchError(
          `The arguments of ${JSON.stringify(call.name)} are not those that the person was shown.`,
        );
      }
      await checkApprovalAnswer(prepared.tool, answer);
    } else if (payload.kind === "ask") {
      const stored = askPayload(prepared.shown);
      const same = stored?.kind === "ask" && sameQuestions(stored.questions, payload.questions);
      if (!same) throw new HitlMismatchError("The questions are not those that the person was shown.");
      checkAskAnswer(payload.questions, answer);
    } else {
      if (payload.args !== undefined && !isShown(payload.args, prepared)) {
        throw new HitlMismatchError(`The arguments of ${JSON.stringify(call.name)} are not those that were confirmed.`);
      }
      if (typeof answer !== "boolean") throw new HitlInvalidAnswerError("This question takes true or false.");
    }
    return idOf(call);
  }

  async #decideCall(call: ToolCallBlock, questionId: string, answer: JsonValue | undefined): Promise<Plan> {
    const base = { call, questionId };
    const prepared = await this.#prepare(call);
    if ("kind" in prepared) return { ...base, ...prepared };
    const { tool, shown } = prepared;
    if (tool === askUserTool) {
      const payload = askPayload(shown);
      if (!payload)
        return {
          ...base,
          ...answered(
            errorResult(call, "Not asked: `questions` must hold at least one question with a key and a prompt."),
          ),
        };
      if (answer === undefined) return { ...base, kind: "ask", payload };
      return { ...base, ...answered(answeredResult(call, answer)) };
    }
    if (answer !== undefined) return { ...base, ...(await applyAnswer(call, prepared, answer)) };
    const decision = await this.#askPolicy(call, shown);
    if (decision.decision === "allow") return { ...base, kind: "run", tool, args: prepared.value, shown };
    if (decision.decision === "deny")
      return { ...base, ...denied(call, "policy_deny", "The policy denied this call", decision.reason) };
    if (decision.confirm !== undefined) {
      return {
        ...base,
        kind: "ask",
        payload: { kind: "confirm", prompt: decision.confirm, details: decision.details ?? null, args: shown },
      };
    }
    return {
      ...base,
      kind: "ask",
      payload: {
        kind: "approve",
        tool_name: call.name,
        tool_call_id: call.id,
        args: shown,
        details: decision.details ?? null,
      },
    };
  }

  async #prepare(call: ToolCallBlock): Promise<Prepared | Answered> {
    const { tools, hooks, hookContext } = this.#deps;
    const tool = tools.get(call.name);
    if (!tool) {
      const names = [...tools.keys()].join(", ");
      return answered(
        errorResult(call, `There is no tool ${JSON.stringify(call.name)}. There is: ${names === "" ? "none" : names}.`),
      );
    }
    if ("invalid_arguments" in call) {
      return answered(errorResult(call, "The arguments were not valid JSON. Call again with a JSON object."));
    }
    try {
      const hooked = await hooks.beforeToolCall(call, hookContext);
      if (hooked.block !== undefined) return denied(call, "policy_deny", "This call was blocked", hooked.block);
      const shown = copyJsonObject(hooked.call.arguments, "arguments");
      const checked = await checkArguments(tool, shown);
      if (checked.problem !== undefined) {
        return answered(
          errorResult(call, `The arguments don't fit the tool: ${checked.problem}. Mend them and call again.`),
        );
      }
      return { tool, shown, value: checked.value };
    } catch (error) {
      return answered(errorResult(call, `The call was not made: ${messageOf(error)}`));
    }
  }

  async #askPolicy(call: ToolCallBlock, shown: JsonObject): Promise<Exclude<Decision, string>> {
    const { approve, hookContext, messages } = this.#deps;
    if (!approve) return { decision: "allow" };
    const { threadId, runId, extra } = hookContext;
    try {
      // A copy: what the policy does to it must not change what runs.
      const args = copyJsonObject(shown, "arguments");
      const said = await approve({
        toolName: call.name,
        toolCallId: call.id,
        arguments: args,
        threadId,
        runId,
        extra,
        messages,
      });
      return checkDecision(typeof said === "string" ? { decision: said } : said);
    } catch (error) {
      return { decision: "deny", reason: `the approval policy failed: ${messageOf(error)}` };
    }
  }
}

/** A policy's decision, when it is one: what can't be stored and shown to a person must not be asked. */
function checkDecision(said: Exclude<Decision, string> | undefined): Exclude<Decision, string> {
  const none = { decision: "deny", reason: "the approval policy gave no decision" } as const;
  if (said?.decision === "allow") return said;
  if (said?.decision === "deny") return said.reason === undefined ? said : { ...said, reason: String(said.reason) };
  if (said?.decision !== "ask" || !["string", "undefined"].includes(typeof said.confirm)) return none;
  return said.details ? { ...said, details: copyJsonObject(said.details, "details") } : said;
}

/** The pending request of a plan that asks. */
export function pendingRequest(plan: Extract<Plan, { kind: "ask" }>, threadId: string | undefined): PendingRequest {
  return {
    question_id: plan.questionId,
    thread_id: threadId ?? null,
    payload: plan.payload,
    created_at: now(),
    timeout_seconds: null,
  };
}

/**
 * A question's id is its call's, as in CubeLoop, with a number where two calls of a batch share an id. A call's id that
 * can't name a question, since it is empty or too long for the stores, gives way to "call".
 */
function questionIds(calls: readonly ToolCallBlock[]): Map<ToolCallBlock, string> {
  const asks = calls.filter((call) => call.name === askUserTool.name);
  const askIds = askQuestionIds(asks);
  const ids = new Map<ToolCallBlock, string>();
  const taken = new Set<string>();
  for (const call of calls) {
    const base = isUsable(call.id) ? call.id : "call";
    let id = (call.name === askUserTool.name ? askIds[asks.indexOf(call)] : undefined) ?? base;
    for (let n = 2; taken.has(id); n++) id = `${base}#${n}`;
    taken.add(id);
    ids.set(call, id);
  }
  return ids;
}

/** Leaves room for the number. */
function isUsable(id: string): boolean {
  return id !== "" && id.length < MAX_ID_LENGTH - 10 && !id.includes("\0") && id.isWellFormed();
}

interface Answered {
  kind: "answered";
  result: ToolResultMessage;
}

function answered(result: ToolResultMessage): Answered {
  return { kind: "answered", result };
}

function denied(call: ToolCallBlock, decision: string, what: string, reason: string | null | undefined): Answered {
  const said = reason ? `${what}: ${reason}` : `${what}.`;
  return answered(errorResult(call, said, { hitl: { decision, reason: reason ?? null } }));
}

async function applyAnswer(call: ToolCallBlock, prepared: Prepared, answer: JsonValue) {
  const { tool, shown, value } = prepared;
  const given = typeof answer === "boolean" ? { decision: answer ? "approve" : "deny" } : answer;
  if (!isJsonObject(given)) return denied(call, "human_deny", "The answer to this call could not be read", null);
  const reason = typeof given.reason === "string" ? given.reason : null;
  if (given.decision === "approve") {
    return { kind: "run" as const, tool, args: value, shown, decision: { decision: "human_approve" } };
  }
  const edited = given.edited_args;
  if (given.decision === "edit" && isJsonObject(edited)) {
    const checked = await checkArguments(tool, edited);
    if (checked.problem !== undefined) {
      return answered(
        errorResult(call, `The arguments as the user edited them don't fit the tool: ${checked.problem}.`),
      );
    }
    const decision = { decision: "edit", original_args: shown, edited_args: edited };
    return { kind: "run" as const, tool, args: checked.value, shown: edited, decision };
  }
  return denied(call, "human_deny", "The user denied this call", reason);
}

async function checkApprovalAnswer(tool: Tool, answer: JsonValue): Promise<void> {
  if (!isJsonObject(answer) || !["approve", "deny", "edit"].includes(String(answer.decision))) {
    throw new HitlInvalidAnswerError('The answer to an approval is { decision: "approve" | "deny" | "edit", … }.');
  }
  if (answer.decision !== "edit") return;
  const edited = answer.edited_args;
  if (!isJsonObject(edited)) throw new HitlInvalidAnswerError("An edit needs edited_args, the arguments to run with.");
  const checked = await checkArguments(tool, edited);
  if (checked.problem !== undefined) {
    throw new HitlInvalidAnswerError(`The edited arguments don't fit the tool: ${checked.problem}.`);
  }
}

/** CubeLoop shows the arguments as its schema read them, with defaults filled in; Everthread as the thread holds them. */
function isShown(args: JsonValue, prepared: Prepared): boolean {
  return sameJson(args, prepared.shown) || sameJson(args, asJson(prepared.value));
}

function asJson(value: unknown): JsonValue | undefined {
  try {
    return copyJsonObject(value, "value");
  } catch {
    return undefined;
  }
}

function sameQuestions(a: Parameters<typeof normalQuestions>[0], b: Parameters<typeof normalQuestions>[0]): boolean {
  return sameJson(normalQuestions(a), normalQuestions(b));
}
