/** The archives of the in-memory engine: marks in a thread's log, and a scan for search. */
import { InvalidArgumentError } from "../../errors.ts";
import { messageFromJson } from "../../messages/codec.ts";
import { archiveIdOf, archiveNumberOf, chooseToPrune, keptByFork } from "../archive-rules.ts";
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
import type { Page, PageOptions } from "../checkpointer.ts";
import {
  ArchiveNotFoundError,
  ArchivePrunedError,
  CompactionConflictError,
  SourceNotFoundError,
  ThreadNotFoundError,
} from "../errors.ts";
import { checkLimit, checkRevision, checkText } from "../page.ts";
import { admitCompaction } from "../part.ts";
import { checkFetch, checkKeep, checkSearch, hitOf, pageOf } from "../search.ts";
import { hasAnything, logEntry, type StoredArchive, type StoredMessage, type Thread } from "./thread.ts";

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
    const { upTo, summary, system } = admitCompaction(options);
    const revision = this.#threads.checkRevision(threadId, expected);
    const thread = this.#threads.get(threadId);
    if (!thread || !hasAnything(thread)) throw new ThreadNotFoundError(threadId);
    const compactedUpTo = thread.archives.at(-1)?.upTo ?? 0;
    if (upTo <= compactedUpTo) throw new CompactionConflictError(threadId, upTo, compactedUpTo);
    if (!thread.messages.some(({ position }) => position === upTo)) {
      throw new InvalidArgumentError(`upTo must be the position of an active message; none stands at ${upTo}.`);
    }
    const archive: StoredArchive = {
      archiveId: archiveIdOf(thread.archives.length + 1),
      createdAt: new Date(),
      upTo,
      atRevision: revision,
      summary,
      system,
      extra: thread.extra ?? "{}",
      prunedAt: null,
    };
    thread.archives.push(archive);
    return infoOf(thread, archive);
  }

  async list(threadId: string, page: PageOptions<string> = {}): Promise<Page<ArchiveInfo, string>> {
    this.#threads.enter("archives.list", threadId);
    const after = checkText(page.after, "after");
    const limit = checkLimit(page.limit);
    const thread = this.#threads.get(threadId);
    const start = after === undefined ? 0 : archiveNumberOf(after);
    const rest = (thread?.archives ?? []).filter(({ archiveId }) => archiveNumberOf(archiveId) > start);
    const items = rest.slice(0, limit).map((archive) => infoOf(thread as Thread, archive));
    return { items, next: rest.length > limit ? (items.at(-1)?.archiveId ?? after ?? "a0") : null };
  }

  async read(threadId: string, archiveId: string): Promise<Archive> {
    this.#threads.enter("archives.read", threadId);
    const { thread, archive, index } = this.#find(threadId, archiveId);
    return {
      ...infoOf(thread, archive),
      previousSummary: thread.archives[index - 1]?.summary ?? null,
      messages: archived(thread, archive).map(logEntry),
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
      (archive) => waiting !== null && archived(thread, archive).some(({ runId }) => runId === waiting),
    );
    const gone = new Set(choice.remove.flatMap((archive) => archived(thread, archive)));
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
    for (const { stored, archiveId, id } of query.text === "" || limit === 0 ? [] : sources) {
      if (timer.isSliceOver) await timer.breathe();
      const { position, createdAt, json } = stored;
      const source = { threadId: id, archiveId, position, createdAt, message: messageFromJson(json) };
      const hit = hitOf(source, query, previewBytes);
      if (hit && hits.length === limit) return { hits, has_more: true };
      if (hit) hits.push(hit);
    }
    return { hits, has_more: false };
  }

  async fetch(threadId: string, options: FetchOptions): Promise<SourcePage> {
    this.#threads.enter("archives.fetch", threadId);
    const given = checkFetch(options);
    const { thread, archive } = this.#find(threadId, given.archiveId);
    const stored = archived(thread, archive).find(({ position }) => position === given.position);
    if (!stored) throw new SourceNotFoundError(threadId, given.archiveId, given.sourceId);
    const { position, createdAt, json } = stored;
    return pageOf({ threadId, archiveId: given.archiveId, position, createdAt, message: messageFromJson(json) }, given);
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

/** What a thread's load gives of its last compaction. @param archives those that count, oldest first */
export function activeContext(messages: readonly StoredMessage[], archives: readonly StoredArchive[]) {
  const last = archives.at(-1);
  const start = last?.upTo ?? 0;
  return { last, start, active: messages.filter(({ position }) => position > start) };
}

/** The archives of a fork, with the positions that its messages have there. @param positions old to new, in order */
export function forkedArchives(
  threadId: string,
  archives: readonly StoredArchive[],
  cut: number,
  positions: readonly [from: number, to: number][],
): StoredArchive[] {
  const moved = (position: number) => positions.findLast(([from]) => from <= position)?.[1] ?? 0;
  return keptByFork(threadId, archives, cut).map((archive) => ({
    ...archive,
    upTo: moved(archive.upTo),
    atRevision: moved(archive.atRevision),
  }));
}

function archived(thread: Thread, archive: StoredArchive): StoredMessage[] {
  const before = thread.archives[thread.archives.indexOf(archive) - 1]?.upTo ?? 0;
  return thread.messages.filter(({ position }) => position > before && position <= archive.upTo);
}

function infoOf(thread: Thread, archive: StoredArchive): ArchiveInfo {
  const { archiveId, createdAt, upTo, atRevision, summary, prunedAt } = archive;
  const messageCount = archived(thread, archive).length;
  return { archiveId, createdAt, upTo, atRevision, messageCount, summary, prunedAt };
}

function sourcesOf(id: string, thread: Thread, archive: StoredArchive) {
  return archived(thread, archive).map((stored) => ({ id, archiveId: archive.archiveId, stored }));
}
