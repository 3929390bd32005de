/** Text by the columns that it takes on a terminal. */
import stringWidth from "string-width";

const segmenter = new Intl.Segmenter();

/** The text, or its beginning and "…" when it takes more columns. */
export function shorten(text: string, columns: number): string {
  // A character takes at most two columns, and what is far longer need not be measured.
  const start = text.length > columns * 40 ? text.slice(0, columns * 40) : text;
  if (start === text && stringWidth(text) <= columns) return text;
  let kept = "";
  let width = 1;
  for (const { segment } of segmenter.segment(start)) {
    width += stringWidth(segment);
    if (width > columns) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** The text with spaces after it, up to so many columns. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - stringWidth(text)));
}

export const widthOf = (text: string): number => stringWidth(text);
