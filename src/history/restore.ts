/** What a memory was at a time, from the log of its changes. */
import type { HistoryRecord } from "./history.ts";
import { changeTime } from "./records.ts";
import { instantOf } from "./times.ts";

/**
 * The value at an instant; undefined when the memory was not there. Changes count in the order written, each whose time is
 * not later; one without a time happened when the one before it did. An event that gives no value and deletes nothing
 * leaves the value as it was.
 *
 * @param log every change to one memory, in the order written
 */
export function valueAt(log: readonly HistoryRecord[], instant: string): string | undefined {
  const [first] = log;
  if (!first) return undefined;
  // A log that begins with an update: before it, the memory had the value that it replaced, once it was there.
  const wasThere = (instantOf(first.created_at) ?? instant) <= instant;
  let value = wasThere ? (first.old_memory ?? undefined) : undefined;
  let time = "";
  for (const change of log) {
    time = changeTime(change) ?? time;
    if (time > instant) continue;
    if (change.is_deleted || change.event === "DELETE") value = undefined;
    else value = change.new_memory ?? value;
  }
  return value;
}
