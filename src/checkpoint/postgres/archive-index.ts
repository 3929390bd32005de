/**
 * The index of search, where there is one: the folded text of each archived message. It follows the archives in transactions
 * of its own and a search looks for itself through what it does not hold yet, so nothing is lost when a program dies between.
 */
import { sourceText } from "../../messages/source-text.ts";
import { foldCase, normalText } from "../../util/fold.ts";
import { ADD_SOURCES, ARCHIVE_KEYS, SET_INDEXED, UNINDEXED } from "./archive-search-queries.ts";
import { keyOf, SourceReader, slices } from "./archive-sources.ts";
import type { Tables } from "./archive-tables.ts";

const ROWS = 200;

/** Brings the index of a thread up to date. Its failure is none of the compaction's: the next one makes up for it. */
export async function addToIndex(tables: Tables, threadId: string): Promise<void> {
  if (!tables.indexed) return;
  const reader = new SourceReader(tables.prefix, (queries) => tables.read("archives.compact", queries));
  try {
    const [archives = []] = await tables.read("archives.compact", [[UNINDEXED, [threadId]]]);
    for (const { archive_no = null, up_to_seq = null } of archives) {
      const [keys = []] = await tables.read("archives.compact", [[ARCHIVE_KEYS, [threadId, archive_no]]]);
      for (const slice of slices(keys.map(keyOf), ROWS)) {
        const sources = (await reader.rows(slice)).flatMap((row) => {
          const source = reader.sourceOf(row);
          if (!source) return [];
          return { position: source.position, folded: foldCase(normalText(sourceText(source.message))) };
        });
        await tables.write("archives.compact", [threadId], [[ADD_SOURCES, [threadId, JSON.stringify(sources)]]]);
      }
      await tables.write("archives.compact", [threadId], [[SET_INDEXED, [threadId, archive_no, up_to_seq]]]);
    }
  } catch {
    // What is not indexed is found by a scan.
  }
}
