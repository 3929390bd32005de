/**
 * The index of archived text: FTS5's trigrams of the folded text, without positions and without the text itself. So it is a
 * fraction of a plain trigram table, and gives candidates: each is compared with the message before it is a hit.
 *
 * A program that knows no index deletes messages only. What the index has of them is no hit, since no message ever has their ids
 * again, and costs a search one look where it is a candidate. It stays: to be rid of it, drop the table, and the next opening
 * makes it anew.
 *
 * Its rowid is the message's id with a minus before it: FTS5 goes forward through its lists several times as fast as backward,
 * and the newest is wanted first. Within a transaction the newest is to be written first as well.
 *
 * FTS5 can't be stopped within a step, and from a bound on rowids it does not begin there: it looks for the first match from
 * the beginning of its lists, however far that is. So each message also has a token of its block of ids, and one of its
 * thread within the block; with one of the two in the question, a step looks at one block at most. A token is three
 * characters of private use, which are one trigram. Where a text holds such characters too, it is one candidate more.
 */
import type { SqliteStore, Steps } from "../../db/sqlite.ts";
import { messageFromJson } from "../../messages/codec.ts";
import { sourceText } from "../../messages/source-text.ts";
import { foldCase, normalText } from "../../util/fold.ts";
import { firstUnits } from "../../util/text.ts";
import * as Q from "./archive-queries.ts";

/** So many ids are one block: FTS5 takes about 26 ns for each that two common trigrams do not share. */
const BLOCK = 131_072;
/** The first of a plane of characters for private use, and how many of it are used. */
const PRIVATE = 0xf0000;
const DIGITS = 0xfffe;
/** Every thread's scope is greater. */
const ANY_THREAD = 0;
/** So many trigrams of a query narrow the candidates down about as far as more would. */
const MOST_TRIGRAMS = 16;
/** Of so many neighbours, one is enough to begin with: one wrong letter makes as many wrong. Each costs a look into each segment. */
const STRIDE = 3;
/** So often for each part that was removed: 2 pages a message, of which there are some eight on a page. */
const REWRITES_FOR_PART = 6;

/** Puts a message into the index, within a write. One that says nothing, or can't be read, has no text to be found. */
export function indexText(store: SqliteStore, id: number, scope: number, json: string): void {
  const text = textOf(json);
  if (text !== "") store.prepare(Q.INDEX).run(-id, token(scope, id), token(ANY_THREAD, id), text);
}

/**
 * Takes messages out of the index, within a write, from `beginRemoval` to the end of `endRemoval`. Left to itself, FTS5 rewrites
 * a list whenever a tenth of it is removed: again and again, for seconds at once. Here it only marks what is removed.
 */
export function unindex(store: SqliteStore, { threadId, start, upTo }: PartOfThread): void {
  store.prepare(Q.UNINDEX).run(threadId, start, upTo);
}

/** What goes between two turns of the event loop: a thread's messages after `start` and up to `upTo`, few enough. */
export interface PartOfThread {
  threadId: string;
  start: number;
  upTo: number;
}

export function beginRemoval(store: SqliteStore): void {
  store.prepare(Q.REWRITE_NEVER).run();
}

/** Rewrites what FTS5 would have rewritten, in steps. @param parts how many were removed: the more, the more is due */
export function* endRemoval(store: SqliteStore, parts: number): Steps<void> {
  store.prepare(Q.REWRITE_AGAIN).run();
  for (let due = parts * REWRITES_FOR_PART; due > 0 && rewriteSome(store); due--) yield;
}

/** Whether there was anything to rewrite. */
function rewriteSome(store: SqliteStore): boolean {
  const changes = () => Number(store.prepare(Q.TOTAL_CHANGES).get()?.changes);
  const before = changes();
  store.prepare(Q.REWRITE_SOME).run();
  // One is the statement itself.
  return changes() - before > 1;
}

/** The first id of the block that an id is in. */
export function blockStart(id: number): number {
  return id - (id % BLOCK);
}

/**
 * What FTS5 is asked for the messages of one block that may say a folded text of three characters or more.
 *
 * @param id one of the block's @param scope the thread's number (Default: any thread)
 * @param exactly with all of the text's trigrams, as far as that is worth it (Default: with some)
 */
export function matchOf(folded: string, id: number, scope: number = ANY_THREAD, exactly = false): string {
  const words = [token(scope, id), ...someTrigrams(folded, exactly)];
  return words.map((word) => `"${word.replaceAll('"', '""')}"`).join(" AND ");
}

/** From all over a text, its first and its last among them. */
function someTrigrams(folded: string, exactly: boolean): Set<string> {
  // The beginning of a very long text is as good as the whole, and need not be taken apart.
  const characters = [...firstUnits(folded, 10_000)];
  const last = characters.length - 3;
  const steps = Math.min(exactly ? last : Math.ceil(last / STRIDE), MOST_TRIGRAMS - 1);
  const starts = Array.from({ length: steps + 1 }, (_, i) => Math.round((i * last) / Math.max(1, steps)));
  return new Set(starts.map((start) => characters.slice(start, start + 3).join("")));
}

function textOf(json: string): string {
  try {
    return foldCase(normalText(sourceText(messageFromJson(json))));
  } catch {
    return "";
  }
}

/** Blocks that are billions of ids apart may have the same token. */
function token(scope: number, id: number): string {
  const digits = [Math.floor(scope / DIGITS), scope % DIGITS, Math.floor(id / BLOCK) % DIGITS];
  return String.fromCodePoint(...digits.map((digit) => PRIVATE + (digit % DIGITS)));
}
