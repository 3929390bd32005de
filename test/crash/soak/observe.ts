/** Opens a store as its next user would, and looks at all that is in it through the contract; and at what SQLite holds besides. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Checkpointer } from "../../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../../src/checkpoint/json/checkpointer.ts";
import { MySQLCheckpointer } from "../../../src/checkpoint/mysql/checkpointer.ts";
import { PostgresCheckpointer } from "../../../src/checkpoint/postgres/checkpointer.ts";
import { SqliteCheckpointer } from "../../../src/checkpoint/sqlite/checkpointer.ts";
import { EverthreadError } from "../../../src/errors.ts";
import type { MemoryHistory } from "../../../src/history/history.ts";
import { SqliteMemoryHistory } from "../../../src/history/sqlite/history.ts";
import type { Message } from "../../../src/messages/schema.ts";
import { openSession, openSessionReadOnly } from "../../../src/session/index.ts";
import { type HistoryView, sorted, type ThreadView } from "./model.ts";
import type { StoreAt } from "./ops.ts";

export interface Observed {
  threads: Map<string, ThreadView>;
  history?: HistoryView;
}

/** Something that a store should not show at all. */
export class Violation extends Error {}

/**
 * Looks at everything in a store.
 *
 * @param readOnly whether it is opened without the right to write, so that what a crash left stays for the next writer
 * @throws Violation when what it shows contradicts itself
 */
export async function observe(at: StoreAt, readOnly: boolean): Promise<Observed> {
  try {
    return await look(at, readOnly);
  } catch (error) {
    // Of two stores a reader can't tell what is in them: one that was not made yet, and one that a reader would have to change.
    const untold =
      /There is no |is empty: it holds no store yet|was left in the middle of a write|has no table|no store/;
    if (readOnly && error instanceof EverthreadError && untold.test(error.message)) return await look(at, false);
    throw error;
  }
}

async function look(at: StoreAt, readOnly: boolean): Promise<Observed> {
  if (at.kind === "history") {
    await using history = await SqliteMemoryHistory.open(at.path, { readOnly });
    checkSound(await history.checkIntegrity());
    return { threads: new Map(), history: await historyOf(history) };
  }
  if (at.kind === "session" && !readOnly) {
    await using session = await openSession({ directory: at.directory, backend: at.backend });
    return await lookAt(at, session.checkpointer);
  }
  await using store = await openStore(at, readOnly);
  return await lookAt(at, store);
}

async function lookAt(at: StoreAt, store: Checkpointer): Promise<Observed> {
  if (store.capabilities.integrityCheck === true) checkSound(await store.checkIntegrity());
  const threads = new Map<string, ThreadView>();
  for (const { threadId, messageCount } of (await store.listThreads({ limit: 10_000 })).items) {
    const view = await threadOf(store, threadId);
    if (messageCount !== view.all.length) {
      throw new Violation(`${threadId} is listed with ${messageCount} messages and has ${view.all.length}.`);
    }
    threads.set(threadId, view);
  }
  const inSession =
    at.kind === "session" && at.backend === "sqlite" ? join(at.directory, "state/state.sqlite3") : undefined;
  const file = at.kind === "sqlite" ? at.path : inSession;
  if (file) await checkIndex(file, store, threads);
  return { threads };
}

/** Opens the store that a writer was killed in. */
async function openStore(at: Exclude<StoreAt, { kind: "history" }>, readOnly: boolean): Promise<Checkpointer> {
  switch (at.kind) {
    case "sqlite":
      return await SqliteCheckpointer.open(at.path, readOnly ? { readOnly } : { journalMode: at.journalMode });
    case "json":
      return await JsonCheckpointer.open({ state: at.state, memory: at.memory, readOnly });
    case "postgres":
      return await PostgresCheckpointer.open(at.url);
    case "mysql":
      return await MySQLCheckpointer.open(at.url);
    case "session":
      return await openSessionReadOnly({ directory: at.directory });
  }
}

function checkSound(problems: string[]): void {
  if (problems.length > 0) throw new Violation(`The integrity check found: ${problems.join("; ")}`);
}

