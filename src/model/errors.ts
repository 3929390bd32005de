/** Why a model did not answer. The agent stores the error on the assistant message and ends the run as failed. */
import { EverthreadError } from "../errors.ts";

export interface ModelErrorOptions {
  cause?: unknown;
  /** HTTP status, when there was one. */
  status?: number | undefined;
  /** Whether the same request may succeed later. (Default: false) */
  retryable?: boolean;
  /** How long the provider asks to wait, in ms. */
  retryAfterMs?: number | undefined;
  code?: string;
}

/** The base of a model's failures. */
export class ModelError extends EverthreadError {
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: ModelErrorOptions = {}) {
    super(options.code ?? "model_error", message, options);
    this.status = options.status;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The provider does not accept the key, or the key may not use this model (401, 403). */
export class ModelAuthenticationError extends ModelError {
  constructor(message: string, options: ModelErrorOptions = {}) {
    super(message, { ...options, code: "model_authentication" });
  }
}

/** Too many requests (429). */
export class ModelRateLimitError extends ModelError {
  constructor(message: string, options: ModelErrorOptions = {}) {
    super(message, { retryable: true, ...options, code: "model_rate_limit" });
  }
}

/** The thread no longer fits the model's context window. */
export class ContextOverflowError extends ModelError {
  constructor(message: string, options: ModelErrorOptions = {}) {
    super(message, { ...options, code: "context_overflow" });
  }
}

/** The provider's filter stopped the request or the answer. */
export class ContentFilterError extends ModelError {
  constructor(message: string, options: ModelErrorOptions = {}) {
    super(message, { ...options, code: "content_filter" });
  }
}

/** The provider refuses the request as it is (400, 404, 422); asking again changes nothing. */
export class ModelBadRequestError extends ModelError {
  constructor(message: string, options: ModelErrorOptions = {}) {
    super(message, { ...options, code: "model_bad_request" });
  }
}

/** The provider can't be reached, failed (408, 5xx), or broke off its answer. */
export class ModelUnavailableError extends ModelError {
  constructor(message: string, options: ModelErrorOptions = {}) {
    super(message, { retryable: true, ...options, code: "model_unavailable" });
  }
}
