/** `everthread history <file>`: the log of what is remembered. Lists changes, tells one memory's life, exports and imports. */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { messageOf } from "../../errors.ts";
import type { HistoryListOptions, HistoryRecord, MemoryHistory } from "../../history/history.ts";
import { exportLines, type HistoryContent, importContent, parseLines } from "../../history/transfer.ts";
import { openMemoryHistory, readMem0File } from "../../open.ts";
import { harmless, harmlessLine } from "../../util/text.ts";
import { type WordChange, wordDiff } from "../../util/word-diff.ts";
import type { Context } from "../context.ts";
import { CommandError, EXIT, UsageError } from "../errors.ts";
import { OutFile } from "../out-file.ts";
import type { Terminal } from "../terminal.ts";
import { count } from "../text.ts";
import { shorten } from "../width.ts";

export interface HistoryOptions {
  memory?: string;
  actor?: string;
  event?: string;
  since?: string;
  until?: string;
  limit?: number;
  all?: boolean;
  output?: string;
  force?: boolean;
}

const DEFAULT_LIMIT = 50;
const PAGE = 1000;
const SQLITE_MAGIC = "SQLite format 3\0";

/**
 * @param action list, show, export or import (Default: list)
 * @param argument for show the memory, for import the file
 */
export async function history(
  context: Context,
  file: string,
  action: string | undefined,
  argument: string | undefined,
  options: HistoryOptions,
): Promise<number> {
  const { out } = context;
  switch (action) {
    case undefined:
    case "list":
      return await withHistory(file, true, (store) => list(out, store, options));
    case "show":
      if (argument === undefined)
        throw new UsageError("Name the memory to show: everthread history <file> show <memory>.");
      return await withHistory(file, true, (store) => show(out, store, argument));
    case "export":
      return await withHistory(file, true, (store) => exportHistory(out, store, options));
    case "import": {
      if (argument === undefined)
        throw new UsageError("Name the file to import: everthread history <file> import <from>.");
      // Read before the history is opened, which would create it.
      const content = await readContent(argument);
      return await withHistory(file, false, (store) => importHistory(out, store, content));
    }
    default:
      throw new UsageError(`history can't ${harmlessLine(action)}. It can list, show, export and import.`);
  }
}

async function withHistory<T>(path: string, readOnly: boolean, work: (store: MemoryHistory) => Promise<T>): Promise<T> {
  const store = await openMemoryHistory(path, { readOnly });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function list(out: Terminal, store: MemoryHistory, options: HistoryOptions): Promise<number> {
  const { memory, actor, event, since, until } = options;
  const chosen = { memoryId: memory, actorId: actor, event, since, until };
  const limit = options.all ? Number.POSITIVE_INFINITY : (options.limit ?? DEFAULT_LIMIT);
  let latest: HistoryRecord[] = [];
  let total = 0;
  for await (const record of allChanges(store, chosen)) {
    total++;
    latest.push(record);
    // However long the log is, only about so many are held.
    if (latest.length > limit + PAGE) latest = latest.slice(-limit);
  }
  latest = limit === 0 ? [] : latest.slice(-limit);
  if (out.json) {
    await out.record({ changes: latest, total });
    return EXIT.ok;
  }
  for (const record of latest) {
    const what = `${timeOf(record)}  ${record.event.padEnd(6)}  ${record.memory_id}  ${summaryOf(record)}`;
    await out.line(shorten(harmlessLine(what), out.width));
  }
  if (total === 0) out.note("There are no changes here.");
  if (total > latest.length) out.note(`${count(total - latest.length, "earlier change")}: --all shows them.`);
  return EXIT.ok;
}

async function* allChanges(store: MemoryHistory, options: HistoryListOptions): AsyncGenerator<HistoryRecord> {
  let after: number | undefined;
  do {
    const page = await store.list({ ...options, after, limit: PAGE });
    yield* page.items;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

async function show(out: Terminal, store: MemoryHistory, memoryId: string): Promise<number> {
  const log = await store.get(memoryId);
  if (log.length === 0) {
    throw new CommandError("memory_not_found", `There is no memory ${JSON.stringify(memoryId)} in this history.`);
  }
  if (out.json) {
    const changes = log.map((record) => ({ ...record, difference: differenceOf(record) }));
    await out.record({ memory_id: memoryId, changes });
    return EXIT.ok;
  }
  for (const record of log) {
    const by = [record.actor_id, record.role].filter((part) => part !== null).join(", ");
    const head = `${timeOf(record)}  ${record.event}${by === "" ? "" : `  (${by})`}`;
    await out.line(out.style("bold", harmlessLine(head)));
    const text = differenceOf(record)
      .map((change) => marked(out, change))
      .join("");
    await out.line(text === "" ? "  (no value)" : `  ${text.replaceAll("\n", "\n  ")}`);
  }
  return EXIT.ok;
}

/** Colours where a terminal shows them, and else marks that tell the same. */
function marked(out: Terminal, { kind, text }: WordChange): string {
  const shown = harmless(text);
  if (kind === "same") return shown;
  const coloured = out.style(kind === "removed" ? "red" : "green", shown);
  if (coloured !== shown) return coloured;
  return kind === "removed" ? `[-${shown}-]` : `{+${shown}+}`;
}

function differenceOf({ old_memory, new_memory }: HistoryRecord): WordChange[] {
  return wordDiff(old_memory ?? "", new_memory ?? "");
}

function timeOf(record: HistoryRecord): string {
  return record.updated_at ?? record.created_at ?? "(no time)";
}

function summaryOf({ old_memory, new_memory }: HistoryRecord): string {
  if (old_memory === null) return new_memory ?? "";
  return new_memory === null ? old_memory : `${old_memory} → ${new_memory}`;
}

async function exportHistory(out: Terminal, store: MemoryHistory, options: HistoryOptions): Promise<number> {
  const { output, force = false } = options;
  const file = output === undefined || output === "-" ? undefined : new OutFile(output, { replace: force });
  let lines = 0;
  for await (const line of exportLines(store)) {
    lines++;
    if (file) file.write(`${line}\n`);
    else await out.line(line);
  }
  file?.finish();
  if (file && out.json) await out.record({ file: file.path, lines });
  else out.note(`Exported ${count(lines, "line")}${file ? ` to ${harmlessLine(file.path)}` : ""}.`);
  return EXIT.ok;
}

async function importHistory(out: Terminal, store: MemoryHistory, content: HistoryContent): Promise<number> {
  await importContent(store, content);
  const total = { records: content.records.length, messages: [...content.windows.values()].flat().length };
  if (out.json) await out.record(total);
  else out.note(`Imported ${count(total.records, "change")} and ${count(total.messages, "message")}.`);
  return EXIT.ok;
}

/** What a file holds: lines that export wrote, or the tables of Mem0's TypeScript package. */
async function readContent(path: string): Promise<HistoryContent> {
  if (path !== "-" && isSqlite(path)) return await readMem0File(path);
  return parseLines((path === "-" ? await buffer(process.stdin) : readFileSync(path)).toString("utf8").split("\n"));
}

function isSqlite(path: string): boolean {
  const head = Buffer.alloc(SQLITE_MAGIC.length);
  try {
    const fd = openSync(path, "r");
    try {
      readSync(fd, head, 0, head.length, 0);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw new CommandError("input_failed", `${path} can't be read: ${messageOf(error)}.`, { cause: error });
  }
  return head.toString("latin1") === SQLITE_MAGIC;
}
