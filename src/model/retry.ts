/** Asking a model again when it could not begin to answer. Once an event has come through, nothing is asked again. */
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError } from "../errors.ts";
import { ModelError } from "./errors.ts";
import type { Model, ModelEvent, ModelRequest } from "./model.ts";

export interface RetryPolicy {
  /** How often the model is asked in all; 1 never retries. (Default: 4) */
  maxAttempts?: number;
  /** The wait before the second attempt, in ms; it doubles with each further one. (Default: 500) */
  baseDelayMs?: number;
  /** The longest wait, in ms. A provider that asks for a longer one fails at once. (Default: 30,000) */
  maxDelayMs?: number;
}

/** What `onRetry` is told before each wait. */
export interface RetryNotice {
  /** The attempt that failed, counted from 1. */
  attempt: number;
  delayMs: number;
  error: ModelError;
}

/** Longer timers fire at once in Node. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Streams a model's answer, and asks again with growing, randomised waits when the stream throws a retryable ModelError
 * before its first event. A wait that the provider asks for (`retryAfterMs`) is kept to.
 *
 * @param onRetry called before each wait
 * @throws ModelError the last attempt's error, or one that asking again does not mend
 * @throws the reason of `request.signal` as soon as it fires, also during a wait
 * @throws InvalidArgumentError when the policy is not one
 */
export async function* streamWithRetry(
  model: Model,
  request: ModelRequest,
  policy: RetryPolicy = {},
  onRetry?: (notice: RetryNotice) => void,
): AsyncGenerator<ModelEvent> {
  const { maxAttempts = 4, baseDelayMs = 500, maxDelayMs = 30_000 } = policy;
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1) {
    throw new InvalidArgumentError(`maxAttempts must be a whole number from 1, not ${maxAttempts}.`);
  }
  checkDelay("baseDelayMs", baseDelayMs);
  checkDelay("maxDelayMs", maxDelayMs);

  for (let attempt = 1; ; attempt++) {
    let begun = false;
    try {
      for await (const event of model.stream(request)) {
        begun = true;
        yield event;
      }
      return;
    } catch (error) {
      if (begun || attempt === maxAttempts || !(error instanceof ModelError) || !error.retryable) throw error;
      const delayMs = error.retryAfterMs ?? backoff(attempt, baseDelayMs, maxDelayMs);
      if (delayMs > maxDelayMs) throw error;
      request.signal?.throwIfAborted();
      onRetry?.({ attempt, delayMs, error });
      await wait(delayMs, request.signal);
    }
  }
}

/** Half of the wait is random, so that many clients that failed together don't come back together. */
function backoff(attempt: number, baseDelayMs: number, maxDelayMs: number): number {
  const full = Math.min(maxDelayMs, baseDelayMs * 2 ** (attempt - 1));
  return Math.round(full * (0.5 + Math.random() / 2));
}

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return sleep(ms);
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    // The timer rejects with an AbortError of its own; callers are promised the signal's reason.
    signal.throwIfAborted();
  }
}

function checkDelay(name: string, value: number): void {
  if (!(value >= 0 && value <= LONGEST_TIMER_MS)) {
    throw new InvalidArgumentError(`${name} must be from 0 to ${LONGEST_TIMER_MS} ms, not ${value}.`);
  }
}
