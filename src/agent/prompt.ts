/** What a user says, in the forms a prompt takes, as messages. */
import { InvalidArgumentError } from "../errors.ts";
import { admitMessage } from "../messages/admit.ts";
import { userMessage } from "../messages/construct.ts";
import type { UserBlock, UserMessage } from "../messages/schema.ts";

/** Text, blocks, or whole messages. */
export type Prompt = string | UserBlock[] | UserMessage | UserMessage[];

/**
 * The messages of a prompt, as they will be stored.
 *
 * @param runId the run they are for (Default: they may say theirs)
 * @throws InvalidArgumentError when they say nothing, are not a user's, or belong to another run
 * @throws InvalidMessageError naming the path of what can't be stored
 */
export function toUserMessages(input: Prompt, runId?: string): UserMessage[] {
  const messages = toList(input).map((message) => {
    const admitted = admitMessage(message);
    if (admitted.role !== "user") {
      throw new InvalidArgumentError(`A prompt is a user's message, not one of role ${admitted.role}.`);
    }
    const { run_id } = admitted;
    if (runId !== undefined && typeof run_id === "string" && run_id !== runId) {
      throw new InvalidArgumentError(
        `A message belongs to run ${JSON.stringify(run_id)}, and this is run ${JSON.stringify(runId)}.`,
      );
    }
    return admitted;
  });
  // Blank text is never sent to a model, so a prompt of nothing else would ask it nothing.
  if (messages.every(({ content }) => content.every((block) => block.type === "text" && block.text.trim() === ""))) {
    throw new InvalidArgumentError("The prompt says nothing. Give it text or an image.");
  }
  return messages;
}

function toList(input: unknown): unknown[] {
  if (typeof input === "string") return [userMessage(input)];
  if (!Array.isArray(input)) return [input];
  const isBlock = (item: unknown) => typeof item === "object" && item !== null && "type" in item;
  return input.some(isBlock) ? [userMessage(input as UserBlock[])] : input;
}
