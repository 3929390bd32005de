/** The archives of the SQLite engine: marks in a thread's log, and an index of the archived text. */
import type { SqliteStore } from "../../db/sqlite.ts";
import { checkRunId, checkThreadId } from "../../util/ids.ts";
import { archiveIdOf, archiveNumberOf, checkArchiveCursor } from "../archive-rules.ts";
import type {
  Archive,
  ArchiveInfo,
  ArchiveStore,
  CompactOptions,
  ContextAfter,
  FetchOptions,
  PruneReport,
  SearchOptions,
  SearchResult,
  SourcePage,
} from "../archives.ts";
import type { Page, PageOptions } from "../checkpointer.ts";
import { ArchiveNotFoundError, ArchivePrunedError, SourceNotFoundError } from "../errors.ts";
import { logEntry } from "../log-entry.ts";
import { checkLimit, checkRevision } from "../page.ts";
import { admitCompaction } from "../part.ts";
import { checkFetch, checkKeep, checkSearch, pageOf } from "../search.ts";
import * as Q from "./archive-queries.ts";
import { type ArchiveRow, archiveRow, before, infoOf, readText } from "./archive-rows.ts";
import { search } from "./archive-search.ts";
import { archiveTables } from "./archive-tables.ts";
import { compact, prune } from "./archive-writes.ts";
import { readExtra, readMessage, toDate } from "./rows.ts";

/** What the archives need of the checkpointer that they belong to. */
export interface Threads {
  /** Where a thread stands, within a write. @throws ThreadConflictError, ThreadNotFoundError */
  standing(threadId: string, expected: number | undefined): number;
  /** Within a read. */
  contextAfter(threadId: string, afterRunId: string): ContextAfter;
}

export class SqliteArchives implements ArchiveStore {
  readonly #store: SqliteStore;
  readonly #threads: Threads;

  constructor(store: SqliteStore, threads: Threads) {
    this.#store = store;
    this.#threads = threads;
  }

  async compact(threadId: string, options: CompactOptions): Promise<ArchiveInfo> {
    this.#enter("archives.compact", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitCompaction(options);
    const [store, threads] = [this.#store, this.#threads];
    return await store.writeInSteps("archives.compact", () =>
      compact(store, threadId, admitted, threads.standing(threadId, expected)),
    );
  }

  async list(threadId: string, page: PageOptions<string> = {}): Promise<Page<ArchiveInfo, string>> {
    this.#enter("archives.list", threadId);
    const start = checkArchiveCursor(page.after);
    const limit = checkLimit(page.limit);
    return await this.#store.read("archives.list", () => {
      if (!archiveTables(this.#store).archives) return { items: [], next: null };
      const rows = this.#store.prepare(Q.AFTER).all(threadId, start, limit + 1);
      const items = rows.slice(0, limit).map((row) => infoOf(this.#store, threadId, archiveRow(threadId, row)));
      return { items, next: rows.length > limit ? (items.at(-1)?.archiveId ?? archiveIdOf(start)) : null };
    });
  }

  async read(threadId: string, archiveId: string): Promise<Archive> {
    this.#enter("archives.read", threadId);
    return await this.#store.read("archives.read", () => {
      const { archive, start, previousSummary, row } = this.#find(threadId, archiveId);
      const rows = this.#store.prepare(Q.LOG_BETWEEN).all(threadId, start, archive.upTo);
      const messages = rows.map(({ id, message_json, created_at }) => {
        const position = Number(id);
        const about = { position, rowRef: `messages.id=${position}`, createdAt: toDate(created_at) };
        return logEntry(about, () => readMessage(threadId, position, message_json));
      });
      return {
        ...infoOf(this.#store, threadId, archive),
        previousSummary,
        messages,
        system: readText(threadId, archive.number, row.system_json),
        extra: readExtra(threadId, row.extra_json),
      };
    });
  }

  async contextAfter(threadId: string, options: { afterRunId: string }): Promise<ContextAfter> {
    this.#enter("archives.contextAfter", threadId);
    checkRunId(options.afterRunId);
    return await this.#store.read("archives.contextAfter", () =>
      this.#threads.contextAfter(threadId, options.afterRunId),
    );
  }

  async prune(threadId: string, options: { keep: number }): Promise<PruneReport> {
    this.#enter("archives.prune", threadId);
    const keep = checkKeep(options.keep);
    return await this.#store.writeInSteps("archives.prune", () => prune(this.#store, threadId, keep));
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchResult> {
    this.#store.assertOpen("archives.search");
    return await search(this.#store, checkSearch(text, options));
  }

  async fetch(threadId: string, options: FetchOptions): Promise<SourcePage> {
    this.#enter("archives.fetch", threadId);
    const given = checkFetch(options);
    const { archiveId, sourceId, position } = given;
    return await this.#store.read("archives.fetch", () => {
      const { archive, start } = this.#find(threadId, archiveId);
      const range = [start, archive.upTo] as const;
      const row = Number.isNaN(position)
        ? undefined
        : this.#store.prepare(Q.MESSAGE_BETWEEN).get(threadId, position, ...range);
      if (!row) throw new SourceNotFoundError(threadId, archiveId, sourceId);
      const message = readMessage(threadId, position, row.message_json);
      return pageOf({ threadId, archiveId, position, createdAt: toDate(row.created_at), message }, given);
    });
  }

  #enter(operation: string, threadId: string): void {
    this.#store.assertOpen(operation);
    checkThreadId(threadId);
  }

  /** @throws ArchiveNotFoundError, ArchivePrunedError */
  #find(threadId: string, archiveId: string) {
    const number = archiveNumberOf(archiveId);
    const there = archiveTables(this.#store).archives && !Number.isNaN(number);
    const row = there ? this.#store.prepare(Q.ONE).get(threadId, number) : undefined;
    if (!row) throw new ArchiveNotFoundError(threadId, archiveId);
    const archive: ArchiveRow = archiveRow(threadId, row);
    if (archive.prunedAt) throw new ArchivePrunedError(threadId, archiveId, archive.prunedAt);
    const { upTo: start, summary: previousSummary } = before(this.#store, threadId, number);
    return { archive, start, previousSummary, row };
  }
}
