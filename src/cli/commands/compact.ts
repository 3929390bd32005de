/** `everthread compact`: a summary in place of the older part of a conversation. */
import type { Context } from "../context.ts";
import { EXIT } from "../errors.ts";
import { type RunOptions, setUp } from "../setup.ts";
import { findThread, withStore } from "../store.ts";
import { count } from "../text.ts";
import { archiveJson } from "./archives.ts";

export interface CompactOptions extends RunOptions {
  instructions?: string;
  keepTokens?: number;
  approve?: string;
}

export async function compact(context: Context, given: string | undefined, options: CompactOptions): Promise<number> {
  const { out } = context;
  const setup = await setUp(context, options, options.approve);
  return await withStore(context, "change", async (store, session) => {
    const { threadId } = await findThread(store, given);
    const { instructions, keepTokens = 0 } = options;
    const archive = await setup.agentOn(store, threadId, session).compact({ instructions, keepTokens });
    if (out.json) {
      await out.record({ thread_id: threadId, archive: archive ? archiveJson(archive) : null });
    } else if (archive) {
      await out.line(`Archived ${count(archive.messageCount, "message")} as ${archive.archiveId}:\n${archive.summary}`);
    } else {
      out.note("There is nothing to set aside.");
    }
    return EXIT.ok;
  });
}
