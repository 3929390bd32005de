/** Keeps readable.md up to date with a thread. It never gets in the agent's way: a failure is told once. */
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { messageOf } from "../errors.ts";
import { writeReadable } from "./readable.ts";

export class ReadableFile {
  readonly #path: string;
  readonly #checkpointer: Checkpointer;
  readonly #threadId: string;
  readonly #onFailure: ((error: Error) => void) | undefined;
  #told = false;
  #wanted = false;
  #writing: Promise<void> | undefined;

  constructor(
    path: string,
    checkpointer: Checkpointer,
    threadId: string,
    onFailure: ((error: Error) => void) | undefined,
  ) {
    this.#path = path;
    this.#checkpointer = checkpointer;
    this.#threadId = threadId;
    this.#onFailure = onFailure;
  }

  /** Asks for the file to be written. Requests that come while it is being written are one. */
  update(): void {
    this.#wanted = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves once what was asked for is written. */
  async finish(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#wanted) {
      this.#wanted = false;
      try {
        const loaded = await this.#checkpointer.load(this.#threadId);
        await writeReadable(this.#path, loaded?.messages ?? [], { summary: loaded?.summary });
      } catch (error) {
        if (!this.#told)
          this.#onFailure?.(new Error(`${this.#path} is not written: ${messageOf(error)}`, { cause: error }));
        this.#told = true;
      }
    }
  }
}
