/**
 * `events.jsonl`: what an agent reported, one JSON object a line, appended. It records and restores nothing, so it never gets
 * in the agent's way: a failure is told once and the agent goes on.
 */
import { closeSync, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { messageOf } from "../errors.ts";
import { jsonLine } from "../util/text.ts";

export interface EventsFileOptions {
  /** Told of the first failure, and of no other. It must not throw. */
  onFailure?: ((error: Error) => void) | undefined;
}

const NEWLINE = 0x0a;

export class EventsFile {
  readonly path: string;
  readonly #onFailure: ((error: Error) => void) | undefined;
  #fd: number | undefined;
  #closed = false;
  #told = false;
  /** Whether the file ends within a line: a killed process or a full disk cut it. */
  #cut = false;
  /** How many events could not be written since the last one that was. */
  #lost = 0;

  /** @param path the file; it is made with mode 0600 at the first event, and what it holds stays */
  constructor(path: string, options: EventsFileOptions = {}) {
    this.path = path;
    this.#onFailure = options.onFailure;
  }

  /**
   * Appends an event, in one write and at once: a process killed in the next moment has recorded it. It gets the `time` when it
   * has none. An Error becomes { name, code, message }; an event that is no JSON at all leaves a line with the reason.
   *
   * Never throws. After a failure each further event is tried too, and the first that is written follows a line of type
   * "events_lost" with the number of those that were not.
   */
  write(event: object): void {
    if (this.#closed) return;
    try {
      this.#fd ??= this.#open();
      if (this.#lost > 0) this.#append(this.#fd, lineOf({ type: "events_lost", count: this.#lost }));
      this.#lost = 0;
      this.#append(this.#fd, lineOf(event));
    } catch (error) {
      this.#lost++;
      this.#tell(error);
    }
  }

  /** Closes the file; events after that are ignored. */
  close(): void {
    this.#closed = true;
    if (this.#fd === undefined) return;
    const fd = this.#fd;
    this.#fd = undefined;
    try {
      closeSync(fd);
    } catch (error) {
      this.#tell(error);
    }
  }

  #open(): number {
    const found = statSync(this.path, { throwIfNoEntry: false });
    // Opening a pipe would wait for its reader.
    if (found && !found.isFile()) throw new Error("it is not a regular file");
    const fd = openSync(this.path, "a+", 0o600);
    try {
      const { size } = fstatSync(fd);
      const last = Buffer.alloc(1);
      this.#cut = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    return fd;
  }

  #append(fd: number, line: string): void {
    // What was cut stays as it is, on a line of its own.
    const bytes = Buffer.from(`${this.#cut ? "\n" : ""}${line}\n`);
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(fd, bytes, written);
      this.#cut = bytes[written - 1] !== NEWLINE;
    }
  }

  #tell(error: unknown): void {
    if (this.#told) return;
    this.#told = true;
    this.#onFailure?.(new Error(`Events are not recorded in ${this.path}: ${messageOf(error)}.`, { cause: error }));
  }
}

function lineOf(event: object): string {
  const time = new Date().toISOString();
  try {
    return jsonLine({ time, ...event }, withErrors);
  } catch (error) {
    // A cycle, a BigInt, or a toJSON that throws.
    const { type, runId } = event as { type?: unknown; runId?: unknown };
    return jsonLine({ time, type: String(type), runId: String(runId), not_json: messageOf(error) });
  }
}

function withErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { code } = value as { code?: unknown };
  return { name: value.name, ...(typeof code === "string" ? { code } : {}), message: value.message };
}
