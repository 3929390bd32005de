/** The archives of the in-memory engine: marks in a thread's log, and a scan for search. */
import { messageFromJson } from "../../messages/codec.ts";
import type { Message } from "../../messages/schema.ts";
import { chooseToPrune } from "../archive-rules.ts";
import type {
  Archive,
  ArchiveInfo,
  ArchiveStore,
  CompactOptions,
  ContextAfter,
  FetchOptions,
  PruneReport,
  SearchHit,
  SearchOptions,
  SearchResult,
  SourcePage,
} from "../archives.ts";
import type { LogEntry, Page, PageOptions } from "../checkpointer.ts";
import { ArchiveNotFoundError, ArchivePrunedError, SourceNotFoundError, ThreadNotFoundError } from "../errors.ts";
import { checkRevision } from "../page.ts";
import { admitCompaction } from "../part.ts";
import { checkFetch, checkKeep, checkSearch, hitOf, pageOf } from "../search.ts";
import { newArchive } from "../thread-changes.ts";
import { archivePage } from "../thread-listings.ts";
import { archivedIn, hasAnything, type StoredArchive, type StoredMessage, type Thread } from "../thread-state.ts";

/** What the archives need of the checkpointer that they belong to. */
export interface Threads {
  /** Refuses a closed store, and what is no id. */
  enter(operation: string, threadId?: string): void;
  checkRevision(threadId: string, expected: number | undefined): number;
  get(threadId: string): Thread | undefined;
  all(): Iterable<[string, Thread]>;
  contextAfter(threadId: string, afterRunId: string): ContextAfter;
}

export class MemoryArchives implements ArchiveStore {
  readonly #threads: Threads;

  constructor(threads: Threads) {
    this.#threads = threads;
  }

  async compact(threadId: string, options: CompactOptions): Promise<ArchiveInfo> {
    this.#threads.enter("archives.compact", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitCompaction(options);
    this.#threads.checkRevision(threadId, expected);
    const thread = this.#threads.get(threadId);
    if (!thread || !hasAnything(thread)) throw new ThreadNotFoundError(threadId);
    const archive = newArchive(threadId, thread, admitted);
    thread.archives.push(archive);
    return infoOf(thread, archive);
  }

  async list(threadId: string, page: PageOptions<string> = {}): Promise<Page<ArchiveInfo, string>> {
    this.#threads.enter("archives.list", threadId);
    const thread = this.#threads.get(threadId);
    const { items, next } = archivePage(thread?.archives ?? [], page);
    return { items: items.map((archive) => infoOf(thread as Thread, archive)), next };
  }

  async read(threadId: string, archiveId: string): Promise<Archive> {
    this.#threads.enter("archives.read", threadId);
    const { thread, archive, index } = this.#find(threadId, archiveId);
    return {
      ...infoOf(thread, archive),
      previousSummary: thread.archives[index - 1]?.summary ?? null,
      messages: archivedIn(thread, archive).map(entryOf),
      system: archive.system,
      extra: JSON.parse(archive.extra),
    };
  }

  async contextAfter(threadId: string, options: { afterRunId: string }): Promise<ContextAfter> {
    this.#threads.enter("archives.contextAfter", threadId);
    return this.#threads.contextAfter(threadId, options.afterRunId);
  }

  async prune(threadId: string, options: { keep: number }): Promise<PruneReport> {
    this.#threads.enter("archives.prune", threadId);
    const keep = checkKeep(options.keep);
    const thread = this.#threads.get(threadId);
    if (!thread) return { pruned: [], protected: [] };
    const waiting = thread.pending?.runId ?? null;
    const choice = chooseToPrune(
      thread.archives,
      keep,
      (archive) => waiting !== null && archivedIn(thread, archive).some(({ runId }) => runId === waiting),
    );
    const gone = new Set(choice.remove.flatMap((archive) => archivedIn(thread, archive)));
    thread.messages = thread.messages.filter((message) => !gone.has(message));
    for (const archive of choice.remove) {
      Object.assign(archive, { prunedAt: new Date(), system: null, extra: "{}" });
    }
    return { pruned: choice.remove.map(({ archiveId }) => archiveId), protected: choice.protected };
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchResult> {
    this.#threads.enter("archives.search");
    const { query, threadId, limit, previewBytes, timer } = checkSearch(text, options);
    const hits: SearchHit[] = [];
    const sources = [...this.#threads.all()]
      .filter(([id]) => threadId === undefined || id === threadId)
      .flatMap(([id, thread]) => thread.archives.flatMap((archive) => sourcesOf(id, thread, archive)))
      .sort((a, b) => b.stored.position - a.stored.position);
    timer.check();
    for (const { stored, archiveId, id } of query.text === "" ? [] : sources) {
      if (timer.isSliceOver) await timer.breathe();
      const { position, createdAt } = stored;
      const source = { threadId: id, archiveId, position, createdAt, message: readMessage(stored) };
      const hit = await hitOf(source, query, previewBytes, timer);
      if (hit && hits.length === limit) return { hits, has_more: true };
      if (hit) hits.push(hit);
    }
    return { hits, has_more: false };
  }

  async fetch(threadId: string, options: FetchOptions): Promise<SourcePage> {
    this.#threads.enter("archives.fetch", threadId);
    const given = checkFetch(options);
    const { thread, archive } = this.#find(threadId, given.archiveId);
    const stored = archivedIn(thread, archive).find(({ position }) => position === given.position);
    if (!stored) throw new SourceNotFoundError(threadId, given.archiveId, given.sourceId);
    const { position, createdAt } = stored;
    return pageOf({ threadId, archiveId: given.archiveId, position, createdAt, message: readMessage(stored) }, given);
  }

  #find(threadId: string, archiveId: string): { thread: Thread; archive: StoredArchive; index: number } {
    const thread = this.#threads.get(threadId);
    const index = thread?.archives.findIndex((archive) => archive.archiveId === archiveId) ?? -1;
    const archive = thread?.archives[index];
    if (!thread || !archive) throw new ArchiveNotFoundError(threadId, archiveId);
    if (archive.prunedAt) throw new ArchivePrunedError(threadId, archiveId, archive.prunedAt);
    return { thread, archive, index };
  }
}

export function readMessage({ json }: StoredMessage): Message {
  return messageFromJson(json);
}

export function entryOf(stored: StoredMessage): LogEntry {
  const { position, createdAt } = stored;
  const rowRef = `messages[${position}]`;
  return { position, rowRef, createdAt: new Date(createdAt), message: readMessage(stored) };
}

function infoOf(thread: Thread, archive: StoredArchive): ArchiveInfo {
  const { archiveId, createdAt, upTo, atRevision, summary, prunedAt } = archive;
  const messageCount = archivedIn(thread, archive).length;
  return {
    archiveId,
    createdAt: new Date(createdAt),
    upTo,
    atRevision,
    messageCount,
    summary,
    prunedAt: prunedAt && new Date(prunedAt),
  };
}

function sourcesOf(id: string, thread: Thread, archive: StoredArchive) {
  return archivedIn(thread, archive).map((stored) => ({ id, archiveId: archive.archiveId, stored }));
}
