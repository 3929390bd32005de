/** Where a command writes: answers on stdout, everything else on stderr. Callers make stored text harmless first. */
import { styleText } from "node:util";
import { jsonLine } from "../util/text.ts";
import { EXIT } from "./errors.ts";

// One at a time: of a list the oldest supported Node colours also what it should not.
type Format = Extract<Parameters<typeof styleText>[0], string>;

const NARROWEST = 20;

export class Terminal {
  /** Whether the output is for programs. */
  readonly json: boolean;
  /** The columns of a line. Infinity where the output is no terminal, and nothing need be shortened. */
  readonly width: number;
  /** Whether a person reads stdout. */
  readonly live: boolean;
  /** Whether a person is there to be asked: menus need a terminal that can move its cursor. */
  readonly canAsk: boolean;
  #discards = false;
  #ended = false;

  constructor(json: boolean) {
    this.json = json;
    const { stdin, stdout, env } = process;
    const columns = stdout.isTTY ? stdout.columns || 80 : Number(env.COLUMNS);
    this.width = columns > 0 ? Math.max(NARROWEST, columns) : Number.POSITIVE_INFINITY;
    this.live = !json && stdout.isTTY === true;
    this.canAsk = this.live && stdin.isTTY === true && env.TERM !== "dumb";
    stdout.on("error", (error: NodeJS.ErrnoException) => this.#failed(error));
    // Whoever closed stderr wants no messages; the work goes on.
    process.stderr.on("error", () => {});
  }

  /** From here on a reader that goes away ends only the output, not the work. */
  keepWorking(): void {
    this.#discards = true;
  }

  /** Writes to stdout; resolves when the reader has taken it, so that memory does not fill with what waits. */
  write(text: string): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => process.stdout.write(text, () => resolve()));
  }

  line(text = ""): Promise<void> {
    return this.write(`${text}\n`);
  }

  /** One JSON value on a line of its own. */
  record(value: unknown): Promise<void> {
    return this.line(jsonLine(value));
  }

  /** A remark for the person, on stderr; programs get none. */
  note(text: string): void {
    if (!this.json) process.stderr.write(`${text}\n`);
  }

  /** Colours text for stdout, where that shows colours (NO_COLOR, FORCE_COLOR and dumb terminals are heeded). */
  style(format: Format, text: string): string {
    return styleText(format, text, { stream: process.stdout });
  }

  /** As {@link Terminal.style}, for stderr. */
  noteStyle(format: Format, text: string): string {
    return styleText(format, text, { stream: process.stderr });
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (this.#ended) return;
    this.#ended = true;
    if (error.code !== "EPIPE") {
      process.stderr.write(`error: The output can't be written: ${error.message}.\n`);
      process.exit(EXIT.failure);
    }
    // As in `everthread show x | head -1`: the reader has what it wanted.
    if (!this.#discards) process.exit(EXIT.ok);
  }
}
