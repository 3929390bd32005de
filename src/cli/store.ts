/** Opening the store that a command names, and finding the thread that a person means. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ArchiveInfo } from "../checkpoint/archives.ts";
import type { Checkpointer, ThreadInfo } from "../checkpoint/checkpointer.ts";
import { SchemaMismatchError, SchemaUninitializedError, ThreadNotFoundError } from "../checkpoint/errors.ts";
import { migrateStore, type OpenOptions, openCheckpointer } from "../open.ts";
import type { PersistenceOptions, SessionConfig } from "../session/config.ts";
import type { Session } from "../session/session.ts";
import { checkThreadId } from "../util/ids.ts";
import { harmlessLine } from "../util/text.ts";
import type { Context } from "./context.ts";
import { CommandError, UsageError } from "./errors.ts";
import { Progress } from "./progress.ts";
import { indexed, namedSession, openAsWorker, sessionOfUrl, storeOfSession } from "./session-store.ts";

const MOST_CANDIDATES = 5;
const PAGE = 1000;

/**
 * - `read`: never creates, migrates or changes a file
 * - `change`: writes, into a store that is there
 * - `create`: writes, and makes the store when it is not there
 */
export type Access = "read" | "change" | "create";

/**
 * Opens the store, hands it over, and closes it.
 *
 * @param work also gets the session where one is named and written to
 * @throws UsageError when none is named, StoreOpenError, …
 */
export async function withStore<T>(
  context: Context,
  access: Access,
  work: (store: Checkpointer, session?: Session) => Promise<T>,
): Promise<T> {
  const persistence = await namedSession(context);
  const url = persistence ? undefined : storeUrl(context);
  const open = (options: OpenOptions) =>
    persistence ? openReadOnly(persistence) : openStore(url ?? "", { ...options, out: context.out });
  // Opening for writing would create what is not there.
  if (access === "change") await (await open({ readOnly: true })).close();
  if (persistence && access !== "read") {
    await using session = await openAsWorker(context.out, persistence);
    return await work(session.checkpointer, session);
  }
  const store = await open({ readOnly: access === "read" });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function openReadOnly(persistence: PersistenceOptions | SessionConfig): Promise<Checkpointer> {
  const { openSessionReadOnly } = await import("../session/read-state.ts");
  return await openSessionReadOnly(persistence);
}

/** The store that is named. @throws UsageError when none is */
export function storeUrl(context: Context): string {
  const url = context.db ?? process.env.EVERTHREAD_DB;
  if (!url)
    throw new UsageError("No store was named: give --db <path|url> or --session <directory>, or set EVERTHREAD_DB.");
  return url;
}

/** Opens a store by URL, or a session by `session:<directory>`; what it throws tells of `everthread migrate` where that helps. */
export async function openStore(
  url: string,
  options: OpenOptions & { out?: Context["out"] } = {},
): Promise<Checkpointer> {
  const session = sessionOfUrl(url);
  if (session && options.readOnly) return await openReadOnly(session);
  if (session && options.out) return storeOfSession(await openAsWorker(options.out, session));
  try {
    const { readOnly, out } = options;
    const progress = new Progress(out?.json ?? true);
    const onUpgrade = (done: number, total: number) => progress.update(done, total, indexed(done, total));
    const store = await openCheckpointer(url, readOnly ? { readOnly } : { onUpgrade });
    progress.clear();
    return store;
  } catch (error) {
    if (!(error instanceof SchemaUninitializedError || error instanceof SchemaMismatchError)) throw error;
    const plan = await migrateStore(url).catch(() => undefined);
    if (!plan?.sql) throw error;
    // The hint of a library is for who writes a program; here a command does it.
    const hint = "`everthread migrate` prints the SQL that is missing, and runs it with --apply.";
    throw new CommandError(
      error.code,
      error.message.replace(error.hint, () => hint),
      { cause: error },
    );
  }
}

/** The thread with exactly this id. */
export async function threadInfo(store: Checkpointer, threadId: string): Promise<ThreadInfo | undefined> {
  const { items } = await store.listThreads({ prefix: threadId, limit: 1 });
  return items[0]?.threadId === threadId ? items[0] : undefined;
}

/**
 * The thread that a person means: the one of exactly this id, else the only one whose id begins so, with or without the
 * "…" of a shortened id; where none is named, the only one of the store.
 *
 * @throws ThreadNotFoundError @throws CommandError "ambiguous_thread", with the candidates @throws UsageError
 */
export async function findThread(store: Checkpointer, given: string | undefined): Promise<ThreadInfo> {
  if (given === undefined) return await onlyThread(store);
  checkThreadId(given);
  const exact = await threadInfo(store, given);
  if (exact) return exact;
  const start = given.replace(/…$/, "");
  if (start === "") throw new ThreadNotFoundError(given);
  const found = await startingWith(store, start);
  const [first] = found;
  if (!first) throw new ThreadNotFoundError(given);
  if (found.length === 1) return first;
  const names = found.slice(0, MOST_CANDIDATES).map(({ threadId }) => JSON.stringify(threadId));
  const more = found.length > MOST_CANDIDATES ? " and others" : "";
  throw new CommandError(
    "ambiguous_thread",
    `Several threads begin with ${JSON.stringify(start)}: ${names.join(", ")}${more}. Give more of the id.`,
  );
}

async function onlyThread(store: Checkpointer): Promise<ThreadInfo> {
  const { items } = await store.listThreads({ limit: 2 });
  if (items[0] && items.length === 1) return items[0];
  throw new UsageError(items[0] ? "The store has several threads: name one." : "The store has no thread.");
}

/**
 * The thread to go on with, or the id of one to begin. A beginning counts only with its "…": "user-4" is a new thread
 * also where there is a "user-42".
 */
export async function findOrBegin(store: Checkpointer, given: string): Promise<{ threadId: string; isNew: boolean }> {
  checkThreadId(given);
  if (await threadInfo(store, given)) return { threadId: given, isNew: false };
  if (!given.endsWith("…")) return { threadId: given, isNew: true };
  return { threadId: (await findThread(store, given)).threadId, isNew: false };
}

async function startingWith(store: Checkpointer, start: string): Promise<ThreadInfo[]> {
  const { items } = await store.listThreads({ prefix: start, limit: MOST_CANDIDATES + 1 });
  if (items.length > 0 || !/[\u2400-\u2421]|<U\+/.test(start)) return items;
  // As it was shown, with control characters made visible.
  const shown: ThreadInfo[] = [];
  for await (const info of allThreads(store)) {
    if (harmlessLine(info.threadId).startsWith(start)) shown.push(info);
    if (shown.length > MOST_CANDIDATES) break;
  }
  return shown;
}

/** The archives of a thread, oldest first; none where the store keeps none. */
export async function allArchives(store: Checkpointer, threadId: string): Promise<ArchiveInfo[]> {
  const found: ArchiveInfo[] = [];
  let after: string | undefined;
  do {
    const page = await store.archives?.list(threadId, { after, limit: PAGE });
    found.push(...(page?.items ?? []));
    after = page?.next ?? undefined;
  } while (after !== undefined);
  return found;
}

/** Every thread, in the order of ids. */
export async function* allThreads(store: Checkpointer, prefix?: string): AsyncGenerator<ThreadInfo> {
  let after: string | undefined;
  do {
    const page = await store.listThreads({ after, limit: PAGE, prefix });
    yield* page.items;
    after = page.next ?? undefined;
    // SQLite answers at once; without a turn of the event loop no signal would be heard until the end.
    await nextTurn();
  } while (after !== undefined);
}
