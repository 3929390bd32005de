/** The archives of the Postgres engine: marks in a thread's log, in tables of Everthread's own. */
import type { Row } from "../../db/postgres.ts";
import { escapeText } from "../../db/postgres-text.ts";
import { InvalidArgumentError } from "../../errors.ts";
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
import { checkLimit, checkRevision, type Page, type PageOptions } from "../page.ts";
import { admitCompaction } from "../part.ts";
import { checkFetch, checkKeep, checkSearch, pageOf } from "../search.ts";
import { addToIndex } from "./archive-index.ts";
import * as A from "./archive-queries.ts";
import { checkNothingLost, dateOf, infoOf, positionOf, readArchiveExtra, textOrNull } from "./archive-rows.ts";
import { searchArchives } from "./archive-search.ts";
import type { Query, Tables } from "./archive-tables.ts";
import { messagePage } from "./listings.ts";
import { CUT } from "./queries.ts";
import { readMessage, toDate } from "./rows.ts";
import { checkCut, checkExpected } from "./verdicts.ts";

export class PostgresArchives implements ArchiveStore {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async compact(threadId: string, options: CompactOptions): Promise<ArchiveInfo> {
    this.#enter("archives.compact", threadId);
    const expected = checkRevision(options.expectedRevision, "expectedRevision");
    const { upTo, summary, system } = admitCompaction(options);
    const values = [threadId, expected ?? null, upTo, escapeText(summary), system === null ? null : escapeText(system)];
    const results = await this.#tables.write(
      "archives.compact",
      [threadId],
      [...strays(threadId, this.#tables.indexed), [A.COMPACT, values]],
    );
    const row = results.at(-1)?.[0] ?? {};
    const revision = positionOf(row.base, row.last);
    if (typeof row.archive_no !== "string") {
      checkExpected(threadId, expected, revision);
      if (typeof row.base !== "string") throw new ThreadNotFoundError(threadId);
      const compactedUpTo = positionOf(row.base, row.compacted);
      if (upTo <= compactedUpTo) throw new CompactionConflictError(threadId, upTo, compactedUpTo);
      throw new InvalidArgumentError(`upTo must be the position of an active message; none stands at ${upTo}.`);
    }
    await addToIndex(this.#tables, threadId);
    return {
      archiveId: archiveIdOf(Number(row.archive_no)),
      createdAt: toDate(row.created_at),
      upTo,
      atRevision: revision,
      messageCount: Number(row.messages),
      summary,
      prunedAt: null,
    };
  }

  async list(threadId: string, page: PageOptions<string> = {}): Promise<Page<ArchiveInfo, string>> {
    this.#enter("archives.list", threadId);
    const after = checkArchiveCursor(page.after);
    const limit = checkLimit(page.limit);
    const [rows = []] = await this.#tables.read("archives.list", [[A.LIST, [threadId, after, limit + 1]]]);
    const items = rows.slice(0, limit).map(infoOf);
    return { items, next: rows.length > limit ? (items.at(-1)?.archiveId ?? archiveIdOf(after)) : null };
  }

  async read(threadId: string, archiveId: string): Promise<Archive> {
    this.#enter("archives.read", threadId);
    const values = [threadId, numberOf(archiveId)];
    const [[row] = [], rows = []] = await this.#tables.read("archives.read", [
      [A.READ, values],
      [A.READ_MESSAGES, values],
    ]);
    checkThere(threadId, archiveId, row);
    return {
      ...infoOf(row),
      previousSummary: textOrNull(row.previous_summary),
      messages: messagePage(rows, { after: 0, limit: rows.length }, threadId, this.#tables.prefix).items,
      system: textOrNull(row.system_prompt),
      extra: readArchiveExtra(this.#tables.archivePrefix, threadId, row),
    };
  }

  async contextAfter(threadId: string, options: { afterRunId: string }): Promise<ContextAfter> {
    this.#enter("archives.contextAfter", threadId);
    return await contextAfter(this.#tables, "archives.contextAfter", threadId, checkRunId(options.afterRunId));
  }

  async prune(threadId: string, options: { keep: number }): Promise<PruneReport> {
    this.#enter("archives.prune", threadId);
    const keep = checkKeep(options.keep);
    for (;;) {
      const [rows = []] = await this.#tables.read("archives.prune", [[A.RETENTION, [threadId]]]);
      const archives = rows.map((row) => ({
        archiveId: archiveIdOf(Number(row.archive_no)),
        prunedAt: dateOf(row.pruned_at),
        number: Number(row.archive_no),
        holds: row.holds === "t",
      }));
      const choice = chooseToPrune(archives, keep, ({ holds }) => holds);
      if (choice.remove.length === 0) return { pruned: [], protected: choice.protected };
      const { base = null, waiting = null } = rows[0] ?? {};
      const numbers = JSON.stringify(choice.remove.map(({ number }) => number));
      const values = [threadId, base, waiting, numbers];
      const sources: Query[] = this.#tables.indexed ? [[A.PRUNE_SOURCES, values]] : [];
      const results = await this.#tables.write("archives.prune", [threadId], [...sources, [A.PRUNE, values]]);
      const done = results.at(-1)?.[0];
      // Else the thread waits on another run by now, or was begun anew: then the choice is made again.
      if (done?.same === "t") {
        const pruned = JSON.parse(done.pruned ?? "[]") as number[];
        return { pruned: pruned.map(archiveIdOf), protected: choice.protected };
      }
    }
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchResult> {
    this.#tables.assertOpen("archives.search");
    return await searchArchives(this.#tables, checkSearch(text, options));
  }

  async fetch(threadId: string, options: FetchOptions): Promise<SourcePage> {
    this.#enter("archives.fetch", threadId);
    const given = checkFetch(options);
    const position = Number.isNaN(given.position) ? 0 : given.position;
    const values = [threadId, numberOf(given.archiveId), position];
    const [[row] = []] = await this.#tables.read("archives.fetch", [[A.FETCH, values]]);
    checkThere(threadId, given.archiveId, row);
    if (typeof row.seq !== "string") throw new SourceNotFoundError(threadId, given.archiveId, given.sourceId);
    const message = readMessage(this.#tables.prefix, threadId, row);
    const createdAt = toDate(row.created_at);
    return pageOf({ threadId, archiveId: given.archiveId, position, createdAt, message }, given);
  }

  #enter(operation: string, threadId: string): void {
    this.#tables.assertOpen(operation);
    checkThreadId(threadId);
  }
}

/** What a fork at the end of a run would load. */
export async function contextAfter(
  tables: Tables,
  operation: string,
  threadId: string,
  runId: string,
): Promise<ContextAfter> {
  const values = [threadId, runId];
  const [cuts, kept, rows = []] = await tables.read(operation, [
    [CUT, values],
    [A.KEPT, values],
    [A.SNAPSHOT, values],
  ]);
  checkCut(threadId, runId, cuts?.[0]);
  checkNothingLost(threadId, kept?.[0]);
  const summary = textOrNull(kept?.[0]?.summary);
  const messages = rows.map((row) => readMessage(tables.prefix, threadId, row));
  return { messages, ...(summary !== null && { summary }) };
}

/** What comes before a write of a thread's archives. */
export function strays(threadId: string, indexed: boolean): Query[] {
  const sources: Query[] = indexed ? [[A.DELETE_STRAY_SOURCES, [threadId]]] : [];
  return [[A.DELETE_STRAYS, [threadId]], ...sources];
}

/** No thread has an archive of the number 0. */
function numberOf(archiveId: string): number {
  const number = archiveNumberOf(archiveId);
  return Number.isNaN(number) ? 0 : number;
}

function checkThere(threadId: string, archiveId: string, row: Row | undefined): asserts row is Row {
  if (!row) throw new ArchiveNotFoundError(threadId, archiveId);
  const prunedAt = dateOf(row.pruned_at);
  if (prunedAt) throw new ArchivePrunedError(threadId, archiveId, prunedAt);
}
