/** `everthread threads`: the threads of a store, the most recently changed first. */
import type { Checkpointer, ThreadInfo } from "../../checkpoint/checkpointer.ts";
import { harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { previewOf } from "../describe.ts";
import { EXIT } from "../errors.ts";
import { allThreads, withStore } from "../store.ts";
import { ago, count } from "../text.ts";
import { pad, shorten, widthOf } from "../width.ts";

export interface ThreadsOptions {
  limit?: number;
  all?: boolean;
  prefix?: string;
}

const DEFAULT_LIMIT = 50;
/** Narrower terminals get an id a line, and what there is to say of it below. */
const TABLE = 60;
const WIDEST_ID = 40;
const NARROWEST_PREVIEW = 16;

export async function threads(context: Context, options: ThreadsOptions): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    const limit = options.all ? Number.POSITIVE_INFINITY : (options.limit ?? DEFAULT_LIMIT);
    const { latest, total } = await latestThreads(store, limit, options.prefix);
    if (out.json) {
      await out.record({ threads: latest.map(threadJson), total });
      return EXIT.ok;
    }
    const lines = out.width < TABLE ? stacked(latest, out.width) : table(latest, out.width);
    for (const [i, line] of lines.entries()) {
      const info = latest[i];
      const room = out.width < TABLE ? 0 : out.width - widthOf(line) - 2;
      const preview = info && out.live && room >= NARROWEST_PREVIEW ? await lastWords(store, info) : "";
      await out.line(preview === "" ? line : `${line}  ${out.style("dim", shorten(preview, room))}`);
    }
    if (total === 0) out.note("There are no threads here.");
    if (total > latest.length) out.note(`${count(total - latest.length, "more thread")}: --all shows them.`);
    return EXIT.ok;
  });
}

async function latestThreads(store: Checkpointer, limit: number, prefix: string | undefined) {
  let latest: ThreadInfo[] = [];
  let total = 0;
  const newestFirst = () => latest.sort((a, b) => Number(b.updatedAt ?? 0) - Number(a.updatedAt ?? 0));
  for await (const info of allThreads(store, prefix)) {
    total++;
    latest.push(info);
    // However many threads there are, only about so many are held.
    if (latest.length > 2 * limit + 1000) latest = newestFirst().slice(0, limit);
  }
  return { latest: newestFirst().slice(0, limit), total };
}

function threadJson(info: ThreadInfo) {
  return {
    thread_id: info.threadId,
    message_count: info.messageCount,
    revision: info.revision,
    parent_thread_id: info.parentThreadId,
    created_at: info.createdAt,
    updated_at: info.updatedAt,
    pending: info.pending,
  };
}

function table(list: readonly ThreadInfo[], width: number): string[] {
  const widest = Number.isFinite(width) ? Math.min(WIDEST_ID, width - 35) : width;
  const rows = list.map((info) => [shorten(harmlessLine(info.threadId), widest), ...cells(info)]);
  const columns = [0, 1, 2].map((i) => Math.max(0, ...rows.map((row) => widthOf(row[i] ?? ""))));
  return rows.map((row) =>
    row
      .map((cell, i) => pad(cell, columns[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function stacked(list: readonly ThreadInfo[], width: number): string[] {
  return list.map((info) => {
    const rest = cells(info).filter((cell) => cell !== "");
    return [shorten(harmlessLine(info.threadId), width), ...rest.map((cell) => shorten(`  ${cell}`, width))].join("\n");
  });
}

function cells({ messageCount, updatedAt, pending, parentThreadId }: ThreadInfo): string[] {
  const flags = [...(pending ? ["waits on an answer"] : []), ...(parentThreadId === null ? [] : ["fork"])];
  return [count(messageCount, "message"), updatedAt ? ago(updatedAt) : "", flags.join(", ")];
}

/** The last message is found by the revision, without reading the others. */
async function lastWords(store: Checkpointer, info: ThreadInfo): Promise<string> {
  if (info.revision === 0) return "";
  const { items } = await store.listMessages(info.threadId, { after: info.revision - 1, limit: 1 });
  const entry = items[0];
  if (entry?.error) return `(damaged: ${entry.rowRef})`;
  return entry?.message ? previewOf(entry.message) : "";
}
