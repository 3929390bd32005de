/**
 * Any text as Postgres takes it, which refuses U+0000 in text and jsonb. A text that holds one is stored with a mark before
 * it, its backslashes doubled and each U+0000 written as `\0`. Any other text is stored as it is, for others to read; only
 * one that begins with the mark itself is marked once more, so that every text comes back exactly.
 */

export const MARK = "everthread-nul:";

/** A text as it is stored. */
export function escapeText(text: string): string {
  if (!text.includes("\0") && !text.startsWith(MARK)) return text;
  return MARK + text.replaceAll("\\", "\\\\").replaceAll("\0", "\\0");
}

/** A stored text as it was. */
export function unescapeText(stored: string): string {
  if (!stored.startsWith(MARK)) return stored;
  const text = stored.slice(MARK.length).replace(/\\(0|\\)/g, (_, char) => (char === "0" ? "\0" : "\\"));
  // Another program's text may begin with the mark by chance; what escapeText would not have written is left alone.
  return escapeText(text) === stored ? text : stored;
}
