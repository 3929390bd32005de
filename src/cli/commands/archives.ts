/** `everthread archives`, `archive show` and `prune`: what compactions set aside, and its retention. */
import type { ArchiveInfo, ArchiveStore } from "../../checkpoint/archives.ts";
import type { Checkpointer } from "../../checkpoint/checkpointer.ts";
import { UnsupportedError } from "../../checkpoint/errors.ts";
import { harmless, harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { describeEntry, indent } from "../describe.ts";
import { EXIT } from "../errors.ts";
import { entryRecord } from "../records.ts";
import { allArchives, findThread, withStore } from "../store.ts";
import type { Terminal } from "../terminal.ts";
import { ago, count } from "../text.ts";

export async function archives(context: Context, given: string | undefined): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    archivesOf(store);
    const { threadId } = await findThread(store, given);
    const list = await allArchives(store, threadId);
    if (out.json) {
      await out.record({ thread_id: threadId, archives: list.map(archiveJson) });
      return EXIT.ok;
    }
    for (const archive of list) await out.line(describeArchive(archive, out));
    if (list.length === 0) out.note(`Thread ${harmlessLine(threadId)} was never compacted.`);
    return EXIT.ok;
  });
}

/** @param options.source only this message of it, page by page from `offset` */
export async function showArchive(
  context: Context,
  archiveId: string,
  given: string | undefined,
  options: { source?: string; offset?: number },
): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    const { threadId } = await findThread(store, given);
    const archive = archivesOf(store);
    if (options.source !== undefined) {
      const page = await archive.fetch(threadId, { archiveId, sourceId: options.source, offset: options.offset });
      if (out.json) await out.record(page);
      else await out.line(harmless(page.text));
      if (page.next_offset !== null) out.note(`There is more: --offset ${page.next_offset} goes on.`);
      return EXIT.ok;
    }
    const { messages, previousSummary, system, extra, ...info } = await archive.read(threadId, archiveId);
    if (out.json) {
      await out.record({
        ...archiveJson(info),
        previous_summary: previousSummary,
        system,
        extra,
        messages: messages.map(entryRecord),
      });
      return EXIT.ok;
    }
    await out.line(describeArchive(info, out));
    if (system !== null) await out.line(`\n${out.style("bold", "system")}\n${indent(harmless(system))}`);
    if (previousSummary !== null) {
      await out.line(`\n${out.style("bold", "summary before it")}\n${indent(harmless(previousSummary))}`);
    }
    for (const entry of messages) await out.line(`\n${describeEntry(entry, out)}`);
    return EXIT.ok;
  });
}

export async function prune(context: Context, given: string | undefined, options: { keep: number }): Promise<number> {
  const { out } = context;
  return await withStore(context, "change", async (store) => {
    const { threadId } = await findThread(store, given);
    const report = await archivesOf(store).prune(threadId, { keep: options.keep });
    if (out.json) {
      const kept = report.protected.map(({ archiveId, reason }) => ({ archive_id: archiveId, reason }));
      await out.record({ thread_id: threadId, pruned: report.pruned, protected: kept });
      return EXIT.ok;
    }
    const removed = report.pruned.length === 0 ? "" : `: ${report.pruned.join(", ")}`;
    await out.line(`Removed the messages of ${count(report.pruned.length, "archive")}${removed}.`);
    for (const { archiveId, reason } of report.protected) out.note(`Archive ${archiveId} was kept. ${reason}`);
    return EXIT.ok;
  });
}

function archivesOf({ archives: store, capabilities }: Checkpointer): ArchiveStore {
  const { backend, archives: can } = capabilities;
  if (can !== true) throw new UnsupportedError(backend, "archives", can.reason);
  return store as ArchiveStore;
}

export function archiveJson({ archiveId, createdAt, upTo, messageCount, summary, prunedAt }: ArchiveInfo) {
  return {
    archive_id: archiveId,
    created_at: createdAt,
    up_to: upTo,
    messages: messageCount,
    summary,
    pruned_at: prunedAt,
  };
}

function describeArchive({ archiveId, createdAt, messageCount, summary, prunedAt }: ArchiveInfo, out: Terminal) {
  const held = prunedAt ? `its messages were removed ${ago(prunedAt)}` : count(messageCount, "message");
  return `${out.style("bold", archiveId)} ${out.style("dim", `${held} · ${ago(createdAt)}`)}\n${indent(harmless(summary))}`;
}
