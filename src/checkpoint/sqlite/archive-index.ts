/**
 * The index of archived text: FTS5's trigrams of the folded text, without positions and without the text itself. So it is a
 * fraction of a plain trigram table, and gives candidates: each is compared with the message before it is a hit.
 *
 * A second column holds the thread's number as three characters of private use, which are one trigram: a search in one
 * thread does not walk through the hits of the others.
 */
import type { SqliteStore } from "../../db/sqlite.ts";
import { messageFromJson } from "../../messages/codec.ts";
import { sourceText } from "../../messages/source-text.ts";
import { foldCase, normalText } from "../../util/fold.ts";
import * as Q from "./archive-queries.ts";

/** The first of two planes of characters for private use, and how many of it are used. */
const PRIVATE = 0xf0000;
const DIGITS = 0xfffe;
/** So many trigrams of a query narrow the candidates down as far as more would. */
const MOST_TRIGRAMS = 16;

/** Puts a message into the index, within a write. One that says nothing, or can't be read, has no text to be found. */
export function indexText(store: SqliteStore, id: number, scope: number, json: string): void {
  const text = textOf(json);
  if (text !== "") store.prepare(Q.INDEX).run(id, scopeToken(scope), text);
}

/** What FTS5 is asked for a folded text of three characters or more. @param scope the thread's number (Default: any thread) */
export function matchOf(folded: string, scope: number | undefined): string {
  const characters = [...folded];
  const last = characters.length - 3;
  const starts = new Set<number>();
  // Every third: between two neighbours nothing is left out. The last one ends with the text.
  for (let at = 0; at < last && starts.size < MOST_TRIGRAMS - 1; at += 3) starts.add(at);
  starts.add(last);
  const trigrams = new Set([...starts].map((at) => characters.slice(at, at + 3).join("")));
  const words = [...(scope === undefined ? [] : [scopeToken(scope)]), ...trigrams];
  return words.map((word) => `"${word.replaceAll('"', '""')}"`).join(" AND ");
}

function textOf(json: string): string {
  try {
    return foldCase(normalText(sourceText(messageFromJson(json))));
  } catch {
    return "";
  }
}

function scopeToken(scope: number): string {
  const digits = [Math.floor(scope / DIGITS / DIGITS), Math.floor(scope / DIGITS) % DIGITS, scope % DIGITS];
  return String.fromCodePoint(...digits.map((digit) => PRIVATE + digit));
}
