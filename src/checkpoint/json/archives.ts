/** The archives of the JSON engine: files in the memory directory, which a thread's marks refer to. There is no search. */

import { checkRunId, checkThreadId } from "../../util/ids.ts";
import { chooseToPrune } from "../archive-rules.ts";
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
import {
  ArchiveNotFoundError,
  ArchivePrunedError,
  CheckpointCorruptionError,
  ThreadNotFoundError,
  UnsupportedError,
} from "../errors.ts";
import { checkRevision } from "../page.ts";
import { admitCompaction } from "../part.ts";
import { checkFetch, checkKeep, checkSearch } from "../search.ts";
import { checkExpected, newArchive } from "../thread-changes.ts";
import { archivePage } from "../thread-listings.ts";
import { hasAnything } from "../thread-state.ts";
import type { Draft } from "./draft.ts";
import { Rows } from "./rows.ts";
import { BACKEND, type JsonArchive, type JsonThread, soundThread } from "./state.ts";
import type { JsonStore } from "./store.ts";
import { contextOfFork } from "./whole.ts";

export const NO_SEARCH = {
  reason: "It keeps archives in plain files, without an index. Keep the session in SQLite to search.",
};

export class JsonArchives implements ArchiveStore {
  readonly #store: JsonStore;

  constructor(store: JsonStore) {
    this.#store = store;
  }

  async compact(threadId: string, options: CompactOptions): Promise<ArchiveInfo> {
    this.#enter("archives.compact", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const admitted = admitCompaction(options);
    return await this.#store.write("archives.compact", (draft) => {
      const before = draft.get(threadId);
      checkExpected(threadId, before, expected);
      if (!before || !hasAnything(before)) throw new ThreadNotFoundError(threadId);
      const archive = newArchive(threadId, before, admitted);
      const thread = draft.edit(threadId);
      const messages = thread.messages.filter(({ position }) => position <= archive.upTo);
      const previousSummary = thread.archives.at(-1)?.summary ?? null;
      const mark = draft.addArchive(threadId, archive, { previousSummary, messages, rests: thread.rests });
      thread.archives.push(mark);
      thread.messages = thread.messages.slice(messages.length);
      return infoOf(mark);
    });
  }

  async list(threadId: string, page: PageOptions<string> = {}): Promise<Page<ArchiveInfo, string>> {
    this.#enter("archives.list", threadId);
    return await this.#store.read("archives.list", (state) => {
      const thread = soundThread(state, this.#store.place.path, threadId);
      const { items, next } = archivePage(thread?.archives ?? [], page);
      return { items: items.map(infoOf), next };
    });
  }

  async read(threadId: string, archiveId: string): Promise<Archive> {
    this.#enter("archives.read", threadId);
    return await this.#store.read("archives.read", async (state) => {
      const thread = soundThread(state, this.#store.place.path, threadId);
      const index = thread?.archives.findIndex((archive) => archive.archiveId === archiveId) ?? -1;
      const archive = thread?.archives[index];
      if (!thread || !archive) throw new ArchiveNotFoundError(threadId, archiveId);
      if (archive.prunedAt) throw new ArchivePrunedError(threadId, archiveId, archive.prunedAt);
      const content = await this.#store.place.readArchive(threadId, archive);
      const rows = new Rows(threadId, thread, this.#store.place);
      return {
        ...infoOf(archive),
        previousSummary: thread.archives[index - 1]?.summary ?? null,
        messages: content.messages.map(rows.entry),
        system: content.system,
        extra: JSON.parse(content.extra),
      };
    });
  }

  async contextAfter(threadId: string, options: { afterRunId: string }): Promise<ContextAfter> {
    this.#enter("archives.contextAfter", threadId);
    checkRunId(options.afterRunId);
    return await this.#store.read("archives.contextAfter", async (state) => {
      const { place } = this.#store;
      return await contextOfFork(threadId, soundThread(state, place.path, threadId), options.afterRunId, place);
    });
  }

  async prune(threadId: string, options: { keep: number }): Promise<PruneReport> {
    this.#enter("archives.prune", threadId);
    const keep = checkKeep(options.keep);
    return await this.#store.write("archives.prune", async (draft) => {
      const thread = draft.get(threadId);
      if (!thread) return { pruned: [], protected: [] };
      const needed = await neededArchives(draft, threadId, thread, keep);
      const choice = chooseToPrune(thread.archives, keep, (archive) => needed.has(archive.archiveId));
      if (choice.remove.length > 0) {
        const gone = { prunedAt: new Date(), messageCount: 0, firstAt: null, lastAt: null };
        const isGone = (archive: JsonArchive) => choice.remove.includes(archive);
        const { archives } = thread;
        draft.edit(threadId).archives = archives.map((one) => (isGone(one) ? { ...one, ...gone } : one));
        for (const { directory } of choice.remove) draft.removeArchive(directory);
      }
      return {
        pruned: choice.remove.map(({ archiveId }) => archiveId),
        protected: choice.protected.map(({ archiveId, reason }) => {
          return { archiveId, reason: needed.get(archiveId)?.message ?? reason };
        }),
      };
    });
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchResult> {
    this.#store.assertOpen("archives.search");
    checkSearch(text, options);
    throw new UnsupportedError(BACKEND, "archives.search", NO_SEARCH.reason);
  }

  async fetch(threadId: string, options: FetchOptions): Promise<SourcePage> {
    this.#enter("archives.fetch", threadId);
    checkFetch(options);
    throw new UnsupportedError(BACKEND, "archives.fetch", NO_SEARCH.reason);
  }

  #enter(operation: string, threadId: string): void {
    this.#store.assertOpen(operation);
    checkThreadId(threadId);
  }
}

/**
 * The archives that hold part of the run that waits on a person, of those that are older than the newest `keep`. One that can't
 * be read may hold some: it is among them, with its error.
 */
async function neededArchives(
  draft: Draft,
  threadId: string,
  thread: JsonThread,
  keep: number,
): Promise<Map<string, CheckpointCorruptionError | undefined>> {
  const needed = new Map<string, CheckpointCorruptionError | undefined>();
  const waiting = thread.pending?.runId ?? null;
  if (waiting === null || keep === 0) return needed;
  for (const archive of thread.archives.slice(0, -keep).filter(({ prunedAt }) => prunedAt === null)) {
    try {
      const { messages } = await draft.readArchive(threadId, archive);
      if (messages.some(({ runId }) => runId === waiting)) needed.set(archive.archiveId, undefined);
    } catch (error) {
      if (!(error instanceof CheckpointCorruptionError)) throw error;
      needed.set(archive.archiveId, error);
    }
  }
  return needed;
}

function infoOf({ archiveId, createdAt, upTo, atRevision, messageCount, summary, prunedAt }: JsonArchive): ArchiveInfo {
  const pruned = prunedAt && new Date(prunedAt);
  return { archiveId, createdAt: new Date(createdAt), upTo, atRevision, messageCount, summary, prunedAt: pruned };
}
