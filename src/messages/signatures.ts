/**
 * What a provider signed is good only behind the messages it was signed for. Once a compaction has replaced those, the
 * messages that were kept are sent without it; the log keeps it.
 */
import type { AssistantMessage, Block, Message } from "./schema.ts";

/** Blocks that are nothing without their provider's data, or that it accepts only beside its own reasoning. */
const BOUND = new Set(["thinking", "thinking_file", "custom", "provider_tool_call", "provider_tool_result"]);

/** Whether a message holds reasoning or provider data, which its provider may want back unchanged. */
export function isSigned(message: Message): boolean {
  return message.role === "assistant" && (message.content as Block[]).some(isSignedBlock);
}

/**
 * A message as it is sent when what stood before it is gone: without reasoning, and without what the provider noted on its
 * blocks. What users and tools say is left alone: its options, such as cache marks, are the caller's own.
 */
export function withoutSignatures<M extends Message>(message: M): M {
  if (!isSigned(message)) return message;
  const content = (message as AssistantMessage).content
    .filter(({ type }) => !BOUND.has(type))
    .map(({ provider_options: _, ...block }) => block);
  return { ...message, content };
}

function isSignedBlock(block: Block): boolean {
  return BOUND.has(block.type) || block.provider_options !== undefined;
}
