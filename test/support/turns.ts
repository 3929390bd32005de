/** Asking a model in a test, and what an agent makes of the answer. */
import { assistantMessage } from "../../src/messages/construct.ts";
import type { AssistantMessage, Message } from "../../src/messages/schema.ts";
import type { Model, ModelEvent, ModelRequest } from "../../src/model/model.ts";

type Finish = Extract<ModelEvent, { type: "finish" }>;

export interface Answer {
  events: ModelEvent[];
  finish: Finish;
  /** The answer as an agent appends it. */
  message: AssistantMessage;
}

/** Streams one answer to its end. @throws what the model throws */
export async function ask(model: Model, messages: Message[], more: Partial<ModelRequest> = {}): Promise<Answer> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream({ messages, tools: [], ...more })) events.push(event);
  const finish = events.at(-1);
  if (finish?.type !== "finish") throw new Error("The model's stream did not end with a finish.");
  const { type: _, content, ...fields } = finish;
  const message = assistantMessage(content, { ...fields, provider_id: model.providerId, model_id: model.modelId });
  return { events, finish, message };
}

/** What an answer fails with. @throws when it does not fail */
export async function failure(answer: Promise<unknown>): Promise<unknown> {
  const result = await answer.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (!result) throw new Error("The model answered though it should have failed.");
  return result.error;
}

/** The text that streamed. */
export const streamedText = (events: ModelEvent[]): string =>
  events.map((event) => (event.type === "text_delta" ? event.delta : "")).join("");
