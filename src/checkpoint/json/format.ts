/**
 * state.json: a snapshot of everything but the archived messages. People read it too, so a message is one line.
 *
 * ```json
 * {
 *   "everthread": 1,
 *   "snapshot": "0f3c…",
 *   "revision": 12,
 *   "threads": {
 *     "session": {
 *       "revision": 12,
 *       "parent_thread_id": null,
 *       "extra": {"title":"Ants"},
 *       "runs": [
 *         {"run_id":"r1","claimed_at":"2026-01-02T03:04:05.678Z","completed_at":null,"completion_seq":null}
 *       ],
 *       "pending": {"run_id":"r1","request":{"question_id":"q1",…}},
 *       "answers": [
 *         {"run_id":"r1","question_id":"q0","answer":true}
 *       ],
 *       "archives": [
 *         {"archive_id":"a1","directory":"a1","created_at":"…","up_to":8,"at_revision":10,"message_count":8,"first_at":"…","last_at":"…","summary":"…","pruned_at":null}
 *       ],
 *       "messages": [
 *         {"position":9,"created_at":"…","message":{"role":"user","content":[…]}}
 *       ]
 *     }
 *   },
 *   "removed": []
 * }
 * ```
 *
 * `snapshot` names the snapshot: a writer sees by it that the file is the one it knows. `revision` is the last position that was given to
 * a message. `removed` names directories of archives that are to go. A message is the text that was stored. What this version doesn't
 * know, and numbers that JavaScript would write otherwise, are written back as they are.
 */
import { archiveIdOf } from "../archive-rules.ts";
import type { RunInfo } from "../checkpointer.ts";
import { SchemaMismatchError } from "../errors.ts";
import { answerKey } from "../thread-changes.ts";
import { revisionOf, type StoredMessage } from "../thread-state.ts";
import { ObjectReader } from "./fields.ts";
import { isArchiveName } from "./names.ts";
import { arrayLines, type Fields, fieldsOf, objectLines, objectText } from "./raw.ts";
import { FORMAT_VERSION, type JsonArchive, type JsonThread, newThread, type State } from "./state.ts";

/** @param path the file, for errors @throws SchemaMismatchError for a newer version @throws Error when it is not a state.json */
export function readState(text: string, path: string): State {
  // What follows takes it for JSON.
  JSON.parse(text);
  const reader = new ObjectReader(text, "The file");
  checkVersion(reader, path);
  const snapshot = reader.stringOrNull("snapshot") ?? "";
  const revision = reader.whole("revision", 0);
  const threads = new Map<string, JsonThread>();
  for (const [threadId, threadText] of fieldsOf(reader.object("threads") ?? "{}")) {
    threads.set(threadId, readThread(threadId, threadText));
  }
  const removed = new Set(reader.list("removed").map((name) => archiveName(JSON.parse(name))));
  const last = Math.max(revision, ...[...threads.values()].map(revisionOf));
  return { snapshot, revision: last, threads, removed, rest: reader.rest };
}

export function checkVersion(reader: ObjectReader, path: string): void {
  const version = reader.whole("everthread", 1);
  if (version <= FORMAT_VERSION) return;
  throw new SchemaMismatchError(
    FORMAT_VERSION,
    version,
    `Use the newer Everthread that wrote ${path}. Nothing was changed.`,
  );
}

/** One damaged thread takes no other with it: its text is kept, and whoever asks for it is told. */
function readThread(threadId: string, text: string): JsonThread {
  try {
    return parseThread(new ObjectReader(text, `threads[${JSON.stringify(threadId)}]`), threadId);
  } catch (cause) {
    return { ...newThread(), damage: { text, cause } };
  }
}

