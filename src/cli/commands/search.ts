/** `everthread search`: what was said in the archives of a thread, or of every thread. */
import type { ArchiveStore, SearchHit } from "../../checkpoint/archives.ts";
import { UnsupportedError } from "../../checkpoint/errors.ts";
import { harmless, harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { indent } from "../describe.ts";
import { EXIT } from "../errors.ts";
import { findThread, withStore } from "../store.ts";
import type { Terminal } from "../terminal.ts";

export interface SearchCommandOptions {
  thread?: string;
  limit?: number;
  previewBytes?: number;
  timeLimit?: number;
}

export async function search(context: Context, text: string, options: SearchCommandOptions): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    const threadId = options.thread === undefined ? undefined : (await findThread(store, options.thread)).threadId;
    const { backend, search: can } = store.capabilities;
    if (can !== true) throw new UnsupportedError(backend, "a search", can.reason);
    const found = await (store.archives as ArchiveStore).search(text, {
      threadId,
      limit: options.limit,
      previewBytes: options.previewBytes,
      timeLimitMs: options.timeLimit,
    });
    if (out.json) {
      await out.record(found);
      return EXIT.ok;
    }
    for (const [i, hit] of found.hits.entries()) await out.line(`${i === 0 ? "" : "\n"}${describeHit(hit, out)}`);
    if (found.hits.length === 0) out.note("Nothing was found. Only what was archived is searched.");
    if (found.has_more) out.note("There are more: --limit shows them, or search for a longer text.");
    return EXIT.ok;
  });
}

function describeHit({ thread_id, archive_id, source_id, role, created_at, preview }: SearchHit, out: Terminal) {
  const where = `${harmlessLine(thread_id)} · archive ${archive_id} · source ${source_id}`;
  const when = `${created_at.slice(0, 16).replace("T", " ")}Z`;
  return `${out.style("bold", role)} ${out.style("dim", `${where} · ${when}`)}\n${indent(harmless(preview))}`;
}
