/** A thread as a copy reads it, a page at a time, from a store or from anything else. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type {
  ArchivePart,
  Checkpointer,
  LogEntry,
  Page,
  RecordedAnswer,
  RunInfo,
  ThreadPart,
} from "../checkpoint/checkpointer.ts";
import { admitPart } from "../checkpoint/part.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import { EverthreadError, messageOf } from "../errors.ts";
import type { JsonObject } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";

// Messages may be large (images, long tool results), so a page of them is small.
const MESSAGES = 20;
const RUNS = 1000;

export interface ThreadSource {
  readonly threadId: string;
  /** The log in order, damaged rows included. @param after only what follows this position (Default: all) */
  messages(after?: number): AsyncIterable<LogEntry>;
  /** By id, in code point order. */
  runs(): AsyncIterable<RunInfo>;
  /** @param revision the position of the last message that was read, so that none is read for this */
  rest(revision: number): Promise<Rest>;
}

/** What a thread has besides messages and runs. */
export interface Rest {
  parentThreadId: string | null;
  /** Undefined where it has no keys. */
  extra: JsonObject | undefined;
  pending: { request: PendingRequest; runId: string | null } | null;
  /** By run and question, in code point order. */
  answers: readonly RecordedAnswer[];
  /** Oldest first; none where the thread was never compacted. */
  archives: readonly ArchivePart[];
}

/** A thread can't be copied: a row of it can't be read, or holds what no store takes. */
export class Damage extends Error {
  readonly rowRef: string | undefined;

  constructor(error: unknown, rowRef?: string) {
    super(messageOf(error), { cause: error });
    this.rowRef = rowRef;
  }
}

/** A thread of a store. */
export function threadOf(store: Checkpointer, threadId: string): ThreadSource {
  return {
    threadId,
    messages: (start) => pages((after) => store.listMessages(threadId, { after, limit: MESSAGES }), start),
    runs: () => pages((after: string | undefined) => store.listRuns(threadId, { after, limit: RUNS })),
    async rest(revision) {
      const loaded = await store.load(threadId, { after: revision });
      const { extra = {} } = loaded ?? {};
      return {
        parentThreadId: loaded?.parentThreadId ?? null,
        extra: Object.keys(extra).length > 0 ? extra : undefined,
        pending: (await store.loadPending(threadId)) ?? null,
        answers: await store.listHitlAnswers(threadId),
        archives: await archivesOf(store, threadId),
      };
    },
  };
}

/** The archives as `importThread` takes them: their messages are counted, since they are copied with the others. */
export async function archivesOf(store: Checkpointer, threadId: string): Promise<ArchivePart[]> {
  const parts: ArchivePart[] = [];
  const { archives } = store;
  if (!archives) return parts;
  for await (const info of pages((after: string | undefined) => archives.list(threadId, { after }))) {
    const { archiveId, createdAt, messageCount, summary, prunedAt } = info;
    const { system, extra } = prunedAt ? { system: null, extra: {} } : await archives.read(threadId, archiveId);
    let kept = 0;
    for await (const { position } of pages(
      (after) => store.listMessages(threadId, { after, limit: MESSAGES }),
      info.upTo,
    )) {
      if (position > info.atRevision) break;
      kept++;
    }
    parts.push({ archiveId, createdAt, messageCount, kept, summary, system, extra, prunedAt });
  }
  return parts;
}

async function* pages<T, Cursor>(
  list: (after: Cursor | undefined) => Promise<Page<T, Cursor>>,
  start?: Cursor,
): AsyncGenerator<T> {
  let after = start;
  do {
    const { items, next } = await list(after);
    yield* items;
    after = next ?? undefined;
    // SQLite answers at once; without a turn of the event loop no signal would be heard until the end.
    await nextTurn();
  } while (after !== undefined);
}

/** A source whose every part has passed the door of `importThread`; what does not pass is a {@link Damage}. */
export interface CheckedSource extends ThreadSource {
  messages(after?: number): AsyncIterable<LogEntry & { message: Message }>;
}

/** Checks a source while it is read, so that what no store would take is known before anything is written. */
export function checked(source: ThreadSource): CheckedSource {
  return {
    threadId: source.threadId,
    async *messages(after) {
      for await (const entry of reading(source.messages(after))) {
        if (entry.error) throw new Damage(entry.error, entry.rowRef);
        const [admitted] = admit({ messages: [entry] }, entry.rowRef).messages;
        if (admitted) yield { position: entry.position, rowRef: entry.rowRef, ...admitted };
      }
    },
    async *runs() {
      for await (const run of reading(source.runs())) {
        yield* admit({ runs: [run] }, `run ${JSON.stringify(run.runId)}`).runs;
      }
    },
    async rest(revision) {
      const { parentThreadId, ...rest } = await source.rest(revision).catch(damaged);
      const { extra, pending, answers, archives } = admit({ ...rest, parentThreadId: parentThreadId ?? undefined });
      return { parentThreadId, extra, pending: pending ?? null, answers: answers ?? [], archives: archives ?? [] };
    },
  };
}

function admit(part: ThreadPart, rowRef?: string) {
  try {
    return admitPart(part);
  } catch (error) {
    if (error instanceof EverthreadError) throw new Damage(error, rowRef);
    throw error;
  }
}

async function* reading<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    damaged(error);
  }
}

/** One thread that can't be read hides no other; a store that is closed or locked does. */
function damaged(error: unknown): never {
  const code = codeOf(error);
  if (code === "checkpoint_corruption") throw new Damage(error, (error as { rowRef?: string }).rowRef);
  throw code === "store_error" || code === "unsupported" ? new Damage(error) : error;
}

/** Errors are told apart by their code: a backend may have a copy of this package of its own. */
export function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code;
}
