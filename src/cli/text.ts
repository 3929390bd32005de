/** Text for terminals and shells: made harmless, shortened, quoted. */

// Escape sequences could move the cursor, rename the window or type into the shell; overrides of direction show text
// in another order than it has. New lines and tabs are harmless where several lines are.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Stored text as a terminal may show it: control characters and overrides of direction are made visible. */
export function harmless(text: string): string {
  return text.replaceAll("\r\n", "\n").toWellFormed().replace(UNSAFE, visible);
}

/** As {@link harmless}, for what must stay on one line. */
export function harmlessLine(text: string): string {
  return harmless(text).replace(/[\t\n]/g, visible);
}

function visible(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

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

/**
 * A value as one line of JSON that strict parsers take too: half a surrogate pair, which other programs may have stored,
 * becomes U+FFFD.
 */
export function jsonLine(value: unknown): string {
  const json = JSON.stringify(value);
  if (!json.includes("\\ud")) return json;
  // JSON.stringify escapes surrogates only where they are alone. An escaped backslash is passed over as a whole.
  return json.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (found) => (found.length === 6 ? "\ufffd" : found));
}
