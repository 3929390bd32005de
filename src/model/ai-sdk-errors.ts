/**
 * What AI SDK providers throw, as the typed errors of a model. They are recognised by their shape (name, statusCode,
 * responseHeaders, responseBody), since a program can hold several copies of the provider packages.
 */
import {
  ContentFilterError,
  ContextOverflowError,
  ModelAuthenticationError,
  ModelBadRequestError,
  ModelError,
  ModelRateLimitError,
  ModelUnavailableError,
} from "./errors.ts";

/** Whom an error speaks of, and what it must not repeat. */
export interface ErrorSubject {
  providerId: string;
  modelId: string;
  /** Texts that are cut out of messages, such as the values of custom headers. */
  secrets: readonly string[];
}

type Fields = Record<string, unknown>;

/** What the many shapes of an error come down to. */
interface Facts {
  /** HTTP status from 400, when one was sent. */
  status: number | undefined;
  /** The status, or the one that the provider's own word for the failure stands for. */
  like: number | undefined;
  /** The provider's machine words: type, code, error name. Lower case. */
  kind: string;
  /** What the provider says, quoted in the message. */
  words: string;
  /** What the provider's package thinks of asking again. */
  retryable: boolean | undefined;
  retryAfterMs: number | undefined;
}

/** Maps anything that a provider threw or sent as an error to a ModelError. */
export function toModelError(error: unknown, subject: ErrorSubject): ModelError {
  if (error instanceof ModelError) return error;
  const facts = factsOf(error);
  const { status, like, kind, retryAfterMs } = facts;
  const { providerId, modelId } = subject;
  const said = quote(facts.words, subject.secrets);
  const number = status === undefined ? "" : ` (${status})`;
  const options = { cause: error, status, retryAfterMs };

  if (/content_?filter|content_policy|responsible_?ai/.test(kind)) {
    return new ContentFilterError(
      `The filter of ${providerId} stopped the request${number}${said} Reword it.`,
      options,
    );
  }
  if (like === 401 || like === 403) {
    const advice = `Check the API key, and that it may use ${modelId}.`;
    return new ModelAuthenticationError(`${providerId} did not accept the API key${number}${said} ${advice}`, options);
  }
  if (like === 429) {
    const retryable = facts.retryable ?? !kind.includes("insufficient_quota");
    const advice = retryable ? "Ask again later." : "Check the quota and the billing of the account.";
    return new ModelRateLimitError(`${providerId} takes no more requests now${number}${said} ${advice}`, {
      ...options,
      retryable,
    });
  }
  if (like === 413 || OVERFLOW_KIND.test(kind) || OVERFLOW_WORDS.test(facts.words)) {
    return new ContextOverflowError(
      `The request no longer fits ${modelId} of ${providerId}${number}${said} Compact the thread, or begin a new one.`,
      options,
    );
  }
  if (like !== undefined && like < 500 && like !== 408) {
    return new ModelBadRequestError(`${providerId} refused the request${number}${said}`, {
      ...options,
      retryable: facts.retryable ?? false,
    });
  }
  if (like === undefined && isProgramError(error)) {
    return new ModelError(`${modelId} of ${providerId} failed${said}`, options);
  }
  return new ModelUnavailableError(`${providerId} could not answer${number}${said} Ask again later.`, {
    ...options,
    retryable: facts.retryable ?? true,
  });
}

const OVERFLOW_KIND = /context_length|context_window|exceed_context|request_too_large|string_above_max_length/;
const OVERFLOW_WORDS = new RegExp(
  [
    "(?:prompt|input|request) is too long",
    "context[ _-](?:length|window|limit|size|overflow)",
    "maximum (?:context|prompt) length",
    "input token count .*exceeds the maximum",
    "too large for model with \\d+ maximum context",
    "reduce the length of the (?:messages|prompt|input)",
  ].join("|"),
  "i",
);

