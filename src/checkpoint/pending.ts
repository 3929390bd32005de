/** The question a thread waits on, in the form that CubeLoop stores, so that either program can ask and either answer. */
import * as v from "valibot";
import { InvalidMessageError } from "../messages/errors.ts";
import { copyJsonObject, formatPath, type JsonObject } from "../messages/json.ts";
import { checkQuestionId } from "../util/ids.ts";

/** One choice of a question to the user. */
export interface QuestionOption {
  label: string;
  value: string;
  description?: string | null;
  /** Whether choosing it lets the user type something of their own. (Default: false) */
  allow_input?: boolean;
}

export interface Question {
  /** Names the question in the answer. */
  key: string;
  prompt: string;
  /** The choices; null for free text. (Default: null) */
  options?: QuestionOption[] | null;
  /** Whether several choices may be taken. (Default: false) */
  multi_select?: boolean;
  /** (Default: true) */
  required?: boolean;
}

export type PendingPayload =
  | { kind: "approve"; tool_name: string; tool_call_id: string; args: JsonObject; details?: JsonObject | null }
  | { kind: "ask"; questions: Question[] }
  | {
      kind: "confirm";
      prompt: string;
      details?: JsonObject | null;
      /** The arguments that the confirmation is good for. CubeLoop neither writes nor reads them. */
      args?: JsonObject;
    };

export interface PendingRequest {
  question_id: string;
  thread_id: string | null;
  payload: PendingPayload;
  /** Seconds since 1970. */
  created_at: number;
  timeout_seconds?: number | null;
}

// The check comes first: looseObject takes an array too, and hands on a copy that is none.
const object = v.pipe(
  v.unknown(),
  v.check((value) => !Array.isArray(value), "must be an object, not an array."),
  v.looseObject({}),
);
const details = v.nullish(object);
const option = v.looseObject({
  label: v.string(),
  value: v.string(),
  description: v.nullish(v.string()),
  allow_input: v.optional(v.boolean()),
});
const question = v.looseObject({
  key: v.string(),
  prompt: v.string(),
  options: v.nullish(v.array(option)),
  multi_select: v.optional(v.boolean()),
  required: v.optional(v.boolean()),
});

/** The questions of an `ask` request, also what the ask_user tool takes. */
export const questionsSchema = v.pipe(v.array(question), v.minLength(1, "must hold at least one question."));

const pendingSchema = v.looseObject({
  question_id: v.string(),
  thread_id: v.nullable(v.string()),
  payload: v.variant("kind", [
    v.looseObject({
      kind: v.literal("approve"),
      tool_name: v.string(),
      tool_call_id: v.string(),
      args: object,
      details,
    }),
    v.looseObject({ kind: v.literal("ask"), questions: v.array(question) }),
    v.looseObject({ kind: v.literal("confirm"), prompt: v.string(), details, args: v.optional(object) }),
  ]),
  created_at: v.number(),
  timeout_seconds: v.nullish(v.number()),
});

/** A pending request as it will be stored: a checked copy. @throws InvalidMessageError, InvalidIdError */
export function admitPending(value: unknown): PendingRequest {
  const request = checkPending(copyJsonObject(value, "request"));
  // The id as it was given: the copy's ill-formed text is mended, and two ids could have become one.
  checkQuestionId((value as PendingRequest).question_id);
  return request;
}

/** Checks a request that was read back. @throws InvalidMessageError naming the path of what is wrong */
export function checkPending(value: unknown): PendingRequest {
  const result = v.safeParse(pendingSchema, value);
  if (result.success) return value as PendingRequest;
  const issue = result.issues[0];
  const path = (issue.path ?? []).map((item) => item.key as string | number);
  const problem =
    issue.type === "check"
      ? issue.message
      : issue.received === "undefined"
        ? "is missing."
        : `must be ${issue.expected}, not ${issue.received}.`;
  throw new InvalidMessageError(formatPath("request", path), problem);
}
