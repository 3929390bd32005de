/** AI SDK language models whose stream is written out in a test, and which keep what they were asked. */
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 2, text: undefined, reasoning: undefined },
};

/** The last part of a stream. */
export const finish = (unified: LanguageModelV3StreamPart extends infer P ? Unified<P> : never, raw?: string) => ({
  type: "finish" as const,
  finishReason: { unified, raw },
  usage,
});
type Unified<P> = P extends { type: "finish"; finishReason: { unified: infer U } } ? U : never;

function streamOf<P>(parts: P[]): ReadableStream<P> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

export function modelV4(parts: LanguageModelV4StreamPart[], fields: { provider?: string; modelId?: string } = {}) {
  const calls: LanguageModelV4CallOptions[] = [];
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "test.chat",
    modelId: "four",
    supportedUrls: {},
    ...fields,
    doGenerate: () => Promise.reject(new Error("Only streams are used.")),
    async doStream(options) {
      calls.push(options);
      return { stream: streamOf(parts) };
    },
  };
  return { model, calls };
}

export function modelV3(parts: LanguageModelV3StreamPart[], fields: { provider?: string; modelId?: string } = {}) {
  const calls: LanguageModelV3CallOptions[] = [];
  const model: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "test.chat",
    modelId: "three",
    supportedUrls: {},
    ...fields,
    doGenerate: () => Promise.reject(new Error("Only streams are used.")),
    async doStream(options) {
      calls.push(options);
      return { stream: streamOf(parts) };
    },
  };
  return { model, calls };
}