/** A provider's word for a failure, as the HTTP status that others would have sent. The first that matches counts. */
const STATUS_OF_KIND: readonly [RegExp, number][] = [
  [/authentication|invalid_api_key|loadapikey|unauthorized/, 401],
  [/permission|forbidden/, 403],
  [/rate_?limit|too_many_requests|insufficient_quota/, 429],
  [/overload/, 529],
  [/not_found|nosuchmodel/, 404],
  [/timeout/, 408],
  [/invalid_?request|bad_?request|invalidprompt|invalidargument|unsupportedfunctionality|loadsetting/, 400],
  [/api_error|server_?error|internal/, 500],
];

function factsOf(error: unknown): Facts {
  const fields = fieldsOf(error) ?? {};
  const body = parsed(fields.responseBody) ?? fieldsOf(fields.data) ?? fields;
  const inner = fieldsOf(body.error) ?? body;
  const kind = [inner.type, inner.code, fields.type, fields.code, fields.name]
    .filter((word) => typeof word === "string")
    .join(" ")
    .toLowerCase();
  const sent = [fields.statusCode, fields.status, inner.code, inner.status].map(Number).find(isErrorStatus);
  const plain = typeof fields.responseBody === "string" && body === fields && !fields.responseBody.startsWith("<");
  const words = [
    plain ? fields.responseBody : inner.message,
    body.message,
    body.detail,
    body.error,
    fields.message,
    error,
  ].find((text): text is string => typeof text === "string" && text.trim() !== "");
  const headers = fieldsOf(fields.responseHeaders) ?? {};
  return {
    status: sent,
    like: sent ?? STATUS_OF_KIND.find(([word]) => word.test(kind))?.[1],
    kind,
    words: words ?? "",
    retryable: typeof fields.isRetryable === "boolean" ? fields.isRetryable : undefined,
    retryAfterMs: retryAfter(headers),
  };
}

/** A fault of a program on this side, not of the provider or of the network in between. */
function isProgramError(error: unknown): boolean {
  if (!(error instanceof Error) || error.name.startsWith("AI_")) return false;
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === "string" && /^(?:E[A-Z]+$|UND_ERR_|ERR_SSL|ERR_TLS)/.test(code)) return false;
    // What fetch throws when a connection fails or breaks off, and when a time limit of its own is over.
    if (/^(?:fetch failed|failed to fetch|terminated)$/i.test(at.message)) return false;
    if (at.name === "TimeoutError" || at.name === "AbortError") return false;
  }
  return true;
}

/** The wait that a response asks for, in ms: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date. */
function retryAfter(headers: Fields): number | undefined {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value).trim()]));
  const ms = byName.get("retry-after-ms");
  if (ms && Number(ms) >= 0) return Math.round(Number(ms));
  const value = byName.get("retry-after");
  if (!value) return undefined;
  if (Number(value) >= 0) return Math.round(Number(value) * 1000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

const MAX_QUOTE = 500;
const KEY_SHAPES =
  /\bBearer\s+[\w.~+/=-]+|\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi|r8)[-_](?=[\w-]*\d)[\w-]{12,}|\bAIza[\w-]{20,}/g;

/** The provider's words, shortened and without anything that looks like a key: `: "…".` or a plain full stop. */
function quote(words: string, secrets: readonly string[]): string {
  let text = words.trim().replace(/\s+/g, " ");
  for (const secret of secrets) text = text.replaceAll(secret, "[redacted]");
  text = text.replace(KEY_SHAPES, "[redacted]").replace(/([?&](?:api_)?key=)[^&\s"']+/gi, "$1[redacted]");
  if (text.length > MAX_QUOTE) text = `${text.slice(0, MAX_QUOTE).toWellFormed()}…`;
  return text === "" ? "." : `: "${text}".`;
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

function parsed(body: unknown): Fields | undefined {
  if (typeof body !== "string") return undefined;
  try {
    return fieldsOf(JSON.parse(body));
  } catch {
    return undefined;
  }
}
