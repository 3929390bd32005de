/** Lines typed at a terminal, as readline edits them; steps aside for menus, which read the keyboard themselves. */
import { createInterface, type Interface } from "node:readline";

export class LineInput {
  #readline: Interface | undefined;
  #unread: string[] = [];
  #waiting: ((line: string | undefined) => void) | undefined;
  #onBusyLine: ((line: string) => void) | undefined;
  #ended = false;

  /** The next line; undefined at the end of the input (Ctrl-D) and for Ctrl-C. */
  async next(prompt: string): Promise<string | undefined> {
    const line = this.#unread.shift();
    if (line !== undefined) return line;
    if (this.#ended) return undefined;
    const readline = this.#open();
    readline.setPrompt(prompt);
    return await new Promise((resolve) => {
      this.#waiting = resolve;
      readline.prompt();
    });
  }

  /** Puts a line back, to be the next one. */
  unread(line: string): void {
    this.#unread.push(line);
  }

  /** Hands lines to `onLine` while the agent works, and Ctrl-C to the process; undefined ends that. */
  whileBusy(onLine: ((line: string) => void) | undefined): void {
    this.#onBusyLine = onLine;
    if (onLine) this.#open();
  }

  /** Leaves the keyboard to `ask`. */
  async aside<T>(ask: () => Promise<T>): Promise<T> {
    this.close();
    try {
      return await ask();
    } finally {
      if (this.#onBusyLine) this.#open();
    }
  }

  close(): void {
    const readline = this.#readline;
    this.#readline = undefined;
    readline?.close();
  }

  #open(): Interface {
    if (this.#readline) return this.#readline;
    const readline = createInterface({ input: process.stdin, output: process.stdout, prompt: "" });
    this.#readline = readline;
    readline.on("line", (line) => this.#take(line));
    readline.on("SIGINT", () => {
      // The terminal is in raw mode, so Ctrl-C comes as a key and has to be passed on.
      if (this.#onBusyLine) process.emit("SIGINT");
      else this.#give(undefined);
    });
    readline.on("close", () => {
      if (this.#readline !== readline) return;
      this.#readline = undefined;
      this.#ended = true;
      this.#give(undefined);
    });
    return readline;
  }

  #take(line: string): void {
    if (this.#onBusyLine) this.#onBusyLine(line);
    else if (this.#waiting) this.#give(line);
    else this.#unread.push(line);
  }

  #give(line: string | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(line);
  }
}
