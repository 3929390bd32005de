/** Archives of another store: put here as they stood there. */
import assert from "node:assert/strict";
import type { ArchivePart, Checkpointer, ThreadPart } from "../checkpoint/checkpointer.ts";
import { textOf } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import {
  archivesOf,
  archiveTexts,
  assertAbsent,
  compact,
  completeRun,
  loaded,
  logOf,
  rejectsWith,
  say,
  texts,
  wrong,
} from "./tools.ts";

const archiveCase = (name: string, body: (bench: Bench) => Promise<void>) => conformanceCase(name, body, ["archives"]);

// Whole seconds: CubeLoop's tables for MySQL hold no more of a time.
const at = (second: number): Date => new Date(Date.UTC(2020, 1, 29, 23, 59, second));
const entry = (text: string, second: number) => ({ message: say(text), createdAt: at(second) });
const part = (n: number, messageCount: number, other: Partial<ArchivePart> = {}): ArchivePart => ({
  archiveId: `a${n}`,
  createdAt: at(30 + n),
  messageCount,
  summary: `summary ${n}`,
  system: `system ${n}`,
  extra: { n },
  prunedAt: null,
  ...other,
});
const MESSAGES = ["1", "2", "3", "4", "5"].map((text, i) => entry(text, i));

/** A thread as an import takes it. */
async function partOf(store: Checkpointer, threadId: string): Promise<ThreadPart> {
  const log = await logOf(store, threadId);
  const { items } = await archivesOf(store).list(threadId);
  const archives = items.map(async ({ archiveId, createdAt, messageCount, summary, prunedAt, upTo, atRevision }) => {
    const gone = { system: null, extra: {} };
    const { system, extra } = prunedAt ? gone : await archivesOf(store).read(threadId, archiveId);
    const kept = log.filter(({ position }) => position > upTo && position <= atRevision).length;
    return { archiveId, createdAt, messageCount, kept, summary, prunedAt, system, extra };
  });
  return {
    messages: log.map(({ message, createdAt }) => ({ message: message ?? assert.fail("a damaged row"), createdAt })),
    runs: (await store.listRuns(threadId)).items,
    archives: await Promise.all(archives),
  };
}

/** All that can be read of a thread's archives, positions aside, which are each thread's own. */
async function archivesIn(store: Checkpointer, threadId: string) {
  const log = await logOf(store, threadId);
  const place = (position: number) => log.filter((one) => one.position <= position).length;
  const { items } = await archivesOf(store).list(threadId);
  return Promise.all(
    items.map(async (info) => {
      const places = { ...info, upTo: place(info.upTo), atRevision: place(info.atRevision) };
      if (info.prunedAt) return { ...places, messages: [] };
      const { messages, system, extra, previousSummary } = await archivesOf(store).read(threadId, info.archiveId);
      return { ...places, messages: messages.map(({ message }) => message), system, extra, previousSummary };
    }),
  );
}

