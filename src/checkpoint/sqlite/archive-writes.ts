/** What changes archives: compaction, retention, forks, imports. Each runs inside a write; what takes long goes in steps. */
import type { SqliteStore, Steps } from "../../db/sqlite.ts";
import { InvalidArgumentError } from "../../errors.ts";
import { archiveNumberOf, checkArchiveCounts, chooseToPrune, keptByFork } from "../archive-rules.ts";
import type { ArchiveInfo, PruneReport } from "../archives.ts";
import type { ArchivePart } from "../checkpointer.ts";
import { CompactionConflictError } from "../errors.ts";
import type { admitCompaction } from "../part.ts";
import { beginRemoval, endRemoval, type PartOfThread, unindex } from "./archive-index.ts";
import * as Q from "./archive-queries.ts";
import { type ArchiveRow, archiveRow, archivesOf, before, infoOf } from "./archive-rows.ts";
import { archiveTablesNow, indexBetween, keepsIndex, makeArchiveTables } from "./archive-tables.ts";
import { EXTRA, HAS_POSITION, PENDING, REVISION } from "./queries.ts";
import { toJulianDay } from "./rows.ts";

/** @param revision where the thread stands */
export function* compact(
  store: SqliteStore,
  threadId: string,
  { upTo, summary, system }: ReturnType<typeof admitCompaction>,
  revision: number,
): Steps<ArchiveInfo> {
  const indexed = yield* makeArchiveTables(store);
  const row = store.prepare(Q.LAST).get(threadId);
  const last = row && archiveRow(threadId, row);
  const start = last?.upTo ?? 0;
  if (last && upTo <= start) throw new CompactionConflictError(threadId, upTo, start);
  if (!store.prepare(HAS_POSITION).get(upTo, threadId)) {
    throw new InvalidArgumentError(`upTo must be the position of an active message; none stands at ${upTo}.`);
  }
  const archive = {
    number: (last?.number ?? 0) + 1,
    scope: last?.scope ?? nextScope(store),
    upTo,
    atRevision: revision,
    summary,
    system,
    extraJson: String(store.prepare(EXTRA).get(threadId)?.extra_json ?? "{}"),
    createdAt: new Date(),
    prunedAt: null,
  };
  insertArchive(store, threadId, archive);
  if (indexed) yield* indexBetween(store, threadId, archive.scope, start, upTo);
  const written = store.prepare(Q.LAST).get(threadId);
  return infoOf(store, threadId, archiveRow(threadId, written ?? {}));
}

export function* prune(store: SqliteStore, threadId: string, keep: number): Steps<PruneReport> {
  if (!archiveTablesNow(store).archives) return { pruned: [], protected: [] };
  const waiting = store.prepare(PENDING).get(threadId)?.run_id ?? null;
  const start = ({ number }: ArchiveRow) => before(store, threadId, number).upTo;
  const choice = chooseToPrune(archivesOf(store, threadId), keep, (archive) => {
    if (waiting === null) return false;
    const range = [threadId, start(archive), archive.upTo] as const;
    return store.prepare(Q.RUN_IS_BETWEEN).get(...range, waiting)?.found === 1;
  });
  const indexed = choice.remove.length > 0 && keepsIndex(store);
  if (indexed) beginRemoval(store);
  let removed = 0;
  for (const archive of choice.remove) {
    // Marked first: where these are the thread's last messages, its archives stay.
    store.prepare(Q.MARK_PRUNED).run(toJulianDay(new Date()), threadId, archive.number);
    for (const part of partsOf(store, threadId, start(archive), archive.upTo)) {
      if (indexed) unindex(store, part);
      store.prepare(Q.DELETE_BETWEEN).run(threadId, part.start, part.upTo);
      removed++;
      yield;
    }
  }
  if (indexed) yield* endRemoval(store, removed);
  keepThread(store, threadId);
  return { pruned: choice.remove.map(({ archiveId }) => archiveId), protected: choice.protected };
}

/** The archives that a fork keeps, oldest first. @param cut the completion number up to which it takes runs */
export function forkedArchives(store: SqliteStore, source: string, cut: number): ArchiveRow[] {
  if (!archiveTablesNow(store).archives) return [];
  const archives = archivesOf(store, source);
  if (archives.length === 0) return [];
  return keptByFork(source, archives, Number(store.prepare(Q.CUT_POSITION).get({ source, cut })?.position ?? 0));
}

