/**
 * The ids of questions to the user, exactly as CubeLoop derives them: a hash of what is asked, and a number that keeps
 * apart equal questions of one batch. So either program can ask, and the other finds the question that an answer belongs
 * to. The hash is taken of the text that Python's `json.dumps(…, sort_keys=True)` gives, which is written here again.
 */
import { createHash } from "node:crypto";
import * as v from "valibot";
import { type Question, type QuestionOption, questionsSchema } from "../checkpoint/pending.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../messages/json.ts";
import { compareCodePoints } from "../util/ids.ts";

/**
 * The ids of the questions that the `ask_user` calls of one assistant message put, one a call, in the order of the calls:
 * `<hash>.0`, and `<hash>.1` for a second call that asks the same. Give all the calls of the message, answered or not, so
 * that the numbers stay. A call whose arguments hold no valid questions asks nothing: undefined.
 *
 * CubeLoop numbers what its own process asked, so the number of one question can differ between two processes; compare
 * ids from another program by {@link asksTheSame}.
 */
export function askQuestionIds(calls: readonly { readonly arguments: JsonObject }[]): (string | undefined)[] {
  const seen = new Map<string, number>();
  return calls.map((call) => {
    const { questions } = call.arguments;
    if (!v.is(questionsSchema, questions)) return undefined;
    const hash = deriveQuestionId("ask", normalQuestions(questions as Question[]));
    const number = seen.get(hash) ?? 0;
    seen.set(hash, number + 1);
    return `${hash}.${number}`;
  });
}

/** Whether two ids of questions are of the same text: their hashes are equal, whatever their numbers. */
export function asksTheSame(a: string, b: string): boolean {
  return a.replace(/\.\d+$/, "") === b.replace(/\.\d+$/, "");
}

/**
 * The hash that an id begins with: 32 hexadecimal digits.
 *
 * @param kind "ask" or "confirm"
 * @param payload for "ask" the questions as {@link normalQuestions} gives them, for "confirm" `{ prompt, details }`
 */
export function deriveQuestionId(kind: string, payload: JsonValue): string {
  return createHash("sha256").update(pythonJson({ kind, payload })).digest("hex").slice(0, 32);
}

/** Questions with every default filled in and no other fields, as CubeLoop stores and hashes them. */
export function normalQuestions(questions: readonly Question[]): JsonObject[] {
  return questions.map(({ key, prompt, options, multi_select, required }) => ({
    key,
    prompt,
    // CubeLoop's ask_user makes no difference between no options and an empty list of them.
    options: options?.length ? options.map(normalOption) : null,
    multi_select: multi_select ?? false,
    required: required ?? true,
  }));
}

function normalOption({ label, value, description, allow_input }: QuestionOption): JsonObject {
  return { label, value, description: description ?? null, allow_input: allow_input ?? false };
}

/**
 * JSON as Python's `json.dumps(value, sort_keys=True)` writes it: ASCII only, keys by code point, a space after `,` and `:`.
 * Numbers are written as Python would after reading them from the JSON that JavaScript writes, so 1.0 is 1.
 */
export function pythonJson(value: JsonValue): string {
  if (typeof value === "string") return pythonString(value);
  if (typeof value === "number") return pythonNumber(value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => compareCodePoints(a, b));
  return `{${entries.map(([key, item]) => `${pythonString(key)}: ${pythonJson(item)}`).join(", ")}}`;
}

function pythonString(text: string): string {
  // JSON.stringify escapes as Python does below U+0020, but leaves what is beyond ASCII.
  return JSON.stringify(text).replace(
    /[\x7f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function pythonNumber(value: number): string {
  const text = JSON.stringify(value);
  if (/^-?\d+$/.test(text)) return text;
  // The digits are the same, but Python turns to an exponent of at least two digits earlier than JavaScript.
  const [digits = "", exponent = ""] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 16) return text;
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}
