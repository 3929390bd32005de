/** memory_search and memory_fetch: what a model looks things up with that it no longer sees, and how it is told of them. */
import type { ArchiveStore, SearchHit, SourcePage } from "../checkpoint/archives.ts";
import type { JsonObject } from "../messages/json.ts";
import type { SessionConfig } from "./config.ts";

/** A tool as an agent takes it. */
export interface MemoryTool {
  name: "memory_search" | "memory_fetch";
  description: string;
  parameters: JsonObject;
  execute(args: unknown, context: { signal: AbortSignal }): Promise<JsonObject>;
}

/** What the system prompt says of the two, wherever they are given. */
export const MEMORY_GUIDANCE = [
  "Earlier parts of this conversation may have been set aside: you then see a summary in their place, and the full text is kept.",
  "When you need a detail that you don't see, such as a name, a number, a path or the exact words, look it up before you say that you don't know it:",
  "call memory_search with a short literal phrase (three characters or more; case is ignored; there are no operators), try other words if nothing is found,",
  "then call memory_fetch with the archive_id and source_id of a hit to read it whole, and again with next_offset while has_more is true.",
  "Recent messages, which you see, are not searched. Very old ones may have been removed.",
].join(" ");

/** The tools for one thread, within the configured budgets. */
export function memoryTools(archives: ArchiveStore, threadId: string, budgets: SessionConfig["search"]): MemoryTool[] {
  return [
    {
      name: "memory_search",
      description:
        "Search the earlier, set-aside part of this conversation for literal text. Gives the newest hits first, each with a preview.",
      parameters: {
        type: "object",
        properties: {
          query: { type: "string", description: "The literal text to find, best three characters or more." },
          limit: { type: "integer", minimum: 1, description: `How many hits at most, up to ${budgets.max_results}.` },
        },
        required: ["query"],
        additionalProperties: false,
      },
      async execute(args, { signal }) {
        const { query, limit = budgets.max_results } = args as { query: string; limit?: number };
        const found = await archives.search(query, {
          threadId,
          limit: Math.min(limit, budgets.max_results),
          previewBytes: budgets.preview_bytes,
          timeLimitMs: budgets.time_limit_ms,
          signal,
        });
        return { hits: found.hits.map(forModel), has_more: found.has_more };
      },
    },
    {
      name: "memory_fetch",
      description:
        "Read one hit of memory_search whole, page by page: pass next_offset as offset while has_more is true.",
      parameters: {
        type: "object",
        properties: {
          archive_id: { type: "string" },
          source_id: { type: "string" },
          offset: { type: "integer", minimum: 0, description: "Where to begin, in bytes. (Default: 0)" },
        },
        required: ["archive_id", "source_id"],
        additionalProperties: false,
      },
      async execute(args) {
        const { archive_id, source_id, offset } = args as { archive_id: string; source_id: string; offset?: number };
        const page: SourcePage = await archives.fetch(threadId, {
          archiveId: archive_id,
          sourceId: source_id,
          offset,
          limit: budgets.fetch_bytes,
        });
        return { ...page };
      },
    },
  ];
}

/** The model knows of one conversation, so the thread's id would only take its room. */
function forModel({ archive_id, source_id, role, created_at, preview }: SearchHit): JsonObject {
  return { archive_id, source_id, role, created_at, preview };
}