export const archiveImportCases = [
  archiveCase("An imported thread has the archives that it had, pruned ones included", async (bench) => {
    const { store } = bench;
    await archiveTexts(store, "thread", ["1", "2"]);
    await completeRun(store, "thread", "run");
    await store.saveExtra("thread", { plan: [1] });
    await compact(store, "thread", 1, { summary: "second", system: "system" });
    await store.append("thread", [say("3"), say("4"), say("5")]);
    await compact(store, "thread", 2, { summary: "third" });
    await store.append("thread", [say("6")]);
    const whole = await partOf(store, "thread");
    await archivesOf(store).prune("thread", { keep: 2 });
    const pruned = await partOf(store, "thread");
    await store.importThread("whole", whole);
    await store.importThread("pruned", pruned);
    const later = await bench.again();
    const source = await archivesIn(later, "thread");
    assert.deepEqual(await archivesIn(later, "pruned"), source);
    assert.equal(source[0]?.messageCount, 0);
    const [first, ...rest] = await archivesIn(later, "whole");
    assert.deepEqual(
      [first?.messages.map((message) => message && textOf(message)), first?.prunedAt],
      [["1", "2"], null],
    );
    assert.deepEqual(
      rest.map(({ messages }) => messages),
      source.slice(1).map(({ messages }) => messages),
    );
    const { messages, summary, kept } = await loaded(later, "thread");
    for (const threadId of ["whole", "pruned"]) {
      const copy = await loaded(later, threadId);
      assert.deepEqual([copy.messages, copy.summary, copy.kept], [messages, summary, kept], threadId);
    }
    assert.equal(kept, 2);
    await later.fork("whole", "fork", { afterRunId: "run" });
    assert.equal((await loaded(later, "fork")).summary, "second");
    assert.deepEqual(await texts(later, "fork"), ["reply run", "3", "4", "5", "6"]);
  }),

  archiveCase("Archives are imported with their messages or after them, and put in place of others", async (bench) => {
    const { store } = bench;
    await store.importThread("thread", { messages: MESSAGES.slice(0, 2) });
    await store.importThread("thread", {
      messages: MESSAGES.slice(2),
      archives: [part(1, 3, { kept: 1, system: "" })],
    });
    let checkpoint = await loaded(store, "thread");
    assert.deepEqual(
      [checkpoint.messages.map(textOf), checkpoint.summary, checkpoint.kept],
      [["4", "5"], "summary 1", 1],
    );
    assert.equal((await archivesOf(store).read("thread", "a1")).system, "");
    const { revision } = checkpoint;
    const archives = [part(1, 0, { prunedAt: at(50), system: null, extra: {} }), part(2, 1), part(3, 3)];
    assert.equal(await store.importThread("thread", { archives }, { expectedRevision: revision }), revision);
    await store.importThread("thread", { extra: { a: 1 } });
    const later = await bench.again();
    checkpoint = await loaded(later, "thread");
    assert.deepEqual([checkpoint.messages.map(textOf), checkpoint.summary, checkpoint.kept], [["5"], "summary 3", 0]);
    const [one, two, three] = (await archivesOf(later).list("thread")).items;
    const log = (await logOf(later, "thread")).map(({ position }) => position);
    assert.deepEqual([one?.prunedAt, one?.createdAt, two?.upTo, three?.upTo], [at(50), at(31), log[0], log[3]]);
    const { messages, system, extra, previousSummary } = await archivesOf(later).read("thread", "a3");
    assert.deepEqual(
      messages.map(({ message }) => message && textOf(message)),
      ["2", "3", "4"],
    );
    assert.deepEqual([system, extra, previousSummary], ["system 3", { n: 3 }, "summary 2"]);
    const [info] = (await later.listThreads()).items;
    assert.deepEqual([info?.messageCount, info?.createdAt, info?.updatedAt], [5, at(0), at(4)]);
    assert.equal((await compact(later, "thread", 0)).archiveId, "a4");
    await later.importThread("thread", { archives: [] });
    assert.deepEqual(await texts(later, "thread"), ["1", "2", "3", "4", "5"]);
    assert.deepEqual((await archivesOf(later).list("thread")).items, []);
  }),

  archiveCase("Archives that can't be are refused whole, and a copy is taken of those that can", async (bench) => {
    const { store } = bench;
    const bad: [archives: unknown, code?: string][] = [
      [[part(2, 1)]],
      [[part(1, 1), part(3, 1)]],
      [[part(1, 1), part(1, 1)]],
      [[part(2, 1), part(1, 1)]],
      [[part(1, 1, { archiveId: "x1" })]],
      [[part(1, 1, { archiveId: wrong(1) })]],
      [[part(1, -1)]],
      [[part(1, 1.5)]],
      [[part(1, wrong(undefined))]],
      [[part(1, 6)]],
      [[part(1, 3), part(2, 3)]],
      [[part(1, 1, { kept: -1 })]],
      [[part(1, 1, { summary: wrong(undefined) })]],
      [[part(1, 1, { system: wrong(5) })]],
      [[part(1, 1, { createdAt: wrong("2020-02-29") })]],
      [[part(1, 1, { prunedAt: at(50) })]],
      [[part(1, 0, { prunedAt: new Date("never") })]],
      [[part(1, 1, { extra: wrong([]) })], "invalid_message"],
      [[part(1, 1, { extra: { n: Number.NaN } })], "invalid_message"],
      [[null]],
      ["a1"],
    ];
    for (const [archives, code = "invalid_argument"] of bad) {
      await rejectsWith(store.importThread("thread", wrong({ messages: MESSAGES, archives })), code);
    }
    await assertAbsent(store, "thread");
    const archive = part(1, 2);
    const imported = store.importThread("thread", { messages: MESSAGES, archives: [archive] });
    archive.createdAt.setTime(0);
    Object.assign(archive, { summary: "changed", messageCount: 1 });
    archive.extra.n = "changed";
    await imported;
    const { createdAt, summary, messageCount, extra } = await archivesOf(await bench.again()).read("thread", "a1");
    assert.deepEqual([createdAt, summary, messageCount, extra], [at(31), "summary 1", 2, { n: 1 }]);
  }),
];
