/** What every engine's search shares: the options, the query, the match, the preview, the page of a source, the time limit. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { InvalidArgumentError } from "../errors.ts";
import type { Message } from "../messages/schema.ts";
import { sourceText } from "../messages/source-text.ts";
import { foldCase, normalText, unfoldIndex } from "../util/fold.ts";
import { checkThreadId } from "../util/ids.ts";
import { checkLimit } from "../util/limit.ts";
import type { FetchOptions, SearchHit, SearchOptions, SourcePage } from "./archives.ts";
import { SearchTimeoutError } from "./errors.ts";

/** From this length on, in characters, case is ignored: what an index of trigrams can find. */
const FOLDED_FROM = 3;
/** A slice of work on the event loop, in ms: half of what a search may hold it for, since the last step may be long. */
const SLICE_MS = 8;
/** How much of a long text is compared at once, in UTF-16 units: about a ms of work. */
const PIECE = 128 * 1024;
/** The second half of a surrogate pair, or what may join with the character before it: a mark, or a Korean vowel or final. */
const JOINS = /^(?:[\udc00-\udfff]|\p{M}|[\u1160-\u11ff])/u;

/** What is looked for, in the form that texts are compared in. */
export interface Query {
  text: string;
  folded: boolean;
}

export interface CheckedSearch {
  query: Query;
  threadId: string | undefined;
  limit: number;
  previewBytes: number;
  timer: SearchTimer;
}

/** A message as a hit tells of it. */
export interface Source {
  threadId: string;
  archiveId: string;
  position: number;
  createdAt: Date;
  message: Message;
}

/** Checks what `search` is given and starts its clock. @throws InvalidArgumentError, InvalidIdError */
export function checkSearch(text: unknown, options: SearchOptions = {}): CheckedSearch {
  if (typeof text !== "string") {
    throw new InvalidArgumentError(`The text to search for must be a string, not ${typeof text}.`);
  }
  return {
    query: queryOf(text),
    threadId: options.threadId === undefined ? undefined : checkThreadId(options.threadId),
    limit: checkLimit(options.limit, "The search's limit", 20),
    previewBytes: checkWhole(options.previewBytes, "previewBytes", 16, 10_000, 300),
    timer: new SearchTimer(checkWhole(options.timeLimitMs, "timeLimitMs", 1, 600_000, 2000), options.signal),
  };
}

export interface CheckedFetch {
  archiveId: string;
  sourceId: string;
  /** NaN when `sourceId` is none that a search gives. */
  position: number;
  offset: number;
  limit: number;
}

/** Checks what `fetch` is given. @throws InvalidArgumentError */
export function checkFetch({ archiveId, sourceId, offset, limit }: FetchOptions): CheckedFetch {
  for (const [name, id] of Object.entries({ archiveId, sourceId })) {
    if (typeof id !== "string") throw new InvalidArgumentError(`${name} must be a string, as a hit gives it.`);
  }
  return {
    archiveId,
    sourceId,
    position: /^[1-9]\d{0,15}$/.test(sourceId) ? Number(sourceId) : Number.NaN,
    offset: checkWhole(offset, "offset", 0, Number.MAX_SAFE_INTEGER, 0),
    limit: checkWhole(limit, "limit", 16, 1_000_000, 4000),
  };
}

/** How many archives to keep, checked. @throws InvalidArgumentError */
export function checkKeep(keep: unknown): number {
  return checkLimit(keep ?? Number.NaN, "keep");
}

export function queryOf(text: string): Query {
  const normal = normalText(text);
  const folded = [...normal.slice(0, 2 * FOLDED_FROM)].length >= FOLDED_FROM;
  return { text: folded ? foldCase(normal) : normal, folded };
}

/** The text of a source as `query` is compared with it. */
export function comparable(text: string, query: Query): string {
  const normal = normalText(text);
  return query.folded ? foldCase(normal) : normal;
}

/**
 * The hit when the source says what is looked for; else undefined. A long text is looked through piece by piece, with turns of
 * the event loop between.
 *
 * @throws SearchTimeoutError, or the signal's reason
 */
export async function hitOf(
  source: Source,
  query: Query,
  previewBytes: number,
  timer: SearchTimer,
): Promise<SearchHit | undefined> {
  const preview = await previewOfMatch(sourceText(source.message), query, previewBytes, timer);
  if (preview === undefined) return undefined;
  return {
    thread_id: source.threadId,
    archive_id: source.archiveId,
    source_id: String(source.position),
    role: source.message.role,
    created_at: source.createdAt.toISOString(),
    preview,
  };
}

async function previewOfMatch(text: string, query: Query, maxBytes: number, timer: SearchTimer) {
  if (text.length <= PIECE) {
    const index = comparable(text, query).indexOf(query.text);
    return index < 0 ? undefined : previewOf(text, query, index, maxBytes, false, false);
  }
  // What of the pieces before may be the beginning of a match.
  let carried = "";
  for (let start = 0; start < text.length; ) {
    const end = pieceEnd(text, start + PIECE);
    const folded = carried + comparable(text.slice(start, end), query);
    if (folded.includes(query.text)) {
      // A match is no longer than the query, which is no longer than its text: so far back it has begun.
      const from = pieceEnd(text, start - PIECE - 3 * query.text.length);
      const to = pieceEnd(text, end + PIECE);
      const near = text.slice(from, to);
      const index = comparable(near, query).indexOf(query.text);
      return previewOf(near, query, index, maxBytes, from > 0, to < text.length);
    }
    carried = folded.slice(Math.max(0, folded.length - query.text.length + 1));
    start = end;
    if (timer.isSliceOver) await timer.breathe();
  }
  return undefined;
}