/** Copies archives to a fork, once it has its messages. */
export function* forkArchives(
  store: SqliteStore,
  source: string,
  target: string,
  cut: number,
  archives: readonly ArchiveRow[],
): Steps<void> {
  if (archives.length === 0) return;
  const scope = nextScope(store);
  const moved = (position: number) => {
    const count = Number(store.prepare(Q.TAKEN_UP_TO).get({ source, cut, position })?.count);
    return nthPosition(store, target, count);
  };
  for (const archive of archives) {
    const { system_json, extra_json } = store.prepare(Q.ONE).get(source, archive.number) ?? {};
    insertArchive(store, target, {
      ...archive,
      scope,
      upTo: moved(archive.upTo),
      atRevision: moved(archive.atRevision),
      system: JSON.parse(String(system_json)),
      extraJson: String(extra_json),
    });
    yield;
  }
  if (keepsIndex(store)) {
    yield* indexBetween(store, target, scope, 0, moved(archives.at(-1)?.upTo ?? 0));
  }
}

/** Puts archives of another store in place of the thread's, once it has its messages. */
export function* putArchives(store: SqliteStore, threadId: string, archives: readonly ArchivePart[]): Steps<void> {
  checkArchiveCounts(archives, Number(store.prepare(Q.COUNT).get(threadId)?.count));
  yield* deleteArchives(store, threadId);
  if (archives.length === 0) return;
  const indexed = yield* makeArchiveTables(store);
  const scope = nextScope(store);
  let count = 0;
  for (const archive of archives) {
    const { archiveId, createdAt, messageCount, kept = 0, summary, system, extra, prunedAt } = archive;
    count += messageCount;
    insertArchive(store, threadId, {
      number: archiveNumberOf(archiveId),
      scope,
      upTo: nthPosition(store, threadId, count),
      atRevision: nthPosition(store, threadId, count + kept),
      summary,
      system,
      extraJson: JSON.stringify(extra),
      createdAt,
      prunedAt,
    });
    yield;
  }
  keepThread(store, threadId);
  if (indexed) yield* indexBetween(store, threadId, scope, 0, nthPosition(store, threadId, count));
}

/** A thread that has archives and no message is still one: it is listed, and has its summary. */
function keepThread(store: SqliteStore, threadId: string): void {
  store.prepare(Q.KEEP_THREAD).run({ thread: threadId });
}

/** Removes a thread's archives and what is in the index of them; the messages stay. */
export function* deleteArchives(store: SqliteStore, threadId: string): Steps<void> {
  const last = archiveTablesNow(store).archives ? store.prepare(Q.LAST).get(threadId) : undefined;
  if (!last) return;
  if (keepsIndex(store)) {
    beginRemoval(store);
    let removed = 0;
    for (const part of partsOf(store, threadId, 0, Number(last.up_to))) {
      unindex(store, part);
      removed++;
      yield;
    }
    yield* endRemoval(store, removed);
  }
  store.prepare(Q.DELETE_ALL).run(threadId);
}

/** A thread's messages after `first` and up to `last`, part by part. */
function* partsOf(store: SqliteStore, threadId: string, first: number, last: number): Generator<PartOfThread> {
  for (let start = first; ; ) {
    const upTo = store.prepare(Q.END_OF_PART).get(threadId, start, last)?.id;
    if (typeof upTo !== "number") return;
    yield { threadId, start, upTo };
    start = upTo;
  }
}

interface NewArchive
  extends Pick<ArchiveRow, "number" | "scope" | "upTo" | "atRevision" | "summary" | "createdAt" | "prunedAt"> {
  system: string | null;
  extraJson: string;
}

function insertArchive(store: SqliteStore, threadId: string, archive: NewArchive): void {
  const { number, upTo, atRevision, summary, system, extraJson, createdAt, prunedAt, scope } = archive;
  const texts = [JSON.stringify(summary), JSON.stringify(system), extraJson] as const;
  const times = [toJulianDay(createdAt), prunedAt && toJulianDay(prunedAt)] as const;
  store.prepare(Q.INSERT).run(threadId, number, upTo, atRevision, ...texts, ...times, scope);
}

function nextScope(store: SqliteStore): number {
  return Number(store.prepare(Q.NEXT_SCOPE).get()?.scope);
}

/** The position of a thread's nth message, from 1, or of its last; 0 for none. */
function nthPosition(store: SqliteStore, threadId: string, n: number): number {
  if (n === 0) return 0;
  const row = store.prepare(Q.NTH_MESSAGE).get(threadId, n - 1) ?? store.prepare(REVISION).get(threadId);
  return Number(row?.id ?? row?.revision ?? 0);
}
