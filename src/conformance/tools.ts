/** Small helpers of the cases. */
import assert from "node:assert/strict";
import type { ArchiveInfo, ArchiveStore, CompactOptions, SearchOptions } from "../checkpoint/archives.ts";
import type { Checkpoint, Checkpointer, LogEntry } from "../checkpoint/checkpointer.ts";
import type { PendingRequest } from "../checkpoint/pending.ts";
import { assistantMessage, textOf, userMessage } from "../messages/construct.ts";
import type { Message } from "../messages/schema.ts";
import type { Bench } from "./case.ts";

/** Asserts that the work is refused with an error of this code and these fields. */
export async function rejectsWith(
  work: Promise<unknown>,
  code: string,
  fields: Record<string, unknown> = {},
): Promise<void> {
  await assert.rejects(
    work,
    (error) => {
      assert.ok(error instanceof Error, `threw ${String(error)}, which is not an Error`);
      const { code: actual } = error as { code?: unknown };
      assert.equal(actual, code, `${error.name}: ${error.message}`);
      for (const [name, value] of Object.entries(fields)) {
        assert.deepEqual((error as unknown as Record<string, unknown>)[name], value, `the error's ${name}`);
      }
      return true;
    },
    `should be refused with ${code}`,
  );
}

/** A user message of a run. @param runId (Default: none) */
export const say = (text: string, runId: string | null = null): Message => userMessage(text, { run_id: runId });

/** An assistant message of a run. @param runId (Default: none) */
export const reply = (text: string, runId: string | null = null): Message => assistantMessage(text, { run_id: runId });

/** A message with fields or blocks that the types don't know. */
export const raw = (value: object): Message => value as Message;

/** A value of the wrong type, as a program in plain JavaScript would hand it in. */
export const wrong = (value: unknown): never => value as never;

/** Loads a thread that must be there. */
export async function loaded(store: Checkpointer, threadId: string, after?: number): Promise<Checkpoint> {
  const checkpoint = await store.load(threadId, after === undefined ? {} : { after });
  assert.ok(checkpoint, `thread ${JSON.stringify(threadId)} should be there`);
  return checkpoint;
}

/** The texts of a thread's messages, in order; empty when there is no thread. */
export async function texts(store: Checkpointer, threadId: string): Promise<string[]> {
  return ((await store.load(threadId))?.messages ?? []).map(textOf);
}

/** Asserts that nothing at all is stored of a thread. */
export async function assertAbsent(store: Checkpointer, threadId: string): Promise<void> {
  assert.equal(await store.load(threadId), undefined);
  assert.equal(await store.loadPending(threadId), undefined);
  assert.deepEqual(await store.listMessages(threadId), { items: [], next: null });
  assert.deepEqual(await store.listRuns(threadId), { items: [], next: null });
  const { items } = await store.listThreads({ prefix: threadId });
  assert.ok(!items.some((thread) => thread.threadId === threadId), `${threadId} should not be listed`);
}

/** What a program started later reads of these messages. */
export async function throughStore(bench: Bench, messages: readonly Message[]): Promise<Message[]> {
  await bench.store.append("thread", messages);
  return (await loaded(await bench.again(), "thread")).messages;
}

/** Asserts that messages come back byte for byte: the same text, the order of keys included. */
export async function assertRoundTrip(bench: Bench, messages: readonly Message[]): Promise<void> {
  const expected = messages.map((message) => JSON.stringify(message));
  const actual = (await throughStore(bench, messages)).map((message) => JSON.stringify(message));
  assert.deepEqual(actual, expected);
}

/** A question to the user. @param fields other fields of the request */
export function request(questionId: string, fields: object = {}): PendingRequest {
  return {
    question_id: questionId,
    thread_id: "thread",
    payload: { kind: "confirm", prompt: "Go on?", details: null },
    created_at: 1_700_000_000.25,
    timeout_seconds: null,
    ...fields,
  };
}

/** Appends a question and a reply of a run, claims it before and completes it after. */
export async function completeRun(store: Checkpointer, threadId: string, runId: string): Promise<void> {
  await store.claimRun(threadId, runId);
  await store.append(threadId, [say(`ask ${runId}`, runId), reply(`reply ${runId}`, runId)]);
  await store.markRunComplete(threadId, runId);
}

/** Arrays within arrays: `[]` for 1, `[[]]` for 2. */
export function nested(levels: number): [] {
  let value: unknown[] = [];
  for (let i = 1; i < levels; i++) value = [value];
  return value as [];
}

/** What came of works that ran at once: the values of those that resolved and the reasons of those that were refused. */
export async function settle<T>(works: Promise<T>[]): Promise<{ resolved: T[]; refused: unknown[] }> {
  const results = await Promise.allSettled(works);
  return {
    resolved: results.filter((result) => result.status === "fulfilled").map((result) => result.value),
    refused: results.filter((result) => result.status === "rejected").map((result) => result.reason),
  };
}

/** The archives of a store that says it has them. */
export function archivesOf(store: Checkpointer): ArchiveStore {
  assert.ok(store.archives, "a store whose capabilities.archives is true should have archives");
  return store.archives;
}

/** The whole log of a thread. */
export async function logOf(store: Checkpointer, threadId: string): Promise<LogEntry[]> {
  return (await store.listMessages(threadId, { limit: 10_000 })).items;
}

/** Compacts a thread all but its last messages. @param keep how many of them stay active */
export async function compact(
  store: Checkpointer,
  threadId: string,
  keep: number,
  options: Partial<CompactOptions> = {},
): Promise<ArchiveInfo> {
  const last = (await logOf(store, threadId)).at(-1 - keep);
  assert.ok(last, "the thread should have more messages than are kept");
  return archivesOf(store).compact(threadId, { upTo: last.position, summary: "summary", ...options });
}

/** Appends what a user says and compacts all of the thread. */
export async function archiveTexts(store: Checkpointer, threadId: string, said: readonly string[]): Promise<void> {
  await store.append(
    threadId,
    said.map((text) => say(text)),
  );
  await compact(store, threadId, 0);
}

/** The whole texts of what a search finds, in the order of its hits. */
export async function found(store: Checkpointer, query: string, options: SearchOptions = {}): Promise<string[]> {
  const archives = archivesOf(store);
  const { hits } = await archives.search(query, options);
  const sources = hits.map(({ thread_id, archive_id, source_id }) =>
    archives.fetch(thread_id, { archiveId: archive_id, sourceId: source_id, limit: 1_000_000 }),
  );
  return (await Promise.all(sources)).map(({ text }) => text);
}
