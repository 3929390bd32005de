/** A session read from outside, by a program that does not own it: the same JSON for either backend, while the worker runs. */
import type { ArchiveInfo } from "../checkpoint/archives.ts";
import type { Checkpointer, RunInfo } from "../checkpoint/checkpointer.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import type { JsonObject, JsonValue } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import { type ThreadState, threadState } from "../messages/state.ts";
import { checkSessionConfig, type PersistenceOptions, type SessionConfig } from "./config.ts";
import { requireStore } from "./detect.ts";
import { SessionNotFoundError } from "./errors.ts";
import { SESSION_THREAD } from "./session.ts";

export interface SessionState {
  /** The version of this form. */
  format: 1;
  thread_id: string;
  /** Where the conversation stands; see docs/messages.md. */
  state: ThreadState;
  revision: number;
  parent_thread_id: string | null;
  /** What stands for the messages that were set aside; null while none were. */
  summary: string | null;
  /** The active context. */
  messages: Message[];
  extra: JsonObject;
  pending: { request: PendingRequest; run_id: string | null } | null;
  answers: { run_id: string | null; question_id: string; answer: JsonValue }[];
  /** In the order of their ids; times in ISO 8601. */
  runs: { run_id: string; claimed_at: string; completed_at: string | null; completion_seq: number | null }[];
  archives: { archive_id: string; created_at: string; messages: number; summary: string; pruned_at: string | null }[];
}

/** How often a state is read again that the worker changed meanwhile. */
const ROUNDS = 20;

/**
 * Reads a session's state. It creates, changes and locks nothing, and the worker may be at work.
 *
 * @param where the session's directory, or its configuration where `state` or `memory` have other names
 * @throws SessionNotFoundError when there is none, SessionAmbiguousError, SessionBackendMismatchError, SessionLeftoverError, and
 *   what the store throws
 */
export async function readState(where: string | PersistenceOptions): Promise<SessionState> {
  const store = await openSessionReadOnly(typeof where === "string" ? { directory: where } : where);
  try {
    let state = await read(store);
    // Each part is read by itself; a state is whole when the thread did not move meanwhile.
    for (let round = 0; round < ROUNDS; round++) {
      const again = await read(store);
      if (JSON.stringify(again) === JSON.stringify(state)) break;
      state = again;
    }
    return state;
  } finally {
    await store.close();
  }
}

/**
 * Opens a session's store to read it, without owning the session.
 *
 * @throws as {@link readState}
 */
export async function openSessionReadOnly(options: PersistenceOptions | SessionConfig): Promise<Checkpointer> {
  const config = checkSessionConfig(options);
  if (!config.enabled) {
    throw new SessionNotFoundError("`enabled: false` is set, so the session lives in its worker's memory.");
  }
  const { backend, path } = await requireStore(config);
  if (backend === "json") {
    const { JsonCheckpointer } = await import("../checkpoint/json/checkpointer.ts");
    return await JsonCheckpointer.open({ state: path, memory: config.memory, readOnly: true });
  }
  const { SqliteCheckpointer } = await import("../checkpoint/sqlite/checkpointer.ts");
  return await SqliteCheckpointer.open(path, { readOnly: true });
}

async function read(store: Checkpointer): Promise<SessionState> {
  const threadId = SESSION_THREAD;
  const loaded = await store.load(threadId);
  const pending = await store.loadPending(threadId);
  const messages = loaded?.messages ?? [];
  return {
    format: 1,
    thread_id: threadId,
    state: threadState(messages, pending !== undefined),
    revision: loaded?.revision ?? 0,
    parent_thread_id: loaded?.parentThreadId ?? null,
    summary: loaded?.summary ?? null,
    messages,
    extra: loaded?.extra ?? {},
    pending: pending ? { request: pending.request, run_id: pending.runId } : null,
    answers: (await store.listHitlAnswers(threadId)).map(({ runId, questionId, answer }) => ({
      run_id: runId,
      question_id: questionId,
      answer,
    })),
    runs: (await every<RunInfo, string>((after) => store.listRuns(threadId, { after }))).map((run) => ({
      run_id: run.runId,
      claimed_at: run.claimedAt.toISOString(),
      completed_at: run.completedAt?.toISOString() ?? null,
      completion_seq: run.completionSeq,
    })),
    archives: (
      await every<ArchiveInfo, string>(
        async (after) => (await store.archives?.list(threadId, { after })) ?? { items: [], next: null },
      )
    ).map((archive) => ({
      archive_id: archive.archiveId,
      created_at: archive.createdAt.toISOString(),
      messages: archive.messageCount,
      summary: archive.summary,
      pruned_at: archive.prunedAt?.toISOString() ?? null,
    })),
  };
}

async function every<T, Cursor>(
  list: (after: Cursor | undefined) => Promise<{ items: T[]; next: Cursor | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let after: Cursor | undefined;
  do {
    const page = await list(after);
    items.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return items;
}
