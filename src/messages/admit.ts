/** What every message passes before it is written: a copy that is JSON and has a message's shape. */
import * as v from "valibot";
import { checkRunId } from "../util/ids.ts";
import { InvalidMessageError } from "./errors.ts";
import { copyJsonObject, formatPath, type JsonObject } from "./json.ts";
import { predicateOf } from "./predicate.ts";
import { type Message, messageSchema } from "./schema.ts";

const isMessage = predicateOf(messageSchema);

/**
 * Gives the message as it will be stored: a copy that later changes to `value` don't reach.
 *
 * `content` may be a string (one text block) or null (no blocks); it is stored as an array, which is what CubeLoop reads.
 *
 * @param path how an error names the message (Default: "message")
 * @throws InvalidMessageError naming the path of the first value that is not JSON or not of a message's shape
 * @throws InvalidIdError when `run_id` is not an id
 */
export function admitMessage(value: unknown, path = "message"): Message {
  const copy = withContentArray(copyJsonObject(value, path));
  const message = checkShape(copy, path);
  // The id as it was given: the copy's ill-formed text is mended, and two ids could have become one.
  const { run_id } = value as Message;
  if (run_id !== undefined && run_id !== null) checkRunId(run_id);
  return message;
}

/** As {@link admitMessage} for a batch; the error names the message by its index. */
export function admitMessages(values: readonly unknown[]): Message[] {
  if (!Array.isArray(values)) throw new InvalidMessageError("messages", "must be an array of messages.");
  return values.map((value, i) => admitMessage(value, `messages[${i}]`));
}

/**
 * Checks JSON that was read back. Some programs store a turn that failed with `content` null or "": it has no blocks.
 *
 * @throws InvalidMessageError naming the path of the first value that is not of a message's shape
 */
export function checkStored(value: unknown): Message {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidMessageError("message", "must be an object.");
  }
  return checkShape(withContentArray(value as JsonObject), "message");
}

function withContentArray(message: JsonObject): JsonObject {
  const { content } = message;
  if (content === null || content === "") message.content = [];
  else if (typeof content === "string") message.content = [{ type: "text", text: content }];
  return message;
}

function checkShape(value: JsonObject, path: string): Message {
  if (isMessage(value)) return value as unknown as Message;
  const { issues } = v.safeParse(messageSchema, value);
  const issue = deepest(issues as [Issue, ...Issue[]]);
  const problem =
    issue.path.at(-1) === "role"
      ? `must be "user", "assistant" or "tool_result", not ${issue.received}.`
      : issue.type === "check"
        ? issue.message
        : issue.received === "undefined"
          ? "is missing."
          : `must be ${issue.expected ?? "something else"}, not ${issue.received}.`;
  throw new InvalidMessageError(formatPath(path, issue.path), problem);
}

type Issue = v.BaseIssue<unknown>;
interface Problem {
  path: (string | number)[];
  type: string;
  message: string;
  expected: string | null;
  received: string;
}

/** Of a union's issues the one furthest inside says best what is wrong. */
function deepest(issues: readonly Issue[], prefix: (string | number)[] = []): Problem {
  let best: Problem | undefined;
  for (const issue of issues) {
    const path = [...prefix, ...(issue.path ?? []).map((item) => item.key as string | number)];
    const inner = issue.issues ? deepest(issue.issues, path) : undefined;
    const own = { path, type: issue.type, message: issue.message, expected: issue.expected, received: issue.received };
    for (const candidate of inner ? [inner, own] : [own]) {
      if (!best || candidate.path.length > best.path.length) best = candidate;
    }
  }
  return best as Problem;
}
