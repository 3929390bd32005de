/** The active context of a thread that may be compacted, in one statement and so of one snapshot. */
import type { Row, Session } from "../../db/mysql.ts";
import { positionOf } from "./archive-marks.ts";
import type { ArchiveQueries } from "./archive-queries.ts";

/** As `readLog`, of what follows the last compaction; and what that is. Undefined when there is no such thread. */
export async function readActive(session: Session, archives: ArchiveQueries, threadId: string, from: number) {
  const found = await session.rows(archives.LOAD, [...Array<string>(12).fill(threadId), from]);
  const thread = found.find((row) => row.thread_id === threadId);
  if (!thread) return undefined;
  const base = Number(thread.base);
  const rows = found.filter((row) => row.thread_id === null).sort((a, b) => Number(a.seq) - Number(b.seq));
  const compaction =
    Number(thread.counts) !== 1
      ? undefined
      : {
          summary: String(thread.summary),
          compactedUpTo: positionOf(base, Number(thread.seq)),
          kept: (messages: readonly Row[]) => messages.filter(({ seq }) => Number(seq) <= Number(thread.at_seq)).length,
        };
  return {
    thread,
    rows,
    firstPosition: rows[0] ? base + Number(rows[0].seq) : 0,
    lastPosition: positionOf(base, Number(thread.last ?? 0)),
    compaction,
  };
}
