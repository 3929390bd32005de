/** The archives of the MySQL engine: marks in a thread's log, in tables of Everthread's own. */
import type { MySqlStore, Session } from "../../db/mysql.ts";
import { InvalidArgumentError } from "../../errors.ts";
import { copyJsonObject } from "../../messages/json.ts";
import { checkRunId, checkThreadId } from "../../util/ids.ts";
import { archiveIdOf, archiveNumberOf, checkArchiveCursor, chooseToPrune } from "../archive-rules.ts";
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
import {
  ArchiveNotFoundError,
  ArchivePrunedError,
  CompactionConflictError,
  SourceNotFoundError,
  ThreadNotFoundError,
} from "../errors.ts";
import { logEntry } from "../log-entry.ts";
import { checkLimit, checkRevision, type Page, type PageOptions } from "../page.ts";
import { admitCompaction } from "../part.ts";
import { checkFetch, checkKeep, checkSearch, pageOf } from "../search.ts";
import { readRow } from "../server-rows.ts";
import { checkSize } from "./append.ts";
import { type ArchiveTables, forkCut, type Mark, type Marks, marksOf, positionOf } from "./archive-marks.ts";
import { archivePrefix } from "./archive-queries.ts";
import { searchArchives } from "./archive-search.ts";
import { fromColumn } from "./columns.ts";
import { BACKEND, messageRef, readMessage, toDate } from "./rows.ts";
import { checkExpected, cutOf, isUsed, lockThread } from "./threads.ts";

export class MySQLArchives implements ArchiveStore {
  readonly #store: MySqlStore;
  readonly #tables: ArchiveTables;

  constructor(store: MySqlStore, tables: ArchiveTables) {
    this.#store = store;
    this.#tables = tables;
  }

