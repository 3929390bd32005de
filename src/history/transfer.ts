/** Moving a history from one store to another: all that a store holds, as values and as lines of JSON. */
import { messageOf } from "../errors.ts";
import { InvalidRecordError } from "./errors.ts";
import type { MemoryHistory, NewHistoryRecord, NewWindowMessage } from "./history.ts";

/** What a history holds. */
export interface HistoryContent {
  records: NewHistoryRecord[];
  /** Each scope's window, oldest first. */
  windows: Map<string, NewWindowMessage[]>;
}

/** How much one page reads. */
const PAGE = 1000;
/** The longest window that can be read. */
const LONGEST_WINDOW = 10_000;

/**
 * Everything a history holds, one line of JSON each: first the changes, {"record": {…}}, then the windows' messages,
 * {"scope": "…", "message": {…}}, each in the order written.
 */
export async function* exportLines(history: MemoryHistory): AsyncGenerator<string> {
  for (let after: number | null = 0; after !== null; ) {
    const page = await history.list({ after, limit: PAGE });
    for (const record of page.items) yield JSON.stringify({ record });
    after = page.next;
  }
  for (let after: string | null | undefined; after !== null; ) {
    const page = await history.listScopes({ after: after ?? undefined, limit: PAGE });
    for (const { scope } of page.items) {
      const messages = await history.recentMessages(scope, { limit: LONGEST_WINDOW });
      for (const message of messages) yield JSON.stringify({ scope, message });
    }
    after = page.next;
  }
}

/** What such lines hold; empty lines are passed over. @throws InvalidRecordError naming the line that is none */
export function parseLines(lines: readonly string[]): HistoryContent {
  const content: HistoryContent = { records: [], windows: new Map() };
  for (const [i, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const item = parseLine(line, `line ${i + 1}`);
    if (item.record) content.records.push(item.record);
    else if (item.message && typeof item.scope === "string") {
      const window = content.windows.get(item.scope);
      if (window) window.push(item.message);
      else content.windows.set(item.scope, [item.message]);
    } else throw new InvalidRecordError(`line ${i + 1}`, "holds neither a record nor a scope's message.");
  }
  return content;
}

interface Line {
  record?: NewHistoryRecord;
  scope?: unknown;
  message?: NewWindowMessage;
}

function parseLine(line: string, path: string): Line {
  try {
    return Object(JSON.parse(line)) as Line;
  } catch (error) {
    throw new InvalidRecordError(path, `is not JSON: ${messageOf(error)}.`);
  }
}

/**
 * Adds content to a history: all its changes or none, then each window after the messages that its scope has.
 *
 * @throws DuplicateRecordError when a change was added before, InvalidRecordError
 */
export async function importContent(history: MemoryHistory, { records, windows }: HistoryContent): Promise<void> {
  await history.addBatch(records);
  for (const [scope, messages] of windows) {
    const { length } = await history.recentMessages(scope, { limit: LONGEST_WINDOW });
    await history.saveMessages(scope, messages, { keep: Math.min(length + messages.length, LONGEST_WINDOW) });
  }
}