/** A place at `index` or before it where a text may be cut: what follows joins with nothing before it, in no normal form. */
function pieceEnd(text: string, index: number): number {
  if (index >= text.length) return text.length;
  let at = Math.max(0, index);
  while (at > 0 && JOINS.test(text.slice(at, at + 2))) at--;
  return at;
}

/**
 * The surroundings of a match, a third of them before it, with "…" where text was left out.
 *
 * @param before whether there is more text before this @param after whether there is more after it
 */
function previewOf(
  text: string,
  query: Query,
  index: number,
  maxBytes: number,
  before: boolean,
  after: boolean,
): string {
  const normal = normalText(text);
  const at = query.folded ? unfoldIndex(normal, index) : index;
  if (!before && !after && byteLength(normal) <= maxBytes) return normal;
  const ELLIPSIS_BYTES = 3;
  const room = maxBytes - 2 * ELLIPSIS_BYTES;
  const head = lastBytes(normal.slice(Math.max(0, at - room), at), Math.floor(room / 3));
  const tail = firstBytes(normal.slice(at, at + room), room - byteLength(head));
  const start = at - head.length;
  const cutBefore = before || start > 0;
  const cutAfter = after || start + head.length + tail.length < normal.length;
  return `${cutBefore ? "…" : ""}${head}${tail}${cutAfter ? "…" : ""}`;
}

/** One page of a source's text, between whole characters. */
export function pageOf(source: Source, { archiveId, sourceId, offset, limit }: CheckedFetch): SourcePage {
  const bytes = Buffer.from(sourceText(source.message));
  const start = boundary(bytes, Math.min(offset, bytes.length), 1);
  const end = boundary(bytes, Math.min(start + limit, bytes.length), -1);
  const has_more = end < bytes.length;
  return {
    archive_id: archiveId,
    source_id: sourceId,
    role: source.message.role,
    created_at: source.createdAt.toISOString(),
    text: bytes.toString("utf8", start, end),
    offset: start,
    next_offset: has_more ? end : null,
    has_more,
    total_bytes: bytes.length,
  };
}

/** The nearest place between two characters, going on by `step`. */
function boundary(bytes: Buffer, index: number, step: 1 | -1): number {
  let at = index;
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at += step;
  return at;
}

function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

// A slice of `room` units may be cut within a pair of surrogates, at its far end: that is beyond what is taken of it.
function firstBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  return bytes.toString("utf8", 0, boundary(bytes, Math.min(max, bytes.length), -1));
}

function lastBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  return bytes.toString("utf8", boundary(bytes, Math.max(0, bytes.length - max), 1));
}

/** Keeps a search within its time, and the event loop free meanwhile. */
export class SearchTimer {
  readonly #limitMs: number;
  readonly #deadline: number;
  readonly #signal: AbortSignal | undefined;
  #sliceEnd: number;

  constructor(limitMs: number, signal: AbortSignal | undefined) {
    this.#limitMs = limitMs;
    this.#deadline = performance.now() + limitMs;
    this.#sliceEnd = performance.now() + SLICE_MS;
    this.#signal = signal;
  }

  /** How long is left, in ms; never below 0. */
  get remainingMs(): number {
    return Math.max(0, this.#deadline - performance.now());
  }

  /** Whether the event loop is due its turn: then await {@link SearchTimer.breathe}. */
  get isSliceOver(): boolean {
    return performance.now() >= this.#sliceEnd;
  }

  /** Gives the event loop a turn. @throws SearchTimeoutError, or the signal's reason */
  async breathe(): Promise<void> {
    await nextTurn();
    this.check();
    this.#sliceEnd = performance.now() + SLICE_MS;
  }

  /** What the work gives, unless the search has to end before: then the work is left alone. @throws as {@link SearchTimer.check} */
  async race<T>(work: Promise<T>): Promise<T> {
    const ended = Promise.withResolvers<never>();
    const end = () => {
      try {
        this.check();
      } catch (reason) {
        ended.reject(reason);
      }
    };
    // Timers may fire a little early.
    const timeout = setTimeout(end, Math.ceil(this.remainingMs) + 1);
    this.#signal?.addEventListener("abort", end);
    try {
      end();
      return await Promise.race([work, ended.promise]);
    } catch (error) {
      this.check();
      throw error;
    } finally {
      clearTimeout(timeout);
      this.#signal?.removeEventListener("abort", end);
    }
  }

  /** @throws SearchTimeoutError, or the signal's reason */
  check(): void {
    this.#signal?.throwIfAborted();
    if (performance.now() > this.#deadline) throw new SearchTimeoutError(this.#limitMs);
  }
}

function checkWhole(value: unknown, name: string, min: number, max: number, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`${name} must be a whole number from ${min} to ${max}, not ${String(value)}.`);
}
