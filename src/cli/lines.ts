/** Lines of a stream of bytes, with their numbers. Only "\n" ends a line; a "\r" before it belongs to the end. */
import { messageOf } from "../errors.ts";

export type Line = { number: number } & ({ text: string; problem?: never } | { problem: string });

/** Blank lines are passed over, and a byte order mark is no part of a line. A line that is not UTF-8 has a problem instead. */
export async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let number = 0;
  let parts: Uint8Array[] = [];
  const finish = (): Line | undefined => {
    number++;
    const bytes = Buffer.concat(parts);
    parts = [];
    try {
      const text = decoder.decode(bytes).trim();
      return text === "" ? undefined : { number, text };
    } catch (error) {
      const tooLong = bytes.length > 0x1fff_ffff;
      return { number, problem: tooLong ? `is too long: ${messageOf(error)}` : "is not UTF-8 text" };
    }
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end));
      start = end + 1;
      const line = finish();
      if (line) yield line;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
  const last = parts.length > 0 ? finish() : undefined;
  if (last) yield last;
}
