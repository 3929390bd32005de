/** A bar on stderr while a long work goes on. Only on a terminal that can redraw a line; otherwise nothing is shown. */
import { shorten } from "./width.ts";

const CELLS = 20;
const REDRAW_MS = 100;
const CLEAR_LINE = "\r\u001b[K";

export class Progress {
  /** Whether anything is shown, so that what only this needs need not be counted. */
  readonly shown: boolean;
  #drawnAt = 0;

  /** @param json whether the output is for programs, which get none */
  constructor(json: boolean) {
    this.shown = !json && process.stderr.isTTY === true && process.env.TERM !== "dumb";
  }

  /** Shows how far it is. @param text what is done, such as "3/10 threads" */
  update(done: number, total: number, text: string): void {
    if (!this.shown || (Date.now() - this.#drawnAt < REDRAW_MS && done < total)) return;
    this.#drawnAt = Date.now();
    const filled = total === 0 ? CELLS : Math.min(CELLS, Math.floor((done / total) * CELLS));
    const bar = `[${"#".repeat(filled)}${" ".repeat(CELLS - filled)}] ${text}`;
    process.stderr.write(`${CLEAR_LINE}${shorten(bar, (process.stderr.columns || 80) - 1)}`);
  }

  /** Takes the bar away. */
  clear(): void {
    if (this.shown && this.#drawnAt > 0) process.stderr.write(CLEAR_LINE);
  }
}