  async compact(threadId: string, options: CompactOptions): Promise<ArchiveInfo> {
    this.#enter("archives.compact", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const { upTo, summary, system } = admitCompaction(options);
    checkSize("The summary with the system prompt", `${summary}${system ?? ""}`, this.#store.maxPacket);
    const { queries, archives } = this.#tables;
    return await this.#store.write("archives.compact", async (session) => {
      const found = await lockThread(session, queries, threadId);
      const { base, last, marks, strays } = await marksOf(session, this.#tables, threadId);
      const revision = positionOf(base, last);
      checkExpected(threadId, expected, revision);
      if (!found || !(await isUsed(session, queries, threadId))) throw new ThreadNotFoundError(threadId);
      const before = marks.at(-1)?.upTo ?? 0;
      const seq = upTo - base;
      if (upTo <= positionOf(base, before)) {
        throw new CompactionConflictError(threadId, upTo, positionOf(base, before));
      }
      if ((await session.rows(archives.STORED_AT, [threadId, seq])).length === 0) {
        throw new InvalidArgumentError(`upTo must be the position of an active message; none stands at ${upTo}.`);
      }
      if (strays) await session.run(archives.DELETE, [threadId]);
      const number = marks.length + 1;
      await session.run(archives.COMPACT, [threadId, number, seq, threadId, seq, last, summary, system, threadId]);
      const made = (await marksOf(session, this.#tables, threadId)).marks.at(-1) as Mark;
      return await this.#infoOf(session, threadId, base, made, summary);
    });
  }

  async list(threadId: string, page: PageOptions<string> = {}): Promise<Page<ArchiveInfo, string>> {
    this.#enter("archives.list", threadId);
    const after = checkArchiveCursor(page.after);
    const limit = checkLimit(page.limit);
    return await this.#store.snapshot("archives.list", async (session) => {
      const { base, marks } = await marksOf(session, this.#tables, threadId);
      const rest = marks.filter(({ number }) => number > after);
      const summaries = await session.rows(this.#tables.archives.SUMMARIES, [threadId, after, limit]);
      const items: ArchiveInfo[] = [];
      for (const [i, mark] of rest.slice(0, limit).entries()) {
        items.push(await this.#infoOf(session, threadId, base, mark, String(summaries[i]?.summary)));
      }
      return { items, next: rest.length > limit ? (items.at(-1)?.archiveId ?? archiveIdOf(after)) : null };
    });
  }

  async read(threadId: string, archiveId: string): Promise<Archive> {
    this.#enter("archives.read", threadId);
    const { archives, prefix } = this.#tables;
    return await this.#store.snapshot("archives.read", async (session) => {
      const found = await marksOf(session, this.#tables, threadId);
      const mark = findMark(found, threadId, archiveId);
      const [row] = await session.rows(archives.READ, [threadId, mark.number]);
      const [previous] = await session.rows(archives.READ, [threadId, mark.number - 1]);
      const rows = await session.rows(archives.MESSAGES, [threadId, mark.after, mark.upTo]);
      const rowRef = `${archivePrefix(prefix)}archives(thread_id=${JSON.stringify(threadId)}, archive_no=${mark.number}).extra`;
      return {
        ...(await this.#infoOf(session, threadId, found.base, mark, String(row?.summary))),
        previousSummary: previous ? String(previous.summary) : null,
        messages: rows.map((message) => {
          const position = found.base + Number(message.seq);
          const about = {
            position,
            rowRef: messageRef(prefix, threadId, message.seq),
            createdAt: toDate(message.created_at),
          };
          return logEntry(about, () => readMessage(prefix, threadId, message));
        }),
        system: (row?.system_prompt as string | null | undefined) ?? null,
        extra: readRow({ threadId, backend: BACKEND, rowRef }, () => copyJsonObject(fromColumn(row?.json), "extra")),
      };
    });
  }

  async contextAfter(threadId: string, options: { afterRunId: string }): Promise<ContextAfter> {
    this.#enter("archives.contextAfter", threadId);
    return await this.contextOf("archives.contextAfter", threadId, checkRunId(options.afterRunId));
  }

  /** The same, for another method of the store. @param operation its name, for errors */
  async contextOf(operation: string, threadId: string, afterRunId: string): Promise<ContextAfter> {
    const { queries, archives, prefix } = this.#tables;
    return await this.#store.snapshot(operation, async (session) => {
      if (!(await isUsed(session, queries, threadId))) throw new ThreadNotFoundError(threadId);
      const cut = await cutOf(session, queries, threadId, afterRunId);
      const last = (await forkCut(session, this.#tables, { source: threadId, cut })).kept.at(-1);
      const rows = await session.rows(archives.TAKEN_AFTER, [threadId, threadId, cut, last?.upTo ?? 0]);
      const messages = rows.map((row) => readMessage(prefix, threadId, row));
      if (!last) return { messages };
      const [row] = await session.rows(archives.READ, [threadId, last.number]);
      return { messages, summary: String(row?.summary) };
    });
  }

  async prune(threadId: string, options: { keep: number }): Promise<PruneReport> {
    this.#enter("archives.prune", threadId);
    const keep = checkKeep(options.keep);
    const { queries, archives } = this.#tables;
    return await this.#store.write("archives.prune", async (session) => {
      if (!(await lockThread(session, queries, threadId))) return { pruned: [], protected: [] };
      const { marks } = await marksOf(session, this.#tables, threadId);
      const [pending] = await session.rows(queries.PENDING, [threadId]);
      const waiting = (pending?.run_id as string | null | undefined) ?? null;
      const holding = new Set<Mark>();
      for (const mark of waiting === null ? [] : marks) {
        const held = await session.rows(archives.HOLDS, [threadId, waiting, waiting, mark.after, mark.upTo]);
        if (held.length > 0) holding.add(mark);
      }
      const choice = chooseToPrune(marks, keep, (mark) => holding.has(mark));
      for (const { number, after, upTo } of choice.remove) {
        await session.run(archives.PRUNE_MESSAGES, [threadId, after, upTo]);
        await session.run(archives.PRUNE, [threadId, number]);
      }
      return { pruned: choice.remove.map(({ archiveId }) => archiveId), protected: choice.protected };
    });
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchResult> {
    this.#store.assertOpen("archives.search");
    return await searchArchives(this.#store, this.#tables, checkSearch(text, options));
  }

  async fetch(threadId: string, options: FetchOptions): Promise<SourcePage> {
    this.#enter("archives.fetch", threadId);
    const given = checkFetch(options);
    const { archiveId, sourceId, position } = given;
    const { archives, prefix } = this.#tables;
    return await this.#store.snapshot("archives.fetch", async (session) => {
      const found = await marksOf(session, this.#tables, threadId);
      const mark = findMark(found, threadId, archiveId);
      const seq = position - found.base;
      const inside = seq > mark.after && seq <= mark.upTo;
      const [row] = inside ? await session.rows(archives.MESSAGES, [threadId, seq - 1, seq]) : [];
      if (!row) throw new SourceNotFoundError(threadId, archiveId, sourceId);
      const message = readMessage(prefix, threadId, row);
      return pageOf({ threadId, archiveId, position, createdAt: toDate(row.created_at), message }, given);
    });
  }

  async #infoOf(session: Session, threadId: string, base: number, mark: Mark, summary: string): Promise<ArchiveInfo> {
    const [row] = await session.rows(this.#tables.archives.COUNT, [threadId, mark.after, mark.upTo]);
    return {
      archiveId: mark.archiveId,
      createdAt: mark.createdAt,
      upTo: positionOf(base, mark.upTo),
      atRevision: positionOf(base, mark.at),
      messageCount: Number(row?.count),
      summary,
      prunedAt: mark.prunedAt,
    };
  }

  #enter(operation: string, threadId: string): void {
    this.#store.assertOpen(operation);
    checkThreadId(threadId);
  }
}

/** @throws ArchiveNotFoundError, ArchivePrunedError */
function findMark({ marks }: Marks, threadId: string, archiveId: string): Mark {
  const number = archiveNumberOf(archiveId);
  const mark = marks.find((one) => one.number === number);
  if (!mark) throw new ArchiveNotFoundError(threadId, archiveId);
  if (mark.prunedAt) throw new ArchivePrunedError(threadId, archiveId, mark.prunedAt);
  return mark;
}
