/** Files that CubeLoop wrote, of every schema it published: opened, compared, continued and forked. See test/golden/README.md. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CheckpointCorruptionError } from "../../src/checkpoint/errors.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { expectedOf, NAMES, query, rowsOf, schemaOf, TestDirectory } from "./files.ts";

/** The tables and columns of CubeLoop 0.15, as its own file has them. */
const CURRENT = "runs";

let directory: TestDirectory;
beforeEach(() => {
  directory = new TestDirectory();
});
afterEach(() => directory[Symbol.dispose]());

async function threadIds(checkpointer: SqliteCheckpointer): Promise<string[]> {
  const ids: string[] = [];
  let page = await checkpointer.listThreads({ limit: 7 });
  while (page.next !== null) {
    ids.push(...page.items.map((info) => info.threadId));
    page = await checkpointer.listThreads({ after: page.next, limit: 7 });
  }
  return [...ids, ...page.items.map((info) => info.threadId)];
}

describe.each(NAMES)("%s", (name) => {
  test("L32 everything in it is what CubeLoop itself loads", async () => {
    await using checkpointer = await SqliteCheckpointer.open(directory.golden(name));
    const expected = expectedOf(name);
    expect(new Set(await threadIds(checkpointer))).toEqual(new Set(expected.map(([threadId]) => threadId)));
    for (const [threadId, thread] of expected) {
      const loaded = await checkpointer.load(threadId);
      expect(loaded?.messages ?? []).toEqual(asStored(name, thread.messages, loaded?.messages));
      expect(loaded?.extra ?? {}).toEqual(thread.extra);
      expect(loaded?.parentThreadId ?? null).toBe(thread.parent_thread_id);
      const pending = await checkpointer.loadPending(threadId);
      expect(pending ?? null).toEqual(
        thread.pending && { request: thread.pending.request, runId: thread.pending.run_id },
      );
      for (const { run_id, question_id, answer } of thread.answers) {
        expect(await checkpointer.loadHitlAnswer(threadId, question_id, { runId: run_id })).toEqual(answer);
      }
      const runs = await checkpointer.listRuns(threadId);
      expect(runs.items.map((run) => ({ run_id: run.runId, completion_seq: run.completionSeq }))).toEqual(thread.runs);
      for (const [afterRunId, messages] of Object.entries(thread.snapshots)) {
        const snapshot = await checkpointer.snapshot(threadId, { afterRunId });
        expect(snapshot).toEqual(asStored(name, messages, snapshot));
      }
    }
  });

  test("L32 opening it brings the tables up to date and leaves every row byte for byte, again and again", async () => {
    const path = directory.golden(name);
    const original = directory.golden(name, "original");
    for (let i = 0; i < 2; i++) await (await SqliteCheckpointer.open(path)).close();
    expect(schemaOf(path)).toEqual(schemaOf(directory.golden(CURRENT, "current")));
    expect(rowsOf(path, original)).toEqual(rowsOf(original, original));
    const bytes = readFileSync(path);
    await (await SqliteCheckpointer.open(path)).close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(query(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  test("L32 a read-only open shows the same and changes nothing", async () => {
    const path = directory.golden(name);
    const before = { bytes: readFileSync(path), mtimeMs: statSync(path).mtimeMs };
    await using checkpointer = await SqliteCheckpointer.open(path, { readOnly: true });
    for (const [threadId, thread] of expectedOf(name)) {
      const loaded = await checkpointer.load(threadId);
      expect(loaded?.messages ?? []).toEqual(asStored(name, thread.messages, loaded?.messages));
      expect((await checkpointer.loadPending(threadId))?.request).toEqual(thread.pending?.request);
    }
    await checkpointer.close();
    expect(readFileSync(path).equals(before.bytes)).toBe(true);
    expect(statSync(path).mtimeMs).toBe(before.mtimeMs);
    expect(readdirSync(directory.path)).toEqual([`${name}.sqlite3`]);
  });

  test("G2 every thread of it can be continued, and forked without changing a byte of a message", async () => {
    const path = directory.golden(name);
    await using checkpointer = await SqliteCheckpointer.open(path);
    for (const [threadId, thread] of expectedOf(name)) {
      const before = (await checkpointer.load(threadId))?.messages ?? [];
      const runId = "everthread-run";
      await checkpointer.claimRun(threadId, runId);
      const added = [userMessage("go on", { run_id: runId }), assistantMessage("gone on", { run_id: runId })];
      await checkpointer.append(threadId, added);
      await checkpointer.markRunComplete(threadId, runId);
      expect((await checkpointer.load(threadId))?.messages).toEqual([...before, ...added]);
      const completed = thread.runs.filter((run) => run.completion_seq !== null);
      const { items } = await checkpointer.listRuns(threadId);
      expect(items.find((run) => run.runId === runId)?.completionSeq).toBe(completed.length + 1);

      const fork = `${[...threadId].slice(0, 200).join("")}/fork`;
      await checkpointer.fork(threadId, fork, { afterRunId: runId, metadata: { by: "everthread" } });
      const takes = (message: Message) =>
        (message.run_id ?? null) === null || completed.some((run) => run.run_id === message.run_id);
      const taken = before.filter(takes);
      const forked = await checkpointer.load(fork);
      expect(forked?.messages).toEqual([...taken, ...added]);
      expect(forked?.extra).toEqual({ ...thread.extra, fork: { by: "everthread" } });
      expect(forked?.parentThreadId).toBe(threadId);
      const rows = query(path, "SELECT thread_id, message_json FROM messages ORDER BY id");
      const textsOf = (id: string) => rows.flatMap((row) => (row.thread_id === id ? [String(row.message_json)] : []));
      const own = textsOf(threadId).filter((text) => takes(JSON.parse(text) as Message) || text.includes(runId));
      expect(textsOf(fork)).toEqual(own);
    }
  });
});

/**
 * What was loaded of the mixed file came through a newer release than wrote it, which filled in defaults of newer fields;
 * here a message is its stored JSON. So there, defaults that the row lacks are left out before the two are compared.
 */
function asStored(name: string, expected: readonly Message[], stored: readonly Message[] = []): unknown[] {
  if (name !== "mixed") return [...expected];
  return expected.map((message, i) => {
    const row: object = stored[i] ?? {};
    const isAdded = ([key, value]: [string, unknown]) => !Object.hasOwn(row, key) && (value === null || value === "");
    return Object.fromEntries(Object.entries(message).filter((entry) => !isAdded(entry)));
  });
}

test("G2 fifty threads of a file from before runs are listed, loaded and forked", async () => {
  await using checkpointer = await SqliteCheckpointer.open(directory.golden("cubepi-0.7.0"));
  const page = await checkpointer.listThreads({ prefix: "thread-", limit: 100 });
  expect(page.items).toHaveLength(50);
  expect(page.items.map(({ messageCount, pending }) => ({ messageCount, pending }))).toEqual(
    Array.from({ length: 50 }, () => ({ messageCount: 2, pending: false })),
  );
  for (const [i, { threadId }] of page.items.entries()) {
    const messages = (await checkpointer.load(threadId))?.messages;
    expect(messages?.map((message) => message.content)).toEqual([
      [{ type: "text", text: `question ${i}` }],
      [{ type: "text", text: `answer ${i}` }],
    ]);
    await checkpointer.claimRun(threadId, "first");
    await checkpointer.markRunComplete(threadId, "first");
    await checkpointer.fork(threadId, `fork-${threadId}`, { afterRunId: "first" });
    expect((await checkpointer.load(`fork-${threadId}`))?.messages).toEqual(messages);
  }
});

test("G10 a thread of rows without runs, with runs, and without again loads in order and forks by the rule", async () => {
  await using checkpointer = await SqliteCheckpointer.open(directory.golden("mixed"));
  const texts = (messages: readonly Message[] = []) =>
    messages.map((message) => message.content.map((block) => (block.type === "text" ? block.text : block.type)).join());
  const all = ["before runs", "with a run", "After runs began.", "of a run that is open", "from the old release again"];
  expect(texts((await checkpointer.load("mixed"))?.messages)).toEqual(all);
  await checkpointer.fork("mixed", "fork", { afterRunId: "run-1" });
  const completed = all.filter((text) => text !== "of a run that is open");
  expect(texts((await checkpointer.load("fork"))?.messages)).toEqual(completed);
});

test("a row with NaN, which only Python reads, is reported as damaged and harms no other thread", async () => {
  await using checkpointer = await SqliteCheckpointer.open(directory.golden("not-json"));
  const failure = await checkpointer.load("nan").catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CheckpointCorruptionError);
  expect(failure).toMatchObject({ threadId: "nan", backend: "sqlite", rowRef: "messages.id=2" });
  const log = await checkpointer.listMessages("nan");
  expect(log.items.map((entry) => entry.error !== undefined)).toEqual([false, true]);
  expect((await checkpointer.load("sound"))?.messages).toHaveLength(1);
});
