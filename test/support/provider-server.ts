/**
 * A real HTTP server in the place of a model provider. It answers requests with what was queued, in order, and keeps the
 * bytes of each request. It speaks the Anthropic Messages stream, the OpenAI-compatible chat stream, and the OpenAI
 * Responses stream, and can fail in the ways that providers do.
 */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RecordedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The body as it came. */
  bytes: Buffer;
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any;
}

export interface ProviderResponse {
  /** HTTP status (Default: 200) */
  status?: number;
  headers?: Record<string, string>;
  /** Written one after another. */
  chunks: string[];
  /** After the chunks: "close" ends the response, "break" cuts the connection, "hang" sends nothing more. (Default: "close") */
  end?: "close" | "break" | "hang";
}

export interface ProviderServer {
  /** Base URL, without a slash at its end: `http://127.0.0.1:40000`. */
  url: string;
  requests: RecordedRequest[];
  /** Queues responses; a request that finds none gets a 400 that says so. */
  enqueue(...responses: ProviderResponse[]): void;
  /** Resolves when the next request has come whole. */
  nextRequest(): Promise<RecordedRequest>;
  /** Resolves when the client has gone from a response that hangs. */
  disconnected(): Promise<void>;
  close(): Promise<void>;
}

export async function startProviderServer(): Promise<ProviderServer> {
  const requests: RecordedRequest[] = [];
  const queue: ProviderResponse[] = [];
  const gone = Promise.withResolvers<void>();
  let next = Promise.withResolvers<RecordedRequest>();

  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const bytes = Buffer.concat(parts);
    const recorded = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      bytes,
      body: bytes.length > 0 ? JSON.parse(bytes.toString()) : undefined,
    };
    requests.push(recorded);
    next.resolve(recorded);
    next = Promise.withResolvers();
    const answer = queue.shift() ?? errorResponse(400, { error: { message: "no response was queued" } });
    if (answer.end === "hang") response.on("close", () => gone.resolve());
    await send(answer, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    enqueue: (...responses) => void queue.push(...responses),
    nextRequest: () => next.promise,
    disconnected: () => gone.promise,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function send(answer: ProviderResponse, response: ServerResponse): Promise<void> {
  if (answer.chunks.length === 0 && answer.end === "break") {
    response.destroy();
    return;
  }
  response.writeHead(answer.status ?? 200, answer.headers ?? { "content-type": "text/event-stream" });
  response.flushHeaders();
  for (const chunk of answer.chunks) {
    // In two pieces that part in the middle of a character when there are any but ASCII ones.
    const bytes = Buffer.from(chunk);
    const middle = bytes.findIndex((byte) => byte >= 0x80) + 1 || bytes.length >> 1;
    for (const piece of [bytes.subarray(0, middle), bytes.subarray(middle)]) {
      await new Promise((resolve) => response.write(piece, resolve));
    }
  }
  if (answer.end === "break") response.destroy();
  else if (answer.end !== "hang") response.end();
}

/** A connection that is cut before anything comes. */
export const brokenConnection = (): ProviderResponse => ({ chunks: [], end: "break" });

/** An answer of which only the first events come before the connection is cut. */
export function cutAfter(
  response: ProviderResponse,
  events: number,
  end: ProviderResponse["end"] = "break",
): ProviderResponse {
  return { ...response, chunks: response.chunks.slice(0, events), end };
}

export function errorResponse(
  status: number,
  body: object | string,
  headers: Record<string, string> = {},
): ProviderResponse {
  const json = typeof body === "object";
  return {
    status,
    headers: { "content-type": json ? "application/json" : "text/html", ...headers },
    chunks: [json ? JSON.stringify(body) : body],
  };
}

/** An error as Anthropic words it. */
export const anthropicError = (status: number, type: string, message: string, headers: Record<string, string> = {}) =>
  errorResponse(status, { type: "error", error: { type, message } }, headers);

/** An error as OpenAI words it. */
export const openaiError = (status: number, code: string, message: string, headers: Record<string, string> = {}) =>
  errorResponse(status, { error: { message, type: "invalid_request_error", param: null, code } }, headers);

export type AnthropicBlock =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "redacted_thinking"; data: string }
  /** `input` as text is sent as it is, also when it is not JSON. */
  | { type: "tool_use"; id: string; name: string; input: object | string };

