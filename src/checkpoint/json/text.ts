/** A file's bytes as text. */

/** UTF-8, with or without a byte order mark. @throws Error that says what is wrong */
export function decodeText(bytes: Uint8Array): string {
  if (bytes.length === 0) throw new Error("It is empty.");
  if (bytes.every((byte) => byte === 0)) throw new Error("It holds nothing but zero bytes: a loss of power does that.");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_ENCODING_INVALID_ENCODED_DATA") {
      throw new Error("It is not UTF-8.", { cause });
    }
    throw new Error(`It is too large to read: it has ${bytes.length} bytes.`, { cause });
  }
}
