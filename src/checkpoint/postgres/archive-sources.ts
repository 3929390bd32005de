/** Archived messages, read a few at a time: of how many rows and how many bytes that is. */
import type { Row } from "../../db/postgres.ts";
import { archiveIdOf } from "../archive-rules.ts";
import { CheckpointCorruptionError } from "../errors.ts";
import type { Source } from "../search.ts";
import { SOURCES, THREADS } from "./archive-search-queries.ts";
import type { Query } from "./archive-tables.ts";
import { readMessage, toDate } from "./rows.ts";

export interface Key {
  threadId: string;
  seq: number;
  bytes: number;
}

const MAX_BYTES = 4_000_000;

export function keyOf(row: Row): Key {
  return { threadId: String(row.thread_id), seq: Number(row.seq), bytes: Number(row.bytes) };
}

/** Keys in slices whose messages are read at once. @param rows how many at most */
export function* slices(keys: readonly Key[], rows: number): Generator<Key[]> {
  let slice: Key[] = [];
  let bytes = 0;
  for (const key of keys) {
    if (slice.length > 0 && (slice.length === rows || bytes + key.bytes > MAX_BYTES)) {
      yield slice;
      slice = [];
      bytes = 0;
    }
    slice.push(key);
    bytes += key.bytes;
  }
  if (slice.length > 0) yield slice;
}

/** Reads archived messages, and remembers which threads' archives count. */
export class SourceReader {
  readonly #prefix: string;
  readonly #read: (queries: readonly Query[]) => Promise<Row[][]>;
  /** What positions have above seq in each thread that was met; null where the archives don't count. */
  readonly #bases = new Map<string, number | null>();

  constructor(prefix: string, read: (queries: readonly Query[]) => Promise<Row[][]>) {
    this.#prefix = prefix;
    this.#read = read;
  }

  /** The rows of these keys that are there, in their order. */
  async rows(keys: readonly Key[]): Promise<Row[]> {
    const unmet = [...new Set(keys.map(({ threadId }) => threadId))].filter((id) => !this.#bases.has(id));
    const list = JSON.stringify(keys.map(({ threadId, seq }, n) => ({ n, thread_id: threadId, seq })));
    const met: Query[] = unmet.length === 0 ? [] : [[THREADS, [JSON.stringify(unmet)]]];
    const results = await this.#read([...met, [SOURCES, [list]]]);
    if (unmet.length > 0) {
      for (const id of unmet) this.#bases.set(id, null);
      for (const row of results[0] ?? []) this.#bases.set(String(row.thread_id), Number(row.base));
    }
    return results.at(-1) ?? [];
  }

  /** Undefined for a damaged one: it says nothing that could be found, and `read` names it. */
  sourceOf(row: Row): Source | undefined {
    const threadId = String(row.thread_id);
    const base = this.#bases.get(threadId) ?? null;
    if (base === null) return undefined;
    const about = {
      threadId,
      archiveId: archiveIdOf(Number(row.archive_no)),
      position: base + Number(row.seq),
      createdAt: toDate(row.created_at),
    };
    try {
      return { ...about, message: readMessage(this.#prefix, threadId, row) };
    } catch (error) {
      if (error instanceof CheckpointCorruptionError) return undefined;
      throw error;
    }
  }
}
