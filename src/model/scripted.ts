/** A model that says what it is told to, for tests. */
import { text } from "../messages/construct.ts";
import type { AssistantBlock, Usage } from "../messages/schema.ts";
import { ModelError } from "./errors.ts";
import type { Model, ModelEvent, ModelRequest } from "./model.ts";

/** One answer of the script: text, blocks, the finished turn in part, an error to throw, or a function of the request. */
export type ScriptedAnswer =
  | string
  | AssistantBlock[]
  | { content: AssistantBlock[]; stop_reason?: string; usage?: Usage | null; response_id?: string | null }
  | Error
  | ((request: ModelRequest) => ScriptedAnswer | Promise<ScriptedAnswer>);

export class ScriptedModel implements Model {
  readonly providerId = "scripted";
  readonly modelId = "script";
  /** Every request so far, as it came. */
  readonly requests: ModelRequest[] = [];
  readonly #answers: ScriptedAnswer[];

  /** @param answers given one after another; when they run out, the model throws */
  constructor(answers: ScriptedAnswer[]) {
    this.#answers = [...answers];
  }

  async *stream(request: ModelRequest): AsyncGenerator<ModelEvent> {
    this.requests.push(request);
    let answer = this.#answers.shift();
    while (typeof answer === "function") answer = await answer(request);
    if (answer === undefined) throw new ModelError("The script has no further answer.");
    if (answer instanceof Error) throw answer;
    const turn =
      typeof answer === "string" ? { content: [text(answer)] } : Array.isArray(answer) ? { content: answer } : answer;
    for (const block of turn.content) {
      request.signal?.throwIfAborted();
      if (block.type === "text") {
        for (const delta of block.text.match(/\S+\s*|\s+/g) ?? []) yield { type: "text_delta", delta };
      } else if (block.type === "thinking") {
        yield { type: "thinking_delta", delta: block.thinking };
      } else if (block.type === "tool_call") {
        yield { type: "tool_call_delta", id: block.id, name: block.name, delta: JSON.stringify(block.arguments) };
      }
    }
    const calls = turn.content.some((block) => block.type === "tool_call");
    yield {
      type: "finish",
      content: turn.content,
      stop_reason: turn.stop_reason ?? (calls ? "tool_use" : "stop"),
      usage: turn.usage ?? null,
      response_id: turn.response_id ?? null,
    };
  }
}
