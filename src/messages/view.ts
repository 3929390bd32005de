/**
 * The model view: what a model may be sent of a thread. Providers refuse a request whose tool calls lack results, whose
 * results lack calls, or that holds blank text; a log can hold all of these after crashes, aborts and other programs.
 * The log stays as it is; the view is made anew for each request, and the view of a log's beginning does not change when
 * the log grows, so that prompt caches hold.
 */
import { toolResultMessage } from "./construct.ts";
import { type PairedCall, pairToolCalls } from "./pairing.ts";
import type { AssistantMessage, Block, Message, ToolResultMessage } from "./schema.ts";
import { isCutShort } from "./state.ts";

/** What the view did differently from the log. `index` is the message's place in the log. */
export interface Finding {
  kind:
    | "dangling_call"
    | "orphan_result"
    | "duplicate_result"
    | "misplaced_result"
    | "reused_call_id"
    | "blank_text"
    | "empty_message"
    | "cut_short";
  index: number;
  toolCallId?: string;
}

export interface ModelView {
  messages: Message[];
  findings: Finding[];
}

/** What a model is told of a call whose result was never stored. */
export const UNKNOWN_OUTCOME =
  "The outcome of this tool call is unknown: the program stopped before its result was stored. It may have run. It was not run again.";

/**
 * Builds the model view of a log.
 *
 * - A result without a call, or a second result to one call, is left out.
 * - Each call is followed by its result, wherever the log has it; a call without one gets an error result.
 * - A call id that was used before gets a suffix, with its result, so that ids are unique in the request.
 * - Blank text blocks are left out, and messages that have nothing left. A result without content stays.
 * - Of an assistant turn that was cut short (aborted, error) only what it said is kept: its thinking may lack the end
 *   that a provider verifies. Calls that it made before are kept with their results.
 */
export function modelView(messages: readonly Message[]): ModelView {
  const { calls, orphans, duplicates } = pairToolCalls(messages);
  const findings: Finding[] = [
    ...orphans.map((index) => resultFinding("orphan_result", messages, index)),
    ...duplicates.map((index) => resultFinding("duplicate_result", messages, index)),
  ];
  const callsOf = Map.groupBy(calls, (paired) => paired.index);
  const usedIds = new Set<string>();
  const view: Message[] = [];
  messages.forEach((message, index) => {
    if (message.role === "tool_result") return;
    const clean = withoutBlankText(message, index, findings);
    if (message.role === "user") {
      if (clean.content.length > 0) view.push(clean);
      else findings.push({ kind: "empty_message", index });
      return;
    }
    const made = (callsOf.get(index) ?? []).map((paired) => uniquelyNamed(paired, usedIds, findings));
    const assistant = renameCalls(withoutUnfinished(clean as AssistantMessage, index, findings), made);
    if (assistant.content.length === 0) {
      findings.push({ kind: "empty_message", index });
      return;
    }
    view.push(assistant);
    for (const { paired, id } of made) view.push(resultOf(paired, id, messages, findings));
  });
  return { messages: view, findings: findings.sort((a, b) => a.index - b.index) };
}

function resultFinding(kind: Finding["kind"], messages: readonly Message[], index: number): Finding {
  return { kind, index, toolCallId: (messages[index] as ToolResultMessage).tool_call_id };
}

interface NamedCall {
  paired: PairedCall;
  id: string;
}

function uniquelyNamed(paired: PairedCall, used: Set<string>, findings: Finding[]): NamedCall {
  let { id } = paired.call;
  for (let n = 2; used.has(id); n++) id = `${paired.call.id}_${n}`;
  used.add(id);
  if (id !== paired.call.id) findings.push({ kind: "reused_call_id", index: paired.index, toolCallId: paired.call.id });
  return { paired, id };
}

function renameCalls(message: AssistantMessage, made: NamedCall[]): AssistantMessage {
  if (made.every(({ paired, id }) => paired.call.id === id)) return message;
  // By place, not by identity: one object may stand in the list twice.
  const ids = made.map(({ id }) => id).values();
  const content = message.content.map((block) =>
    block.type === "tool_call" ? { ...block, id: ids.next().value ?? block.id } : block,
  );
  return { ...message, content };
}

function resultOf(
  paired: PairedCall,
  id: string,
  messages: readonly Message[],
  findings: Finding[],
): ToolResultMessage {
  const { call, index, message } = paired;
  if (paired.result === undefined) {
    findings.push({ kind: "dangling_call", index, toolCallId: call.id });
    return toolResultMessage({ id, name: call.name }, UNKNOWN_OUTCOME, {
      is_error: true,
      timestamp: message.timestamp ?? null,
      run_id: message.run_id ?? null,
    });
  }
  const result = messages[paired.result] as ToolResultMessage;
  const between = messages.slice(index + 1, paired.result).some((other) => other.role !== "tool_result");
  if (between) findings.push({ kind: "misplaced_result", index: paired.result, toolCallId: call.id });
  const clean = withoutBlankText(result, paired.result, findings);
  return id === call.id ? clean : { ...clean, tool_call_id: id };
}

function withoutBlankText<M extends Message>(message: M, index: number, findings: Finding[]): M {
  const content = (message.content as Block[]).filter((block) => block.type !== "text" || block.text.trim() !== "");
  if (content.length === message.content.length) return message;
  findings.push({ kind: "blank_text", index });
  return { ...message, content };
}

function withoutUnfinished(message: AssistantMessage, index: number, findings: Finding[]): AssistantMessage {
  if (!isCutShort(message)) return message;
  const content = message.content.filter((block) => block.type !== "thinking");
  if (content.length === message.content.length) return message;
  findings.push({ kind: "cut_short", index });
  return { ...message, content };
}
