/** What a model call is sent of a thread, and how large that is. The same for the same log, in every process. */
import type { Block, Message, Usage } from "../messages/schema.ts";
import { withoutSignatures } from "../messages/signatures.ts";
import { isCutShort } from "../messages/state.ts";
import { summaryMessage } from "../messages/summary.ts";
import type { ModelRequest } from "../model/model.ts";
import type { ThreadLog } from "./log.ts";

const BYTES_PER_TOKEN = 4;
/** What an image takes, whatever its size: providers count from some hundred tokens to a few thousand. */
const TOKENS_PER_IMAGE = 1500;

type Log = Pick<ThreadLog, "messages" | "summary" | "kept">;

/** The thread as middleware sees it before a model call: the summary first, if there is one, then the active messages. */
export function contextOf({ messages, summary, kept }: Log, canSearch: boolean): readonly Message[] {
  const sent = withoutFailedAttempt(messages).map((message, i) => (i < kept ? withoutSignatures(message) : message));
  return summary === undefined ? sent : [summaryMessage(summary, canSearch), ...sent];
}

/** What a failed attempt had begun to say is not gone on with: the model is asked again. */
function withoutFailedAttempt(messages: readonly Message[]): readonly Message[] {
  const last = messages.at(-1);
  return last && isCutShort(last) ? withoutFailedAttempt(messages.slice(0, -1)) : messages;
}

export interface ContextSize {
  /** Tokens of the whole context. */
  tokens: number;
  /** What it was right after the last compaction; 0 while there was none. */
  before: number;
  /** Tokens of one message, as far as they can be told. */
  of(message: Message): number;
}

/**
 * How large the context is: what the provider counted for the last answer (input, cache read and cache written), if it was
 * made since the last compaction. Else an estimate: 4 bytes of JSON a token, 1,500 tokens an image, without reasoning.
 */
export function contextSize(log: Log, request: Pick<ModelRequest, "system" | "tools">): ContextSize {
  const { messages, summary, kept } = log;
  const counted = messages.flatMap((message, index) => {
    const tokens = index >= kept && message.role === "assistant" ? sentTokens(message.usage) : 0;
    return tokens > 0 ? [{ index, tokens }] : [];
  });
  const first = counted[0];
  const last = counted.at(-1);
  const estimateOf = (count: number) =>
    tokensOf([request.system ?? "", request.tools, summary ?? ""]) +
    messages.slice(0, count).reduce((sum, message) => sum + estimate(message), 0);
  // What was counted for what is estimated; a middleware that sends less must not make a message nothing.
  const scale = () => (last ? Math.min(4, Math.max(0.25, last.tokens / estimateOf(last.index))) : 1);
  return {
    tokens: last?.tokens ?? estimateOf(messages.length),
    before: summary === undefined ? 0 : (first?.tokens ?? estimateOf(kept)),
    of: scaled(scale),
  };
}

function scaled(scale: () => number): (message: Message) => number {
  let factor: number | undefined;
  return (message) => {
    factor ??= scale();
    return factor * estimate(message);
  };
}

function sentTokens(usage: Usage | null | undefined): number {
  return usage ? usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens : 0;
}

function estimate(message: Message): number {
  const content: Block[] = withoutSignatures(message).content;
  const images = content.filter((block) => "source" in block).length;
  return (
    images * TOKENS_PER_IMAGE + tokensOf(content.map((block) => ("source" in block ? { ...block, source: "" } : block)))
  );
}

function tokensOf(value: unknown): number {
  return Math.ceil(Buffer.byteLength(JSON.stringify(value)) / BYTES_PER_TOKEN);
}
