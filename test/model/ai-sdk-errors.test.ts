/** What providers' failures become: over HTTP with the real packages where a server can play them. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { userMessage } from "../../src/messages/construct.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import { toModelError } from "../../src/model/ai-sdk-errors.ts";
import {
  ContentFilterError,
  ContextOverflowError,
  ModelAuthenticationError,
  ModelBadRequestError,
  ModelError,
  ModelRateLimitError,
  ModelUnavailableError,
} from "../../src/model/errors.ts";
import { streamWithRetry } from "../../src/model/retry.ts";
import {
  anthropicError,
  anthropicStream,
  brokenConnection,
  chatStream,
  cutAfter,
  errorResponse,
  openaiError,
  type ProviderResponse,
  type ProviderServer,
  startProviderServer,
} from "../support/provider-server.ts";
import { finish, modelV4 } from "../support/sdk-models.ts";
import { ask, failure } from "../support/turns.ts";

const hi = [userMessage("hi")];
const KEY = "sk-ant-api03-0123456789abcdefghij";

let server: ProviderServer;
beforeEach(async () => {
  server = await startProviderServer();
});
afterEach(() => server.close());

const anthropic = (headers: Record<string, string> = {}) =>
  aiSdkModel(createAnthropic({ baseURL: `${server.url}/v1`, apiKey: KEY })("claude-test"), { headers });
const local = () => aiSdkModel(createOpenAICompatible({ name: "local", baseURL: server.url, apiKey: KEY })("m"));

async function failing(model: ReturnType<typeof anthropic>, response: ProviderResponse): Promise<ModelError> {
  server.enqueue(response);
  const error = await failure(ask(model, hi));
  expect(error).toBeInstanceOf(ModelError);
  return error as ModelError;
}

describe("refusals over HTTP", () => {
  test.each([
    [anthropicError(401, "authentication_error", "invalid x-api-key"), ModelAuthenticationError, false],
    [anthropicError(403, "permission_error", "not for you"), ModelAuthenticationError, false],
    [anthropicError(400, "invalid_request_error", "temperature: too hot"), ModelBadRequestError, false],
    [anthropicError(404, "not_found_error", "model: claude-test"), ModelBadRequestError, false],
    [anthropicError(408, "timeout_error", "too slow"), ModelUnavailableError, true],
    [anthropicError(409, "conflict_error", "try again"), ModelBadRequestError, true],
    [anthropicError(429, "rate_limit_error", "slow down"), ModelRateLimitError, true],
    [anthropicError(500, "api_error", "oops"), ModelUnavailableError, true],
    [anthropicError(529, "overloaded_error", "Overloaded"), ModelUnavailableError, true],
    [
      anthropicError(400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
      ContextOverflowError,
      false,
    ],
    [anthropicError(413, "request_too_large", "Request exceeds the maximum size"), ContextOverflowError, false],
  ])("Anthropic %#", async (response, type, retryable) => {
    const error = await failing(anthropic(), response);
    expect(error).toBeInstanceOf(type);
    expect(error.retryable).toBe(retryable);
    expect(error.status).toBe(response.status);
    // The provider's words, and none of ours lost.
    expect(error.message).toContain(`"${JSON.parse(response.chunks[0] as string).error.message}"`);
  });

  test.each([
    [openaiError(401, "invalid_api_key", "Incorrect API key provided"), ModelAuthenticationError, false],
    [
      openaiError(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
      ContextOverflowError,
      false,
    ],
    [
      openaiError(400, "content_filter", "The response was filtered due to the content policy"),
      ContentFilterError,
      false,
    ],
    [openaiError(429, "rate_limit_exceeded", "Rate limit reached, context length aside"), ModelRateLimitError, true],
    [errorResponse(502, "<html><h1>Bad gateway</h1></html>"), ModelUnavailableError, true],
    [errorResponse(503, "upstream connect error"), ModelUnavailableError, true],
    [errorResponse(422, { detail: "field required" }), ModelBadRequestError, false],
    [errorResponse(404, { error: "model 'm' not found" }), ModelBadRequestError, false],
  ])("OpenAI-compatible %#", async (response, type, retryable) => {
    const error = await failing(local(), response);
    expect(error).toBeInstanceOf(type);
    expect(error.retryable).toBe(retryable);
    expect(error.message).not.toContain("<html");
  });

  test("the words of servers with error bodies of their own are quoted", async () => {
    expect((await failing(local(), errorResponse(422, { detail: "field required" }))).message).toContain(
      "field required",
    );
    expect((await failing(local(), errorResponse(503, "upstream down"))).message).toContain("upstream down");
    expect((await failing(local(), errorResponse(404, { error: "no model m" }))).message).toContain("no model m");
  });

  test("an exhausted quota is a rate limit that asking again does not mend", async () => {
    const { model } = modelV4([
      { type: "error", error: { message: "You exceeded your current quota", code: "insufficient_quota" } },
    ]);
    const error = (await failure(ask(aiSdkModel(model), hi))) as ModelError;
    expect(error).toBeInstanceOf(ModelRateLimitError);
    expect(error.retryable).toBe(false);
    expect(error.message).toContain("billing");
  });

  test.each([
    [{ "retry-after": "7" }, 7000, 7000],
    [{ "retry-after": "0.5" }, 500, 500],
    [{ "retry-after-ms": "1250", "retry-after": "7" }, 1250, 1250],
    [{ "retry-after": new Date(Date.now() + 60_000).toUTCString() }, 50_000, 60_000],
    [{ "retry-after": new Date(0).toUTCString() }, 0, 0],
  ])("retry-after %j", async (headers, least, most) => {
    const error = await failing(anthropic(), anthropicError(429, "rate_limit_error", "slow", headers));
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(least);
    expect(error.retryAfterMs).toBeLessThanOrEqual(most);
  });

  test("retry-after that says nothing is none", async () => {
    const headers = { "retry-after": "soon" };
    expect((await failing(anthropic(), anthropicError(429, "rate_limit_error", "slow", headers))).retryAfterMs).toBe(
      undefined,
    );
  });

  test("no key is repeated, whoever echoes it", async () => {
    const token = "my-gateway-token";
    const echo = `Bad key ${KEY}, header Bearer abc.def, token ${token}, see https://x.test/?key=12345&a=1`;
    const error = await failing(anthropic({ "x-gateway": token }), anthropicError(401, "authentication_error", echo));
    expect(error.message).toContain(
      'Bad key [redacted], header [redacted], token [redacted], see https://x.test/?key=[redacted]&a=1"',
    );
  });

  test("a long answer is quoted in part", async () => {
    const error = await failing(local(), errorResponse(400, { error: { message: "x".repeat(5000) } }));
    expect(error.message.length).toBeLessThan(700);
  });
});

describe("connections", () => {
  test("one that breaks before the first token is asked again, and one that refuses too", async () => {
    server.enqueue(brokenConnection(), anthropicError(529, "overloaded_error", "Overloaded"));
    const stream = anthropicStream([{ type: "text", text: "Hello there" }]);
    // Only the head of the answer, then the whole one.
    server.enqueue(cutAfter(stream, 2), stream);
    const errors: ModelError[] = [];
    const types: string[] = [];
    const request = { messages: hi, tools: [] };
    const onRetry = ({ error }: { error: ModelError }) => errors.push(error);
    for await (const event of streamWithRetry(anthropic(), request, { baseDelayMs: 1 }, onRetry))
      types.push(event.type);
    expect(types).toEqual(["text_delta", "text_delta", "finish"]);
    expect(errors.map((error) => error.code)).toEqual(Array(3).fill("model_unavailable"));
    expect(server.requests).toHaveLength(4);
    expect(server.requests[3]?.bytes.equals(server.requests[0]?.bytes as Buffer)).toBe(true);
  });

  test.each(["break", "close"] as const)("after the first token a %s is thrown, not asked again", async (end) => {
    for (const [model, stream] of [
      [anthropic(), cutAfter(anthropicStream([{ type: "text", text: "Hello there" }]), 4, end)],
      [local(), cutAfter(chatStream({ text: "Hello there" }), 2, end)],
    ] as const) {
      server.requests.length = 0;
      server.enqueue(stream);
      const deltas: string[] = [];
      const read = async () => {
        for await (const event of streamWithRetry(model, { messages: hi, tools: [] })) {
          if (event.type === "text_delta") deltas.push(event.delta);
        }
      };
      const error = (await failure(read())) as ModelError;
      expect(error).toBeInstanceOf(ModelUnavailableError);
      expect(error.retryable).toBe(true);
      expect(deltas).toEqual(["Hello "]);
      expect(server.requests).toHaveLength(1);
    }
  });

  test("nobody listens", async () => {
    const { url, close } = await startProviderServer();
    await close();
    const model = aiSdkModel(createAnthropic({ baseURL: `${url}/v1`, apiKey: KEY })("claude-test"));
    const error = (await failure(ask(model, hi))) as ModelError;
    expect(error).toBeInstanceOf(ModelUnavailableError);
    expect(error.message).toContain("ECONNREFUSED");
    expect(error.status).toBeUndefined();
  });

  test("an error in the middle of a stream", async () => {
    const stream = anthropicStream([{ type: "text", text: "Hello there" }]);
    const event = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    stream.chunks.splice(4, Number.POSITIVE_INFINITY, `event: error\ndata: ${JSON.stringify(event)}\n\n`);
    const error = await failing(anthropic(), stream);
    expect(error).toBeInstanceOf(ModelUnavailableError);
    expect(error.message).toContain('"Overloaded"');

    const chat = { ...chatStream({ text: "Hello there" }) };
    const data = { error: { message: "slow down", code: 429 } };
    chat.chunks.splice(2, Number.POSITIVE_INFINITY, `data: ${JSON.stringify(data)}\n\n`);
    expect(await failing(local(), chat)).toBeInstanceOf(ModelRateLimitError);
  });

  test("an answer is whole once its finish has come, whatever the connection does then", async () => {
    server.enqueue(cutAfter(anthropicStream([{ type: "text", text: "Hello there" }]), 99, "break"));
    expect((await ask(anthropic(), hi)).finish.stop_reason).toBe("stop");
  });
});

describe("filters", () => {
  test("a filtered answer throws, with the provider's word", async () => {
    const refusal = await failing(
      anthropic(),
      anthropicStream([{ type: "text", text: "I" }], { stopReason: "refusal" }),
    );
    expect(refusal).toBeInstanceOf(ContentFilterError);
    expect(refusal.message).toContain("(refusal)");
    const filtered = await failing(local(), chatStream({ text: "I", finishReason: "content_filter" }));
    expect(filtered).toBeInstanceOf(ContentFilterError);
  });

  test("an answer that ends in an error or without a finish is no answer", async () => {
    for (const parts of [[finish("error", "MALFORMED")], []]) {
      const error = await failure(ask(aiSdkModel(modelV4(parts).model), hi));
      expect(error).toBeInstanceOf(ModelUnavailableError);
    }
  });
});

describe("errors of this side", () => {
  const subject = { providerId: "p", modelId: "m", secrets: [] };
  const named = (name: string, message: string) => Object.assign(new Error(message), { name });

  test("a missing key", async () => {
    const before = process.env.ANTHROPIC_API_KEY;
    delete process.env.ANTHROPIC_API_KEY;
    try {
      const error = await failure(ask(aiSdkModel(createAnthropic()("claude-test")), hi));
      expect(error).toBeInstanceOf(ModelAuthenticationError);
      expect((error as Error).message).toContain("ANTHROPIC_API_KEY");
    } finally {
      if (before !== undefined) process.env.ANTHROPIC_API_KEY = before;
    }
  });

  test.each([
    [named("AI_UnsupportedFunctionalityError", "no audio"), ModelBadRequestError, false],
    [named("AI_InvalidResponseDataError", "nonsense"), ModelUnavailableError, true],
    [named("TimeoutError", "The operation timed out"), ModelUnavailableError, true],
    [new TypeError("terminated", { cause: new Error("other side closed") }), ModelUnavailableError, true],
    [new Error("x", { cause: Object.assign(new Error("y"), { code: "ECONNRESET" }) }), ModelUnavailableError, true],
    ["overloaded", ModelUnavailableError, true],
    [undefined, ModelUnavailableError, true],
  ])("%s", (thrown, type, retryable) => {
    const error = toModelError(thrown, subject);
    expect(error).toBeInstanceOf(type);
    expect(error.retryable).toBe(retryable);
  });

  test("a fault in a program is neither the provider's nor worth another try", () => {
    const bug = new TypeError("x is not a function");
    const error = toModelError(bug, subject);
    expect(error.constructor).toBe(ModelError);
    expect(error).toMatchObject({ retryable: false, cause: bug });
    const known = new ModelRateLimitError("as it was");
    expect(toModelError(known, subject)).toBe(known);
  });
});
