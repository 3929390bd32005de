/** A v4 prompt in the words of specification v3, which has flat file data and no custom parts. */
import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultOutput,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";

type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];
type ContentItem = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
type V3ContentItem = Extract<LanguageModelV3ToolResultOutput, { type: "content" }>["value"][number];

/** Gives the same prompt for a v3 model; parts that v3 has no word for are left out. */
export function toV3Prompt(prompt: LanguageModelV4Prompt): LanguageModelV3Prompt {
  return prompt.map(toV3Message);
}

function toV3Message(message: LanguageModelV4Message): LanguageModelV3Message {
  switch (message.role) {
    case "system":
      return message;
    case "user":
      return { role: "user", content: message.content.map((part) => (part.type === "file" ? filePart(part) : part)) };
    case "tool":
      return {
        role: "tool",
        content: message.content.map((part) => (part.type === "tool-result" ? resultPart(part) : part)),
      };
    case "assistant":
      return {
        role: "assistant",
        content: message.content.flatMap((part): AssistantPart[] => {
          if (part.type === "file") return [filePart(part)];
          if (part.type === "tool-result") return [resultPart(part)];
          return part.type === "custom" || part.type === "reasoning-file" ? [] : [part];
        }),
      };
  }
}

function filePart(part: LanguageModelV4FilePart) {
  return { ...part, data: flat(part.data) };
}

function resultPart(part: LanguageModelV4ToolResultPart) {
  const { output } = part;
  return {
    ...part,
    output: output.type === "content" ? { ...output, value: output.value.map(contentItem) } : output,
  };
}

function contentItem(item: ContentItem): V3ContentItem {
  if (item.type !== "file") return item;
  const { data: source, mediaType, type: _, ...rest } = item;
  const data = flat(source);
  return data instanceof URL
    ? { type: "image-url", url: data.toString(), ...rest }
    : { type: "image-data", data, mediaType, ...rest };
}

function flat(data: LanguageModelV4FilePart["data"]): string | URL {
  if (data.type === "url") return data.url;
  if (data.type === "data" && typeof data.data === "string") return data.data;
  throw new TypeError(`A prompt holds no file data of type ${data.type}.`);
}
