/**
 * Text as search compares it: one normal form and one folding for the index, the scan and the query.
 *
 * - Both sides are NFC: "é" is found however it was typed. A lone surrogate and U+0000 count as U+FFFD.
 * - Folded text also forgets case, as Unicode's full case folding does: ß, ẞ and SS are alike, as are the ligature ﬁ and
 *   "fi", and ς, σ and Σ. The dotless ı counts as i. İ is an i with a mark, a dot above: "xyi" finds "xyİ",
 *   and "ist" does not find "İst", as with any letter and its mark.
 *
 * Accents count: "e" does not find "é".
 */

import { firstUnits } from "./text.ts";

/** Text that is in its normal form as it is, and whose folding is its lower case: most of what agents read and write. */
const ASCII = /^[\u0001-\u007f]*$/;

/** NFC, well-formed, without U+0000. */
export function normalText(text: string): string {
  if (ASCII.test(text)) return text;
  return text.toWellFormed().replaceAll("\0", "\ufffd").normalize("NFC");
}

/** Folds text that {@link normalText} gave. Code points fold one by one: the folded whole is its folded parts, joined. */
export function foldCase(normal: string): string {
  if (ASCII.test(normal)) return normal.toLowerCase();
  // Lower first, since ẞ has no other upper case; then ß becomes SS and ﬁ FI. Lowering Σ depends on its place in a word.
  return normal.toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ");
}

/** The index in `normal` of what stands at `index` in its folded text. */
export function unfoldIndex(normal: string, index: number): number {
  // No character becomes shorter: where a beginning stays as long as it is, so does each character of it.
  const head = firstUnits(normal, index);
  if (head.length === index && foldCase(head).length === index) return index;
  let at = 0;
  let left = index;
  // In long strides as far as they go, since a text may have millions of characters; then by the character.
  for (const stride of [4096, 1]) {
    for (;;) {
      const part = wholeCharacters(normal, at, stride);
      const { length } = foldCase(part);
      if (part === "" || length > left) break;
      at += part.length;
      left -= length;
    }
  }
  return at;
}

/** So many units of a text from `start` on, and one more where that would be half a character. */
function wholeCharacters(text: string, start: number, units: number): string {
  const end = start + units;
  const last = text.charCodeAt(end - 1);
  return text.slice(start, last >= 0xd800 && last <= 0xdbff ? end + 1 : end);
}
