/** Stored text made fit for others to read: harmless on a screen, strict as JSON, cut between characters. */

// Escape sequences could move the cursor, rename the window or type into the shell; overrides of direction show text
// in another order than it has. New lines and tabs are harmless where several lines are.
export const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

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

/** The first `length` UTF-16 units of a text, or one fewer where that would cut a character in half. */
export function firstUnits(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/**
 * A value as one line of JSON that strict parsers take too: half a surrogate pair, which other programs may have stored,
 * becomes U+FFFD.
 *
 * @param replacer as JSON.stringify takes it (Default: none)
 */
export function jsonLine(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  const json = JSON.stringify(value, replacer);
  if (!json.includes("\\ud")) return json;
  // JSON.stringify escapes surrogates only where they are alone. An escaped backslash is passed over as a whole.
  return json.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (found) => (found.length === 6 ? "\ufffd" : found));
}