function parseThread(reader: ObjectReader, threadId: string): JsonThread {
  const place = (list: string, i: number) => `threads[${JSON.stringify(threadId)}].${list}[${i}]`;
  const thread = newThread();
  const revision = reader.whole("revision", 0);
  const keep = (of: string, rest: Fields) => rest.size > 0 && thread.rests.set(of, rest);
  thread.parentThreadId = reader.stringOrNull("parent_thread_id");
  thread.extra = reader.object("extra");
  for (const [i, text] of reader.list("runs").entries()) {
    const run = new ObjectReader(text, place("runs", i));
    const runId = run.string("run_id");
    thread.runs.set(runId, readRun(runId, run));
    keep(`run:${runId}`, run.rest);
  }
  const pending = reader.object("pending");
  if (pending !== undefined) {
    const fields = new ObjectReader(pending, `threads[${JSON.stringify(threadId)}].pending`);
    const runId = fields.stringOrNull("run_id");
    const json = fields.object("request") ?? "{}";
    const questionId = new ObjectReader(json, "pending.request").string("question_id");
    thread.pending = { json, questionId, runId };
    keep(`pending:${questionId}`, fields.rest);
  }
  for (const [i, text] of reader.list("answers").entries()) {
    const fields = new ObjectReader(text, place("answers", i));
    const key = answerKey(fields.stringOrNull("run_id"), fields.string("question_id"));
    thread.answers.set(key, fields.text("answer") ?? "null");
    keep(`answer:${key}`, fields.rest);
  }
  for (const [i, text] of reader.list("archives").entries()) {
    const fields = new ObjectReader(text, place("archives", i));
    const archive = readArchiveMark(fields);
    thread.archives.push(archive);
    keep(`archive:${archive.archiveId}`, fields.rest);
  }
  thread.messages = readMessages(reader.list("messages"), (i) => place("messages", i), keep);
  keep("thread", reader.rest);
  checkOrder(thread, revision);
  return thread;
}

/** Messages that went missing from the end, or changed places, are damage: nothing else would tell of them. */
function checkOrder({ archives, messages }: JsonThread, revision: number): void {
  let last = 0;
  archives.forEach(({ archiveId, upTo }, i) => {
    if (archiveId !== archiveIdOf(i + 1)) throw new Error(`has archive ${archiveId} where a${i + 1} should be.`);
    if (upTo < last) throw new Error(`has archive ${archiveId} up to position ${upTo}, after ${last}.`);
    last = upTo;
  });
  for (const { position } of messages) {
    if (position <= last) throw new Error(`has a message at position ${position} after ${last}: positions must grow.`);
    last = position;
  }
  if (last !== revision) throw new Error(`has revision ${revision}, but its last message is at position ${last}.`);
}

/** @param keep takes the unknown fields of an entry, under "message:" and its position */
export function readMessages(
  texts: readonly string[],
  place: (index: number) => string,
  keep: (of: string, rest: Fields) => void,
): StoredMessage[] {
  return texts.map((text, i) => {
    const fields = new ObjectReader(text, place(i));
    const position = fields.whole("position", 1);
    const createdAt = fields.date("created_at");
    const json = fields.text("message") ?? "null";
    const runId: unknown = (JSON.parse(json) as { run_id?: unknown } | null)?.run_id;
    keep(`message:${position}`, fields.rest);
    return { position, createdAt, json, runId: typeof runId === "string" ? runId : null };
  });
}

function readRun(runId: string, fields: ObjectReader): RunInfo {
  const claimedAt = fields.date("claimed_at");
  const completedAt = fields.dateOrNull("completed_at");
  const seq = fields.text("completion_seq") ?? "null";
  return { runId, claimedAt, completedAt, completionSeq: seq === "null" ? null : wholeOf(seq) };
}

function wholeOf(text: string): number {
  return new ObjectReader(`{"completion_seq":${text}}`, "A run").whole("completion_seq", 1);
}

