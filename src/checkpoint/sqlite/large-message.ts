/**
 * Reads a message of megabytes without holding the event loop: its bytes piece by piece, and of its JSON the long strings by
 * themselves, since JSON.parse can't be stopped half-way.
 */
import { randomUUID } from "node:crypto";
import type { SqliteStore } from "../../db/sqlite.ts";
import { checkStored } from "../../messages/admit.ts";
import { type JsonObject, type JsonValue, setOwn } from "../../messages/json.ts";
import type { Message } from "../../messages/schema.ts";
import * as Q from "./archive-queries.ts";

/** What is read at once, in bytes: SQLite goes through the whole row for each piece. */
const PIECE_BYTES = 2_000_000;
/** What is parsed at once of a string, and from which length on a string is parsed by itself, in UTF-16 units. */
const PIECE = 256 * 1024;
/** So many quotation marks are looked at between two looks at the clock. */
const STRIDE = 512;

/** Whose turn it is: `SearchTimer`. */
export interface Turns {
  readonly isSliceOver: boolean;
  breathe(): Promise<void>;
}

/**
 * The message of a row; undefined when it is gone.
 *
 * @throws SyntaxError, InvalidMessageError when it is damaged, and what `turns` throws
 */
export async function readLargeMessage(store: SqliteStore, id: number, turns: Turns): Promise<Message | undefined> {
  const decoder = new TextDecoder();
  let json = "";
  for (let start = 1; ; start += PIECE_BYTES) {
    const piece = await store.read(
      "archives.search",
      () => store.prepare(Q.LARGE_PIECE).get(start, PIECE_BYTES, id)?.piece,
    );
    if (!(piece instanceof Uint8Array)) return undefined;
    if (piece.length === 0) break;
    json += decoder.decode(piece, { stream: true });
    await turns.breathe();
  }
  const message = checkStored(await parseInTurns(json + decoder.decode(), turns));
  // What comes next puts the pieces of its text together, which takes a turn of its own.
  await turns.breathe();
  return message;
}

/** As JSON.parse. The event loop gets turns between the pieces of long strings; the rest of the text is parsed in one go. */
export async function parseInTurns(json: string, turns: Turns): Promise<JsonValue> {
  // No text holds this by chance.
  const mark = randomUUID();
  const long = new Map<string, string>();
  let short = "";
  let done = 0;
  for (let open = json.indexOf('"'); open >= 0; ) {
    let close = closingMark(json, open + 1);
    while (!close.isClosing) {
      if (turns.isSliceOver) await turns.breathe();
      close = closingMark(json, close.at + 1);
    }
    // A key stays where it is.
    if (close.at - open > PIECE && !/^\s*:/.test(json.slice(close.at + 1, close.at + 20))) {
      const standIn = `${mark} ${long.size}`;
      long.set(standIn, await parseString(json.slice(open + 1, close.at), turns));
      short += `${json.slice(done, open)}"${standIn}"`;
      done = close.at + 1;
    }
    if (turns.isSliceOver) await turns.breathe();
    open = json.indexOf('"', close.at + 1);
  }
  return withStrings(JSON.parse(short + json.slice(done)), long);
}

/** The mark that ends a string, or the last of many that don't, to go on from. */
function closingMark(json: string, from: number): { at: number; isClosing: boolean } {
  let at = from - 1;
  for (let i = 0; i < STRIDE; i++) {
    at = json.indexOf('"', at + 1);
    if (at < 0) throw new SyntaxError("Unterminated string in JSON.");
    if (backslashesBefore(json, at) % 2 === 0) return { at, isClosing: true };
  }
  return { at, isClosing: false };
}

/** The value of a string, of which the marks around it are left out. */
async function parseString(body: string, turns: Turns): Promise<string> {
  let value = "";
  for (let start = 0; start < body.length; ) {
    const end = start + PIECE < body.length ? cut(body, start + PIECE) : body.length;
    value += JSON.parse(`"${body.slice(start, end)}"`);
    start = end;
    if (turns.isSliceOver) await turns.breathe();
  }
  return value;
}

/** A place at `index` or before it that is in no escape sequence, such as \n or \u00e9. */
function cut(body: string, index: number): number {
  const last = body.lastIndexOf("\\", index - 1);
  if (last < index - 5 || backslashesBefore(body, last + 1) % 2 === 0) return index;
  const length = body[last + 1] === "u" ? 6 : 2;
  return last + length > index ? last : index;
}

function backslashesBefore(text: string, index: number): number {
  let at = index;
  while (text[at - 1] === "\\") at--;
  return index - at;
}

/** Puts the strings in place of what stands for them. */
function withStrings(root: JsonValue, strings: ReadonlyMap<string, string>): JsonValue {
  const put = (value: JsonValue) => (typeof value === "string" ? (strings.get(value) ?? value) : value);
  const left: JsonValue[] = [root];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value !== "object" || value === null) continue;
    for (const [key, item] of Object.entries(value)) {
      if (typeof item === "string" && strings.has(item)) setOwn(value as JsonObject, key, put(item));
      else left.push(item);
    }
  }
  return put(root);
}
