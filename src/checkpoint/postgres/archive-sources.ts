/** Archived messages, read a few at a time: of how many rows and how many bytes that is. */
import type { Row } from "../../db/postgres.ts";
import { archiveIdOf } from "../archive-rules.ts";
import { CheckpointCorruptionError } from "../errors.ts";
import type { Source } from "../search.ts";
import { SOURCES } from "./archive-search-queries.ts";
import type { Query } from "./archives.ts";
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

export function sourcesQuery(keys: readonly Key[]): Query {
  return [SOURCES, [JSON.stringify(keys.map(({ threadId, seq }, n) => ({ n, thread_id: threadId, seq })))]];
}

/** A row of {@link sourcesQuery}. Undefined for a damaged one: it says nothing that could be found, and `read` names it. */
export function sourceOf(prefix: string, row: Row): Source | undefined {
  const threadId = String(row.thread_id);
  const archiveId = archiveIdOf(Number(row.archive_no));
  const createdAt = toDate(row.created_at);
  try {
    return {
      threadId,
      archiveId,
      position: Number(row.position),
      createdAt,
      message: readMessage(prefix, threadId, row),
    };
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return undefined;
    throw error;
  }
}