function readArchiveMark(fields: ObjectReader): JsonArchive {
  return {
    archiveId: fields.string("archive_id"),
    directory: archiveName(fields.string("directory")),
    createdAt: fields.date("created_at"),
    upTo: fields.whole("up_to", 0),
    atRevision: fields.whole("at_revision", 0),
    messageCount: fields.whole("message_count", 0),
    firstAt: fields.dateOrNull("first_at"),
    lastAt: fields.dateOrNull("last_at"),
    summary: fields.string("summary"),
    prunedAt: fields.dateOrNull("pruned_at"),
  };
}

function archiveName(name: unknown): string {
  if (typeof name === "string" && isArchiveName(name)) return name;
  throw new Error(`${JSON.stringify(name)} is no directory of an archive.`);
}

/** @throws RangeError when it is longer than a string can be */
export function stateText(state: State): string {
  const threads = [...state.threads].map(([threadId, thread]) => [threadId, threadText(thread)] as const);
  const fields: [string, string][] = [
    ["everthread", String(FORMAT_VERSION)],
    ["snapshot", json(state.snapshot)],
    ["revision", String(state.revision)],
    ["threads", objectLines(threads, "  ")],
    ["removed", json([...state.removed])],
  ];
  return `${objectLines([...fields, ...state.rest], "")}\n`;
}

function threadText(thread: JsonThread): string {
  if (thread.damage) return thread.damage.text;
  const { runs, pending, answers, archives, messages, rests } = thread;
  const withRest = (of: string, fields: [string, string][]) => objectText([...fields, ...(rests.get(of) ?? [])]);
  const list = (items: string[]) => arrayLines(items, "      ");
  const fields: [string, string][] = [
    ["revision", String(revisionOf(thread))],
    ["parent_thread_id", json(thread.parentThreadId)],
    ...(thread.extra === undefined ? [] : [["extra", thread.extra] as [string, string]]),
    ["runs", list([...runs.values()].map((run) => withRest(`run:${run.runId}`, runFields(run))))],
    [
      "pending",
      pending
        ? withRest(`pending:${pending.questionId}`, [
            ["run_id", json(pending.runId)],
            ["request", pending.json],
          ])
        : "null",
    ],
    ["answers", list([...answers].map(([key, answer]) => withRest(`answer:${key}`, answerFields(key, answer))))],
    ["archives", list(archives.map((one) => withRest(`archive:${one.archiveId}`, archiveFields(one))))],
    ["messages", list(messages.map((message) => messageText(message, rests)))],
  ];
  return objectLines([...fields, ...(rests.get("thread") ?? [])], "    ");
}

export function messageText({ position, createdAt, json: message }: StoredMessage, rests: JsonThread["rests"]): string {
  const rest = rests.get(`message:${position}`);
  // Written out, since this is most of a snapshot.
  const known = `"position":${position},"created_at":"${createdAt.toISOString()}","message":${message}`;
  return rest ? `{${known},${objectText(rest).slice(1)}` : `{${known}}`;
}

function runFields({ runId, claimedAt, completedAt, completionSeq }: RunInfo): [string, string][] {
  return [
    ["run_id", json(runId)],
    ["claimed_at", json(claimedAt)],
    ["completed_at", json(completedAt)],
    ["completion_seq", json(completionSeq)],
  ];
}

function answerFields(key: string, answer: string): [string, string][] {
  const [runId, questionId] = JSON.parse(key) as [string, string];
  return [
    ["run_id", json(runId === "" ? null : runId)],
    ["question_id", json(questionId)],
    ["answer", answer],
  ];
}

function archiveFields(archive: JsonArchive): [string, string][] {
  return [
    ["archive_id", json(archive.archiveId)],
    ["directory", json(archive.directory)],
    ["created_at", json(archive.createdAt)],
    ["up_to", String(archive.upTo)],
    ["at_revision", String(archive.atRevision)],
    ["message_count", String(archive.messageCount)],
    ["first_at", json(archive.firstAt)],
    ["last_at", json(archive.lastAt)],
    ["summary", json(archive.summary)],
    ["pruned_at", json(archive.prunedAt)],
  ];
}

function json(value: unknown): string {
  return JSON.stringify(value);
}
