/** What a run says while it works: for people, or as JSON Lines. Nothing here may throw: the run goes on regardless. */
import type { AgentEvent, AgentResult } from "../agent/events.ts";
import { textOf, toolCallsOf } from "../messages/construct.ts";
import type { AssistantMessage, ToolResultMessage } from "../messages/schema.ts";
import { harmless, harmlessLine } from "../util/text.ts";
import { describeJson } from "./describe.ts";
import { errorJson, oneLine } from "./errors.ts";
import type { Terminal } from "./terminal.ts";
import { HarmlessStream } from "./text.ts";
import { shorten } from "./width.ts";

const PREVIEW = 200;

export interface RunOutput {
  event(event: AgentEvent): void;
  /** The answer, once the run is over. */
  result(result: AgentResult): void;
}

export function runOutput(out: Terminal): RunOutput {
  if (out.json) return jsonOutput(out);
  return out.live ? new LiveOutput(out) : new ScriptOutput(out);
}

/** Events as JSON Lines, with the names in snake_case like those of messages; the last one is `run_end`. */
function jsonOutput(out: Terminal): RunOutput {
  return {
    event(event) {
      if (event.type === "run_end") return;
      if (event.type === "model_retry") void out.record({ ...snakeCase(event), error: errorJson(event.error) });
      else if (event.type === "tool_update") void out.record({ ...snakeCase(event), progress: asJson(event.progress) });
      else void out.record(snakeCase(event));
    },
    result({ messages: _, error, ...result }) {
      void out.record({ type: "run_end", ...snakeCase(result), ...(error ? { error: errorJson(error) } : {}) });
    },
  };
}

/** The answer's text, and nothing else, on stdout; what tools do and what is said in between on stderr. */
class ScriptOutput implements RunOutput {
  readonly #out: Terminal;

  constructor(out: Terminal) {
    this.#out = out;
  }

  event(event: AgentEvent): void {
    if (event.type === "message" && event.message.role === "assistant" && !isAnswer(event.message)) {
      const said = textOf(event.message);
      if (said !== "") this.#out.note(harmless(said));
    }
    noteTools(event, this.#out);
  }

  result({ status, text }: AgentResult): void {
    if (status === "completed") void this.#out.line(harmless(text));
  }
}

/** Text as it comes, with what the model thinks and the tools do between. */
class LiveOutput implements RunOutput {
  readonly #out: Terminal;
  #stream = new HarmlessStream();
  #kind: "text" | "thinking" | undefined;

  constructor(out: Terminal) {
    this.#out = out;
  }

  event(event: AgentEvent): void {
    if (event.type === "text_delta") this.#show("text", event.delta);
    else if (event.type === "thinking_delta") this.#show("thinking", event.delta);
    else if (event.type === "message" || event.type === "tool_start" || event.type === "model_retry") this.#end();
    noteTools(event, this.#out);
  }

  result({ text, replayed }: AgentResult): void {
    this.#end();
    // What was said before this call was not streamed.
    if (replayed) void this.#out.line(harmless(text));
  }

  #show(kind: "text" | "thinking", delta: string): void {
    if (this.#kind !== kind) this.#end();
    this.#kind = kind;
    const text = this.#stream.push(delta);
    void this.#out.write(kind === "text" ? text : this.#out.style("dim", text));
  }

  #end(): void {
    if (this.#kind === undefined) return;
    void this.#out.line(this.#stream.end());
    this.#kind = undefined;
  }
}

function isAnswer(message: AssistantMessage): boolean {
  return toolCallsOf(message).length === 0 && message.stop_reason !== "error" && message.stop_reason !== "aborted";
}

function noteTools(event: AgentEvent, out: Terminal): void {
  if (event.type === "tool_start") {
    out.note(out.noteStyle("dim", `→ ${harmlessLine(event.toolName)} ${describeJson(event.arguments)}`));
  } else if (event.type === "tool_end") {
    out.note(out.noteStyle(event.result.is_error ? "red" : "dim", `← ${describeResult(event.result)}`));
  } else if (event.type === "tool_update") {
    out.note(out.noteStyle("dim", `… ${harmlessLine(event.toolName)} ${describeJson(asJson(event.progress))}`));
  } else if (event.type === "model_retry") {
    const wait = `${Math.round(event.delayMs / 100) / 10} s`;
    out.note(out.noteStyle("dim", `The model failed (${oneLine(event.error)}) and is asked again in ${wait}.`));
  }
}

function describeResult(result: ToolResultMessage): string {
  const line = harmlessLine(
    textOf(result)
      .slice(0, PREVIEW * 2)
      .trim()
      .split(/\r?\n/, 1)[0] ?? "",
  );
  return shorten(`${harmlessLine(result.tool_name)} ${result.is_error ? "failed" : "said"}: ${line}`, PREVIEW);
}

/** What a tool reports may be anything. */
function asJson(value: unknown): string | number | boolean | null {
  try {
    return JSON.parse(JSON.stringify(value) ?? "null");
  } catch {
    return String(value);
  }
}

/** The names of an object's own fields, and not of what they hold, in snake_case. */
function snakeCase(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), item]),
  );
}
