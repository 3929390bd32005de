/** What people and tools list of a store: the log, archived messages included, and threads. */
import type { LogEntry, Page, ThreadInfo } from "../checkpointer.ts";
import type { CheckedPage } from "../page.ts";
import { copyDate, hasAnything, threadInfo } from "../thread-state.ts";
import type { Place } from "./draft.ts";
import type { Rows } from "./rows.ts";
import type { JsonThread } from "./state.ts";

/** A page of the log. Only the archives that it reaches into are read. */
export async function pageOfLog(
  threadId: string,
  thread: JsonThread | undefined,
  { after, limit }: CheckedPage<number>,
  readArchive: Place["readArchive"],
  rows: Rows,
): Promise<Page<LogEntry, number>> {
  const found: LogEntry[] = [];
  const add = (messages: JsonThread["messages"]) => {
    const rest = messages.filter(({ position }) => position > after);
    found.push(...rest.slice(0, limit + 1 - found.length).map(rows.entry));
  };
  for (const archive of thread?.archives ?? []) {
    if (archive.upTo <= after || archive.messageCount === 0 || found.length > limit) continue;
    add((await readArchive(threadId, archive)).messages);
  }
  add(thread?.messages ?? []);
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.position ?? after) : null };
}

/** Whether there is anything of a thread. One that can't be read is there. */
export function isListed(thread: JsonThread | undefined): boolean {
  return thread?.damage !== undefined || hasAnything(thread);
}

export function infoOfThread(threadId: string, thread: JsonThread): ThreadInfo {
  const { archives } = thread;
  const info = threadInfo(threadId, thread);
  const firstAt = archives.find((archive) => archive.firstAt)?.firstAt ?? undefined;
  const lastAt = archives.findLast((archive) => archive.lastAt)?.lastAt ?? undefined;
  return {
    ...info,
    messageCount: archives.reduce((sum, { messageCount }) => sum + messageCount, info.messageCount),
    createdAt: copyDate(firstAt) ?? info.createdAt,
    updatedAt: info.updatedAt ?? copyDate(lastAt),
  };
}
