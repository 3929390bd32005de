/** Pages of what is in memory. */
import { compareCodePoints } from "../util/ids.ts";
import { archiveIdOf, archiveNumberOf, checkArchiveCursor } from "./archive-rules.ts";
import type { ArchiveInfo } from "./archives.ts";
import type { RunInfo } from "./checkpointer.ts";
import type { Page, PageOptions } from "./page.ts";
import { checkLimit, checkText } from "./page.ts";

/** A page of what has an id, in code point order. @param idOf the id of an item @throws InvalidArgumentError */
export function pageById<T>(items: Iterable<T>, page: PageOptions<string>, idOf: (item: T) => string): Page<T, string> {
  const after = checkText(page.after, "after") ?? "";
  const limit = checkLimit(page.limit);
  const rest = [...items]
    .filter((item) => compareCodePoints(idOf(item), after) > 0)
    .sort((a, b) => compareCodePoints(idOf(a), idOf(b)));
  const shown = rest.slice(0, limit);
  const last = shown.at(-1);
  return { items: shown, next: rest.length > limit ? (last ? idOf(last) : after) : null };
}

/** A copy that a caller may change. */
export function runInfo({ runId, claimedAt, completedAt, completionSeq }: RunInfo): RunInfo {
  const completed = completedAt && new Date(completedAt);
  return { runId, claimedAt: new Date(claimedAt), completedAt: completed, completionSeq };
}

/** A page of archives. @param archives oldest first @throws InvalidArgumentError */
export function archivePage<A extends Pick<ArchiveInfo, "archiveId">>(
  archives: readonly A[],
  page: PageOptions<string>,
): Page<A, string> {
  const start = checkArchiveCursor(page.after);
  const limit = checkLimit(page.limit);
  const rest = archives.filter(({ archiveId }) => archiveNumberOf(archiveId) > start);
  const items = rest.slice(0, limit);
  return { items, next: rest.length > limit ? (items.at(-1)?.archiveId ?? archiveIdOf(start)) : null };
}
