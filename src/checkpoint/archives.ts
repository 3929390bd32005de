/**
 * The contract of archives. A *compaction* replaces the older part of a thread's active context by a summary; an
 * *archive* is what it set aside, kept whole until `prune` removes it. A *source* is one archived message, as search finds
 * it and `fetch` shows it.
 *
 * Archived messages stay where they are in the log: a compaction moves none, so each message is active or archived at
 * every moment, and `listMessages` shows both. They leave `load`. Only `prune` and `deleteThread` remove them.
 */
import type { JsonObject } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import type { LogEntry } from "./log-entry.ts";
import type { Page, PageOptions } from "./page.ts";

export interface CompactOptions {
  /** The position of the last message to set aside: one of the active context. */
  upTo: number;
  /** What stands for all that was set aside, this time and before. */
  summary: string;
  /** Compact only if the thread stands there. (Default: wherever it stands) */
  expectedRevision?: number | undefined;
  /** The system prompt in force, kept with the archive. (Default: null) */
  system?: string | null | undefined;
}

export interface ArchiveInfo {
  /** Unique within the thread and never given twice: "a1", "a2", … in the order of the compactions. */
  archiveId: string;
  createdAt: Date;
  /** The position of the last message in it. The messages after the archive before it, up to this one, are in it. */
  upTo: number;
  /** Where the thread stood when it was made: the messages after it up to here were kept active. */
  atRevision: number;
  /** How many messages are in it; 0 once it was pruned. */
  messageCount: number;
  /** The summary that took the place of this archive and of those before it. */
  summary: string;
  /** When retention removed its messages; null while they are there. The summary stays. */
  prunedAt: Date | null;
}

/** An archive read back whole: with the summary that stood before its messages, this was the context. */
export interface Archive extends ArchiveInfo {
  previousSummary: string | null;
  messages: LogEntry[];
  /** The system prompt that was in force. */
  system: string | null;
  /** The thread's extra at the moment of the compaction. */
  extra: JsonObject;
}

/** What a fork would load; see {@link ArchiveStore.contextAfter}. */
export interface ContextAfter {
  messages: Message[];
  summary?: string;
}

export interface PruneReport {
  /** The archives whose messages were removed. */
  pruned: string[];
  /** Those that are older than the newest `keep` and were kept all the same, and why. */
  protected: { archiveId: string; reason: string }[];
}

export interface SearchOptions {
  /** Only in this thread. (Default: in every thread of the store) */
  threadId?: string | undefined;
  /** How many hits at most, 0 to 10,000. (Default: 20) */
  limit?: number | undefined;
  /** How long a preview may be, in bytes of UTF-8, 16 to 10,000. (Default: 300) */
  previewBytes?: number | undefined;
  /** How long the search may take, in ms, 1 to 600,000. (Default: 2000) */
  timeLimitMs?: number | undefined;
  /** Stops the search; it then rejects with the signal's reason. (Default: none) */
  signal?: AbortSignal | undefined;
}

/** A hit as a model reads it. */
export interface SearchHit {
  thread_id: string;
  archive_id: string;
  /** Hand this and `archive_id` to `fetch`. */
  source_id: string;
  role: Message["role"];
  /** When the message was stored, in ISO 8601. */
  created_at: string;
  /** The surroundings of the first match. */
  preview: string;
}

export interface SearchResult {
  /** Newest first: in a thread by position, across threads by the time they were stored. */
  hits: SearchHit[];
  /** Whether there are more hits than `limit`. */
  has_more: boolean;
}

export interface FetchOptions {
  archiveId: string;
  sourceId: string;
  /** Where to begin, in bytes of the source's UTF-8; within a character it moves on to the next. (Default: 0) */
  offset?: number | undefined;
  /** How many bytes at most, 16 to 1,000,000. (Default: 4000) */
  limit?: number | undefined;
}

/** One page of a source. It begins and ends between characters. */
export interface SourcePage {
  archive_id: string;
  source_id: string;
  role: Message["role"];
  created_at: string;
  text: string;
  offset: number;
  /** Where the next page begins; null after the last. */
  next_offset: number | null;
  has_more: boolean;
  total_bytes: number;
}

export interface ArchiveStore {
  /**
   * Sets aside the active messages up to `upTo` and puts the summary in their place. One transaction: when it fails the
   * thread is as it was.
   *
   * @throws ThreadConflictError when the thread stands elsewhere than `expectedRevision`
   * @throws CompactionConflictError when `upTo` was set aside before, by another compaction or by this one, tried again
   * @throws ThreadNotFoundError, InvalidArgumentError when no message stands at `upTo`
   */
  compact(threadId: string, options: CompactOptions): Promise<ArchiveInfo>;

  /** The archives of a thread, oldest first, pruned ones included; the cursor is an archive id. */
  list(threadId: string, page?: PageOptions<string>): Promise<Page<ArchiveInfo, string>>;

  /** An archive whole. @throws ArchiveNotFoundError, ArchivePrunedError */
  read(threadId: string, archiveId: string): Promise<Archive>;

  /**
   * What a fork at the end of this run would load: `snapshot()` gives the same messages, without the summary. The fork keeps
   * the archives that end before the run does; of a later one, the messages that the fork takes are active again.
   *
   * @throws ThreadNotFoundError, RunNotCompletedError, CheckpointCorruptionError
   * @throws ArchivePrunedError when retention has removed messages that it would need
   */
  contextAfter(threadId: string, options: { afterRunId: string }): Promise<ContextAfter>;

  /**
   * Removes the messages of all but the newest `keep` archives. An archive that holds part of the run that waits on a person
   * is kept too, and reported. 0 removes nothing.
   *
   * @throws InvalidArgumentError when `keep` is not a whole number from 0 to 10,000
   */
  prune(threadId: string, options: { keep: number }): Promise<PruneReport>;

  /**
   * Looks for text in what is archived. It is literal: any text is safe, and none is a query language. From three characters
   * on case is ignored (see `util/fold.ts`); a shorter text must match in case. Nothing is found by an empty one, and nothing
   * in a row that is damaged: reading the archive tells of that.
   *
   * @throws SearchTimeoutError when it takes longer than `timeLimitMs`
   * @throws UnsupportedError where `capabilities.search` is not true
   */
  search(text: string, options?: SearchOptions): Promise<SearchResult>;

  /**
   * One page of a source.
   *
   * @throws ArchiveNotFoundError, SourceNotFoundError, ArchivePrunedError when retention has removed it
   * @throws CheckpointCorruptionError when its row is damaged
   * @throws UnsupportedError where `capabilities.search` is not true
   */
  fetch(threadId: string, options: FetchOptions): Promise<SourcePage>;
}
