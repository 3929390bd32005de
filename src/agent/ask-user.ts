/** The ask_user tool: structured questions to the person, durable like approvals. */
import * as v from "valibot";
import { type PendingPayload, type Question, questionsSchema } from "../checkpoint/pending.ts";
import { text, toolResultMessage } from "../messages/construct.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../messages/json.ts";
import type { ToolCallBlock, ToolResultMessage } from "../messages/schema.ts";
import { HitlInvalidAnswerError } from "./errors.ts";
import { normalQuestions } from "./question-id.ts";
import type { Tool } from "./tools.ts";

/**
 * Put it among an agent's tools and the model can ask the person. A call of it suspends the run; the answer is an object
 * from each question's key to the chosen value, a list of values (`multi_select`), or text.
 */
export const askUserTool: Tool = {
  name: "ask_user",
  description:
    "Asks the user one or more questions and waits for the answers. Use it to choose between a few possibilities (give options; " +
    "allow_input on one of them lets the user type something else), for a short piece of information, or before a step that " +
    "can't be undone. For an open conversation, answer with text instead.",
  parameters: {
    type: "object",
    properties: {
      questions: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          properties: {
            key: { type: "string", description: "Names the answer." },
            prompt: { type: "string", description: "What the user is asked." },
            options: {
              type: ["array", "null"],
              description: "The choices. Leave out for free text.",
              items: {
                type: "object",
                properties: {
                  label: { type: "string", description: "What the user sees." },
                  value: { type: "string", description: "What the answer holds." },
                  description: { type: ["string", "null"] },
                  allow_input: { type: "boolean", description: "Whether choosing it lets the user type." },
                },
                required: ["label", "value"],
              },
            },
            multi_select: { type: "boolean", description: "Whether several options may be chosen." },
            required: { type: "boolean", description: "Whether the question must be answered. True if left out." },
          },
          required: ["key", "prompt"],
        },
      },
    },
    required: ["questions"],
  },
  execute: () => {
    throw new Error("ask_user is answered by a person, not run.");
  },
};

/** The request that a call of ask_user makes; undefined when its arguments hold no valid questions. */
export function askPayload(args: JsonObject): PendingPayload | undefined {
  const { questions } = args;
  if (!v.is(questionsSchema, questions)) return undefined;
  return { kind: "ask", questions: normalQuestions(questions as Question[]) as unknown as Question[] };
}

/** What the model reads of an answer. */
export function answeredResult(call: ToolCallBlock, answers: JsonValue): ToolResultMessage {
  return toolResultMessage(call, [text(`The user answered:\n${JSON.stringify(answers, null, 2)}`)], {
    details: { hitl: { kind: "ask", answers } },
  });
}

/** @throws HitlInvalidAnswerError naming the question that is not answered as it asks */
export function checkAskAnswer(questions: readonly Question[], answer: JsonValue): void {
  if (!isJsonObject(answer)) {
    throw new HitlInvalidAnswerError("The answer must be an object from each question's key to its answer.");
  }
  for (const key of Object.keys(answer)) {
    if (!questions.some((question) => question.key === key)) {
      throw new HitlInvalidAnswerError(`No question is called ${JSON.stringify(key)}.`);
    }
  }
  for (const question of questions) {
    // A key may be called like something that every object inherits.
    checkOneAnswer(question, Object.hasOwn(answer, question.key) ? answer[question.key] : undefined);
  }
}

function checkOneAnswer(question: Question, answer: JsonValue | undefined): void {
  const { key, options, multi_select = false, required = true } = question;
  const name = `Question ${JSON.stringify(key)}`;
  if (answer === undefined || answer === null) {
    if (required) throw new HitlInvalidAnswerError(`${name} must be answered.`);
    return;
  }
  const values = Array.isArray(answer) ? answer : [answer];
  if (Array.isArray(answer) && !multi_select) throw new HitlInvalidAnswerError(`${name} takes one answer, not a list.`);
  if (required && values.length === 0) throw new HitlInvalidAnswerError(`${name} must be answered.`);
  const free = !options?.length || options.some((option) => option.allow_input);
  for (const value of values) {
    if (typeof value !== "string")
      throw new HitlInvalidAnswerError(`${name} takes text, not ${JSON.stringify(value)}.`);
    if (!free && !options.some((option) => option.value === value)) {
      const choices = options.map((option) => JSON.stringify(option.value)).join(", ");
      throw new HitlInvalidAnswerError(`${name} takes one of ${choices}, not ${JSON.stringify(value)}.`);
    }
  }
}