export interface AnthropicAnswer {
  id?: string;
  stopReason?: string;
  usage?: {
    input_tokens: number;
    output_tokens: number;
    cache_read_input_tokens?: number;
    cache_creation_input_tokens?: number;
  };
}

/** An answer in the stream format of the Anthropic Messages API. */
export function anthropicStream(blocks: AnthropicBlock[], answer: AnthropicAnswer = {}): ProviderResponse {
  const { id = "msg_1", usage = { input_tokens: 12, output_tokens: 7 } } = answer;
  const stopReason = answer.stopReason ?? (blocks.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn");
  const message = { id, type: "message", role: "assistant", model: "claude-test", content: [], stop_reason: null };
  const events: { type: string; [field: string]: unknown }[] = [
    { type: "message_start", message: { ...message, stop_sequence: null, usage: { ...usage, output_tokens: 1 } } },
    { type: "ping" },
  ];
  blocks.forEach((block, index) => {
    const delta = (delta: object) => events.push({ type: "content_block_delta", index, delta });
    const start = (content_block: object) => events.push({ type: "content_block_start", index, content_block });
    if (block.type === "text") {
      start({ type: "text", text: "" });
      for (const text of halves(block.text)) delta({ type: "text_delta", text });
    } else if (block.type === "thinking") {
      start({ type: "thinking", thinking: "", signature: "" });
      for (const thinking of halves(block.thinking)) delta({ type: "thinking_delta", thinking });
      delta({ type: "signature_delta", signature: block.signature });
    } else if (block.type === "redacted_thinking") {
      start(block);
    } else {
      start({ type: "tool_use", id: block.id, name: block.name, input: {} });
      const input = typeof block.input === "string" ? block.input : JSON.stringify(block.input);
      for (const partial_json of halves(input)) delta({ type: "input_json_delta", partial_json });
    }
    events.push({ type: "content_block_stop", index });
  });
  events.push(
    { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage },
    { type: "message_stop" },
  );
  return { chunks: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`) };
}

export interface ChatAnswer {
  reasoning?: string;
  text?: string;
  /** `arguments` is sent as it is, also when it is not JSON. */
  toolCalls?: { id: string; name: string; arguments: string }[];
  finishReason?: string;
  usage?: object;
}

/** An answer in the stream format of OpenAI's chat completions, as many servers speak it. */
export function chatStream({ reasoning, text, toolCalls = [], ...answer }: ChatAnswer): ProviderResponse {
  const deltas: object[] = [{ role: "assistant", content: "" }];
  for (const part of halves(reasoning ?? "")) deltas.push({ reasoning_content: part });
  for (const part of halves(text ?? "")) deltas.push({ content: part });
  toolCalls.forEach((call, index) => {
    deltas.push({
      tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }],
    });
    for (const part of halves(call.arguments)) deltas.push({ tool_calls: [{ index, function: { arguments: part } }] });
  });
  const chunk = (choice: object, fields: object = {}) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "local-test",
    choices: [{ index: 0, finish_reason: null, ...choice }],
    ...fields,
  });
  const finish_reason = answer.finishReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop");
  const usage = answer.usage ?? { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const chunks = [...deltas.map((delta) => chunk({ delta })), chunk({ delta: {}, finish_reason }, { usage })];
  return { chunks: [...chunks.map((data) => `data: ${JSON.stringify(data)}\n\n`), "data: [DONE]\n\n"] };
}

/** A stream of any server-sent events, each with its type. */
export function eventStream(events: { type: string; [field: string]: unknown }[]): ProviderResponse {
  return { chunks: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`) };
}

function halves(text: string): string[] {
  const middle = Math.ceil([...text].length / 2);
  const characters = [...text];
  return [characters.slice(0, middle), characters.slice(middle)]
    .map((half) => half.join(""))
    .filter((half) => half !== "");
}
