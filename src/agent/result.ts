/** What a run comes to, and what a model has said of an answer that it does not finish. */
import { text, textOf } from "../messages/construct.ts";
import type { AssistantBlock, AssistantMessage, Message } from "../messages/schema.ts";
import type { AgentResult, Ending } from "./events.ts";

/** What a list of messages comes to, for a result. */
export function resultOf(runId: string, messages: Message[], ending: Ending): AgentResult {
  const last = messages.findLast((message) => message.role === "assistant");
  return {
    ...ending,
    runId,
    text: last ? textOf(last) : "",
    messages,
    stopReason: last?.stop_reason ?? null,
    usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
    unused: [],
  };
}

/** What a model has said so far, for when it doesn't finish. */
export class PartialAnswer {
  message: AssistantMessage | undefined;
  #text = "";

  add(event: { type: string; delta: string }): void {
    if (event.type === "text_delta") this.#text += event.delta;
  }

  blocks(): AssistantBlock[] {
    return this.#text === "" ? [] : [text(this.#text)];
  }
}