async function threadOf(store: Checkpointer, threadId: string): Promise<ThreadView> {
  const loaded = await store.load(threadId);
  const log = (await store.listMessages(threadId, { limit: 10_000 })).items;
  for (const [i, { position }] of log.entries()) {
    if (i > 0 && position <= (log[i - 1]?.position ?? 0))
      throw new Violation(`${threadId} is not in order at ${position}.`);
  }
  if (loaded && log.length > 0 && loaded.revision !== Math.max(log.at(-1)?.position ?? 0, loaded.compactedUpTo ?? 0)) {
    throw new Violation(`${threadId} stands at ${loaded.revision}, and its last message at ${log.at(-1)?.position}.`);
  }
  const archives: ThreadView["archives"] = [];
  for (const info of (await store.archives?.list(threadId))?.items ?? []) {
    const { archiveId: id, summary, prunedAt } = info;
    if (prunedAt) {
      archives.push({ id, summary, pruned: true, content: null });
      continue;
    }
    const read = await store.archives?.read(threadId, id);
    if (!read || read.messageCount !== read.messages.length) throw new Violation(`${threadId} ${id} counts wrongly.`);
    const { system, extra, previousSummary } = read;
    const messages = read.messages.map(messageOf);
    archives.push({ id, summary, pruned: false, content: { messages, system, extra, previousSummary } });
  }
  const active = loaded?.messages ?? [];
  const all = log.map(messageOf);
  const archived = archives.flatMap(({ content }) => content?.messages ?? []);
  if (archived.length + active.length !== all.length) {
    throw new Violation(`${threadId}: ${archived.length} archived and ${active.length} active are not ${all.length}.`);
  }
  const runs = (await store.listRuns(threadId, { limit: 10_000 })).items;
  return {
    all,
    active,
    summary: loaded?.summary ?? null,
    kept: loaded?.kept ?? null,
    archives,
    extra: loaded?.extra ?? {},
    parent: loaded?.parentThreadId ?? null,
    runs: Object.fromEntries(runs.map(({ runId, completionSeq }) => [runId, completionSeq])),
    pending: (await store.loadPending(threadId)) ?? null,
    answers: sorted(await store.listHitlAnswers(threadId)),
  };
}

function messageOf({ message, error }: { message?: Message; error?: Error }): Message {
  if (!message) throw error;
  return message;
}

async function historyOf(history: MemoryHistory): Promise<HistoryView> {
  const { items } = await history.list({ limit: 10_000 });
  const windows: HistoryView["windows"] = {};
  for (const { scope } of (await history.listScopes({ limit: 10_000 })).items) {
    const messages = await history.recentMessages(scope, { limit: 10_000 });
    windows[scope] = messages.map(({ created_at: _, ...rest }) => rest);
  }
  return { records: items.map(({ created_at: _, updated_at: __, ...rest }) => rest), windows };
}

/** The index of archives holds each archived message that says something, and no other. */
async function checkIndex(path: string, store: Checkpointer, threads: Map<string, ThreadView>): Promise<void> {
  const db = new DatabaseSync(path, { readOnly: true });
  let indexed: unknown[];
  let archived: unknown[];
  try {
    if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'everthread_archive_index'").get()) return;
    indexed = db.prepare("SELECT abs(id) AS id FROM everthread_archive_index_docsize ORDER BY 1").all();
    archived = db
      .prepare(
        `SELECT id FROM messages m WHERE id <= (SELECT max(up_to) FROM everthread_archives a WHERE a.thread_id = m.thread_id)
          ORDER BY id`,
      )
      .all();
  } finally {
    db.close();
  }
  if (JSON.stringify(indexed) !== JSON.stringify(archived)) {
    throw new Violation(`The index holds ${JSON.stringify(indexed)}, and archived is ${JSON.stringify(archived)}.`);
  }
  // Every text of a script begins with a word of its own.
  for (const [threadId, { archives, active }] of threads) {
    const first = archives.flatMap(({ content }) => content?.messages ?? [])[0];
    if (first) await checkFound(store, threadId, first, 1);
    if (active[0]) await checkFound(store, threadId, active[0], 0);
  }
}

async function checkFound(store: Checkpointer, threadId: string, message: Message, hits: number): Promise<void> {
  const block = message.content[0];
  const word = block?.type === "text" ? String(block.text).split(" ", 1)[0] : undefined;
  if (!word) return;
  const found = await store.archives?.search(word, { threadId, timeLimitMs: 30_000 });
  if (found?.hits.length !== hits)
    throw new Violation(`Search finds ${word} ${found?.hits.length} times in ${threadId}.`);
}
