import { describe, expect, test } from "vitest";
import { InvalidArgumentError } from "../../src/errors.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { ModelBadRequestError, ModelRateLimitError, ModelUnavailableError } from "../../src/model/errors.ts";
import type { Model, ModelEvent } from "../../src/model/model.ts";
import { type RetryNotice, type RetryPolicy, streamWithRetry } from "../../src/model/retry.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { failure } from "../support/turns.ts";

const request = { messages: [userMessage("hi")], tools: [] };
const down = () => new ModelUnavailableError("down");

async function run(model: Model, policy: RetryPolicy, signal?: AbortSignal, onWait?: () => void) {
  const notices: RetryNotice[] = [];
  const events: ModelEvent[] = [];
  const onRetry = (notice: RetryNotice) => {
    notices.push(notice);
    onWait?.();
  };
  const outcome = (async () => {
    for await (const event of streamWithRetry(model, { ...request, signal }, policy, onRetry)) events.push(event);
  })();
  const error = await outcome.then(
    () => undefined,
    (error: unknown) => error,
  );
  return { events, notices, error };
}

const scripted = (...answers: ScriptedAnswer[]) => new ScriptedModel(answers);

describe("streamWithRetry", () => {
  test("asks again after retryable failures and gives the answer once", async () => {
    const model = scripted(down(), down(), "hello");
    const { events, notices, error } = await run(model, { baseDelayMs: 4 });
    expect(error).toBeUndefined();
    expect(model.requests).toHaveLength(3);
    expect(events.map((event) => event.type)).toEqual(["text_delta", "finish"]);
    expect(notices.map((notice) => notice.attempt)).toEqual([1, 2]);
  });

  test("gives up with the last error after maxAttempts, four when nothing is said", async () => {
    const errors = [down(), down(), down(), down(), down()];
    const model = scripted(...errors);
    const { error, notices } = await run(model, { baseDelayMs: 0 });
    expect(error).toBe(errors[3]);
    expect(model.requests).toHaveLength(4);
    expect(notices).toHaveLength(3);

    const once = scripted(errors[0] as Error, "never");
    expect((await run(once, { maxAttempts: 1 })).error).toBe(errors[0]);
    expect(once.requests).toHaveLength(1);
  });

  test("the waits double, are random in their upper half, and stay under the maximum", async () => {
    const model = scripted(...Array.from({ length: 6 }, down), "ok");
    const { notices } = await run(model, { maxAttempts: 7, baseDelayMs: 4, maxDelayMs: 16 });
    const full = [4, 8, 16, 16, 16, 16];
    expect(notices).toHaveLength(full.length);
    notices.forEach(({ delayMs }, i) => {
      expect(delayMs).toBeGreaterThanOrEqual((full[i] as number) / 2);
      expect(delayMs).toBeLessThanOrEqual(full[i] as number);
    });
  });

  test("never asks again once an event has come through", async () => {
    let asked = 0;
    const model: Model = {
      providerId: "p",
      modelId: "m",
      async *stream() {
        asked++;
        yield { type: "text_delta", delta: "half an" };
        throw down();
      },
    };
    const { events, error } = await run(model, { baseDelayMs: 0 });
    expect(error).toBeInstanceOf(ModelUnavailableError);
    expect(asked).toBe(1);
    expect(events).toEqual([{ type: "text_delta", delta: "half an" }]);
  });

  test("errors that asking again does not mend are thrown at once", async () => {
    for (const error of [new ModelBadRequestError("no"), new TypeError("bug")]) {
      const model = scripted(error, "never");
      expect((await run(model, { baseDelayMs: 0 })).error).toBe(error);
      expect(model.requests).toHaveLength(1);
    }
  });

  test("waits as long as the provider asks, but fails at once when that is too long", async () => {
    const soon = new ModelRateLimitError("slow down", { retryAfterMs: 7 });
    const patient = await run(scripted(soon, "ok"), { baseDelayMs: 1000 });
    expect(patient.error).toBeUndefined();
    expect(patient.notices).toEqual([{ attempt: 1, delayMs: 7, error: soon }]);

    const late = new ModelRateLimitError("come back tomorrow", { retryAfterMs: 86_400_000 });
    const model = scripted(late, "never");
    const impatient = await run(model, {});
    expect(impatient.error).toBe(late);
    expect(impatient.notices).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });

  test("a wait ends at once with the reason of the signal", async () => {
    const controller = new AbortController();
    const reason = new Error("the user left");
    const model = scripted(down(), "never");
    const policy = { baseDelayMs: 20_000, maxDelayMs: 20_000 };
    const { error } = await run(model, policy, controller.signal, () => setImmediate(() => controller.abort(reason)));
    expect(error).toBe(reason);
    expect(model.requests).toHaveLength(1);
  });

  test("a consumer that stops reading ends the model's stream", async () => {
    let ended = false;
    const model: Model = {
      providerId: "p",
      modelId: "m",
      async *stream() {
        try {
          yield { type: "text_delta", delta: "a" };
          yield { type: "text_delta", delta: "b" };
        } finally {
          ended = true;
        }
      },
    };
    for await (const _ of streamWithRetry(model, request)) break;
    expect(ended).toBe(true);
  });

  test.each([{ maxAttempts: 0 }, { maxAttempts: 1.5 }, { baseDelayMs: -1 }, { maxDelayMs: Number.NaN }])(
    "refuses the policy %j",
    async (policy) => {
      const model = scripted("never");
      expect(await failure(streamWithRetry(model, request, policy).next())).toBeInstanceOf(InvalidArgumentError);
      expect(model.requests).toHaveLength(0);
    },
  );
});
