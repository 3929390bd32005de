/** Asks the person at the terminal what a thread waits on. Leaving a menu (Ctrl-C, Escape) means later. */
import { isCancel, multiselect, select, text } from "@clack/prompts";
import type { PendingPayload, PendingRequest, Question, QuestionOption } from "../checkpoint/pending.ts";
import { messageOf } from "../errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from "../messages/json.ts";
import { harmless, harmlessLine } from "../util/text.ts";
import { describeQuestion } from "./describe.ts";

/** The answer, or undefined for later. @param signal closes the menu */
export async function askPerson(request: PendingRequest, signal: AbortSignal): Promise<JsonValue | undefined> {
  const { payload } = request;
  if (payload.kind === "approve") return await askApproval(payload, signal);
  if (payload.kind === "ask") return await askQuestions(payload.questions, signal);
  const options = [
    { value: "yes", label: "Yes" },
    { value: "no", label: "No" },
    { value: "later", label: "Later" },
  ];
  const chosen = await select({ message: describeQuestion(payload), options, signal });
  return chosen === "yes" ? true : chosen === "no" ? false : undefined;
}

async function askApproval(
  payload: Extract<PendingPayload, { kind: "approve" }>,
  signal: AbortSignal,
): Promise<JsonValue | undefined> {
  const options = [
    { value: "allow", label: "Allow" },
    { value: "deny", label: "Deny" },
    { value: "edit", label: "Edit the arguments" },
    { value: "later", label: "Later" },
  ];
  const chosen = await select({ message: describeQuestion(payload), options, signal });
  if (chosen === "allow") return { decision: "approve" };
  if (chosen === "deny") {
    const reason = await text({ message: "Why? The model reads it.", placeholder: "no reason", signal });
    return isCancel(reason) ? undefined : { decision: "deny", reason: reason || null };
  }
  if (chosen !== "edit") return undefined;
  const edited = await text({
    message: "The arguments, as JSON:",
    // Escapes, so that control characters in the arguments do nothing here and come back as they were.
    initialValue: escaped(payload.args),
    validate: (value) => problemOf(value ?? ""),
    signal,
  });
  return isCancel(edited) ? undefined : { decision: "edit", edited_args: JSON.parse(edited) as JsonObject };
}

function problemOf(json: string): string | undefined {
  try {
    return isJsonObject(JSON.parse(json)) ? undefined : "It must be a JSON object.";
  } catch (error) {
    return harmlessLine(messageOf(error));
  }
}

function escaped(args: JsonObject): string {
  return JSON.stringify(args).replace(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

async function askQuestions(questions: readonly Question[], signal: AbortSignal): Promise<JsonObject | undefined> {
  const answers: JsonObject = {};
  for (const question of questions) {
    const given = question.options?.length
      ? await choose(question, question.options, signal)
      : await type(question.prompt, question.required ?? true, signal);
    if (given === undefined) return undefined;
    // Nothing typed where nothing is required.
    if (given !== "") setOwn(answers, question.key, given);
  }
  return answers;
}

const SKIP = -1;

/** Options are told apart by their place: two may have the same words. */
async function choose(
  question: Question,
  choices: readonly QuestionOption[],
  signal: AbortSignal,
): Promise<string | string[] | undefined> {
  const { prompt, multi_select = false, required = true } = question;
  const options = choices.map(({ label, description }, value) => ({
    value,
    label: harmlessLine(label),
    ...(description ? { hint: harmlessLine(description) } : {}),
  }));
  const message = harmless(prompt);
  if (multi_select) {
    const chosen = await multiselect({ message, options, required, signal });
    if (isCancel(chosen)) return undefined;
    const values: string[] = [];
    for (const index of chosen) {
      const value = await chosenValue(choices[index], signal);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }
  const skip = required ? [] : [{ value: SKIP, label: "(no answer)" }];
  const chosen = await select({ message, options: [...options, ...skip], signal });
  if (isCancel(chosen)) return undefined;
  return chosen === SKIP ? "" : await chosenValue(choices[chosen], signal);
}

/** The option's value, or what is typed for one that takes input. */
async function chosenValue(option: QuestionOption | undefined, signal: AbortSignal): Promise<string | undefined> {
  return option?.allow_input ? await type(option.label, true, signal) : option?.value;
}

async function type(prompt: string, required: boolean, signal: AbortSignal): Promise<string | undefined> {
  const typed = await text({
    message: harmless(prompt),
    validate: (value) => (required && !value ? "Type something." : undefined),
    signal,
  });
  return isCancel(typed) ? undefined : (typed ?? "");
}
