/** Text for terminals and shells: streamed, counted, quoted. */
import { harmless, harmlessLine, UNSAFE } from "../util/text.ts";

/** Makes a text harmless that comes in pieces, where a piece may end between two characters that belong together. */
export class HarmlessStream {
  #held = "";

  push(piece: string): string {
    const text = this.#held + piece;
    // "\r" before "\n", and the first half of a surrogate pair.
    this.#held = /[\r\ud800-\udbff]$/.exec(text)?.[0] ?? "";
    return harmless(text.slice(0, text.length - this.#held.length));
  }

  /** What was held back, at the end. */
  end(): string {
    const text = harmless(this.#held);
    this.#held = "";
    return text;
  }
}

/** How long ago, in words; a date when it is long ago. */
export function ago(date: Date, now = new Date()): string {
  const seconds = Math.round((now.getTime() - date.getTime()) / 1000);
  if (seconds < 0 || seconds >= 30 * 86_400) return date.toISOString().slice(0, 10);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  return days === 1 ? "1 day ago" : `${days} days ago`;
}

/** A number of things, with the noun's plural: "1 message", "2 messages". */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** A word of a command as a shell reads it back, also when it holds control characters. */
export function shellQuote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (harmlessLine(word) === word) return `'${word.replaceAll("'", "'\\''")}'`;
  const escaped = word
    .replace(/[\\']/g, "\\$&")
    .replace(/[\t\n]/g, escapeForShell)
    .replace(UNSAFE, escapeForShell);
  return `$'${escaped}'`;
}

function escapeForShell(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
