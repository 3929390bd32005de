/** Ctrl-C. Commands end at once, unless they said how they stop; a second Ctrl-C always ends. */
import { EXIT } from "./errors.ts";

let stop: (() => void) | undefined;

/** Begins to listen, once a process. */
export function listenForInterrupts(): void {
  process.on("SIGINT", () => {
    const stopNow = stop ?? (() => process.exit(EXIT.interrupted));
    stop = undefined;
    stopNow();
  });
  // By exit() rather than by the signal, so that files half written are removed.
  process.on("SIGTERM", () => process.exit(143));
}

/** Stops by `handler` until the function that this gives is called. */
export function onInterrupt(handler: () => void): () => void {
  stop = handler;
  return () => {
    stop = undefined;
  };
}
