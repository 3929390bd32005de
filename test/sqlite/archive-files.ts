/** Files with archives for tests: made by Everthread, and set back to what an older version left. */
import { DatabaseSync } from "node:sqlite";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";

/** Appends the texts as messages and archives all that is active. */
export async function archiveTexts(store: Checkpointer, threadId: string, texts: readonly string[]): Promise<void> {
  const upTo = await store.append(
    threadId,
    texts.map((text) => userMessage(text)),
  );
  await store.archives?.compact(threadId, { upTo, summary: `${texts.length} texts` });
}

/** A file as version 1 left it: archives, and no index of them. */
export async function makeVersion1(path: string, threads: Record<string, readonly string[][]>): Promise<void> {
  const store = await SqliteCheckpointer.open(path, { durability: "off" });
  for (const [threadId, archives] of Object.entries(threads)) {
    for (const texts of archives) await archiveTexts(store, threadId, texts);
    await store.append(threadId, [userMessage(`the active one of ${threadId}`)]);
  }
  await store.close();
  using db = new OpenDatabase(path);
  db.exec("DROP TABLE IF EXISTS everthread_archive_index; UPDATE everthread_schema SET version = 1");
}

/** A database that is closed with its block. */
export class OpenDatabase extends DatabaseSync implements Disposable {
  override [Symbol.dispose](): void {
    this.close();
  }

  /** The first column of the first row. */
  value(sql: string): unknown {
    return Object.values(this.prepare(sql).get() ?? {})[0];
  }

  /** The tables and indexes that archives add. */
  archiveTables(): unknown[] {
    const sql =
      "SELECT name FROM sqlite_master WHERE name LIKE 'everthread_archive%' OR tbl_name = 'everthread_archives'";
    return this.prepare(sql)
      .all()
      .map(({ name }) => name);
  }
}

/** The previews of what a search finds, newest first. */
export async function found(store: Checkpointer, query: string, threadId?: string): Promise<string[]> {
  const result = await store.archives?.search(query, { threadId, limit: 1000, timeLimitMs: 60_000 });
  return (result?.hits ?? []).map(({ preview }) => preview);
}

/** Whether this Node's SQLite can keep an index: since 22.16. */
export const hasFts5 = ((): boolean => {
  using db = new OpenDatabase(":memory:");
  try {
    db.exec("CREATE VIRTUAL TABLE probe USING fts5(text)");
    return true;
  } catch {
    return false;
  }
})();
