/** A run's events as an async iterable, beside its result. */
import { AsyncQueue } from "../util/queue.ts";
import type { AgentEvent, AgentResult } from "./events.ts";

/** Events as they come, and the result. Leaving the loop early aborts the run. */
export interface AgentStream extends AsyncIterable<AgentEvent> {
  readonly result: Promise<AgentResult>;
}

interface Options {
  signal?: AbortSignal | undefined;
  onEvent?: ((event: AgentEvent) => void) | undefined;
}

/** Starts a run at once, whether or not anybody iterates. @param start runs it with the options it is given */
export function streamed<O extends Options>(options: O, start: (options: O) => Promise<AgentResult>): AgentStream {
  const queue = new AsyncQueue<AgentEvent>();
  const left = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
  const onEvent = (event: AgentEvent) => {
    options.onEvent?.(event);
    queue.push(event);
  };
  const result = start({ ...options, signal, onEvent });
  // Whoever iterates gets the failure there; without this, not awaiting `result` too would end the process.
  result.then(
    () => queue.end(),
    (error: unknown) => queue.fail(error),
  );
  return {
    result,
    async *[Symbol.asyncIterator]() {
      let ended = false;
      try {
        for await (const event of queue) yield event;
        ended = true;
      } finally {
        if (!ended) {
          left.abort();
          await Promise.allSettled([result]);
        }
      }
    },
  };
}
