/** What archives refuse, and that what is refused changes nothing; how they are listed; the end of a thread or of a store. */
import assert from "node:assert/strict";
import type { ArchiveStore } from "../checkpoint/archives.ts";
import { textOf } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import {
  archivesOf,
  archiveTexts,
  assertAbsent,
  compact,
  loaded,
  logOf,
  rejectsWith,
  say,
  texts,
  wrong,
} from "./tools.ts";

const archiveCase = (name: string, body: (bench: Bench) => Promise<void>) => conformanceCase(name, body, ["archives"]);

const NO_POSITION = [
  0,
  -1,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 53,
  wrong("1"),
  wrong(null),
  wrong(undefined),
];

/** Every method, with arguments that are fine and with some that are not: closed is said first. */
const METHODS: [name: string, call: (archives: ArchiveStore) => Promise<unknown>][] = [
  ["compact", (archives) => archives.compact("thread", { upTo: 1, summary: "" })],
  ["compact, wrongly", (archives) => archives.compact("", wrong({ upTo: "x" }))],
  ["list", (archives) => archives.list("thread")],
  ["list, wrongly", (archives) => archives.list("thread", { limit: -1 })],
  ["read", (archives) => archives.read("thread", "a1")],
  ["read, wrongly", (archives) => archives.read("\0", wrong(1))],
  ["contextAfter", (archives) => archives.contextAfter("thread", { afterRunId: "run" })],
  ["contextAfter, wrongly", (archives) => archives.contextAfter("thread", { afterRunId: "" })],
  ["prune", (archives) => archives.prune("thread", { keep: 1 })],
  ["prune, wrongly", (archives) => archives.prune("thread", { keep: -1 })],
  ["search", (archives) => archives.search("text")],
  ["search, wrongly", (archives) => archives.search(wrong(1), { limit: -1 })],
  ["fetch", (archives) => archives.fetch("thread", { archiveId: "a1", sourceId: "1" })],
  ["fetch, wrongly", (archives) => archives.fetch("thread", wrong({ archiveId: 1, sourceId: null, limit: 0 }))],
];

/** Asserts that the backend says that it can't, and why. */
async function rejectsAsUnsupported(work: Promise<unknown>, reason: string): Promise<void> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  await rejectsWith(Promise.reject(error), "unsupported");
  assert.ok(error instanceof Error && error.message.includes(reason), "the error should give the reason");
}

export const archiveDoorCases = [
  conformanceCase("There are archives where the capability says so, and search only there", async ({ store }) => {
    const { archives, search } = store.capabilities;
    assert.equal(store.archives !== undefined, archives === true);
    if (archives !== true) assert.notEqual(search, true);
    if (!store.archives || search === true) return;
    await archiveTexts(store, "thread", ["text"]);
    await rejectsAsUnsupported(store.archives.search("text"), search.reason);
    await rejectsAsUnsupported(store.archives.fetch("thread", { archiveId: "a1", sourceId: "1" }), search.reason);
  }),

  conformanceCase("A store that keeps no archives takes none", async ({ store }) => {
    const { archives } = store.capabilities;
    if (archives === true) return;
    const createdAt = new Date();
    const messages = [{ message: say("1"), createdAt }];
    const archive = {
      archiveId: "a1",
      createdAt,
      messageCount: 1,
      summary: "",
      system: null,
      extra: {},
      prunedAt: null,
    };
    await rejectsAsUnsupported(store.importThread("thread", { messages, archives: [archive] }), archives.reason);
    await assertAbsent(store, "thread");
    const revision = await store.importThread("thread", { messages, archives: [] });
    assert.equal((await loaded(store, "thread")).revision, revision);
  }),

  archiveCase("A compaction that is refused leaves the thread as it was", async (bench) => {
    const { store } = bench;
    const revision = await store.append("thread", [say("1"), say("2"), say("3")]);
    await compact(store, "thread", 2);
    const [first, second] = (await logOf(store, "thread")).map(({ position }) => position);
    const before = await loaded(store, "thread");
    const to = (upTo: unknown, other: object = {}) =>
      archivesOf(store).compact("thread", wrong({ upTo, summary: "new", ...other }));
    for (const upTo of [...NO_POSITION, revision + 1]) await rejectsWith(to(upTo), "invalid_argument");
    for (const summary of [undefined, null, 5, ["x"]]) await rejectsWith(to(second, { summary }), "invalid_argument");
    for (const system of [5, ["x"]]) await rejectsWith(to(second, { system }), "invalid_argument");
    for (const bad of [-1, 1.5, wrong("1"), wrong(null)]) {
      await rejectsWith(to(second, { expectedRevision: bad }), "invalid_argument");
    }
    const moved = { threadId: "thread", expected: revision - 1, actual: revision };
    await rejectsWith(to(second, { expectedRevision: revision - 1 }), "thread_conflict", moved);
    await rejectsWith(to(first), "compaction_conflict", { threadId: "thread", upTo: first, compactedUpTo: first });
    const later = await bench.again();
    assert.deepEqual(await later.load("thread"), before);
    assert.equal((await archivesOf(later).list("thread")).items.length, 1);
    await compact(later, "thread", 1);
    const back = archivesOf(later).compact("thread", { upTo: first ?? 0, summary: "back" });
    await rejectsWith(back, "compaction_conflict", { upTo: first, compactedUpTo: second });
  }),

  archiveCase("A compaction ends at a message of its own thread", async ({ store }) => {
    for (const threadId of ["thread", "other", "thread", "other", "thread"]) await store.append(threadId, [say("1")]);
    const log = (await logOf(store, "thread")).map(({ position }) => position);
    const last = log.at(-1) ?? 0;
    // Where positions are the store's, those in between are the other thread's.
    for (let upTo = 1; upTo <= last + 1; upTo++) {
      if (log.includes(upTo)) continue;
      await rejectsWith(archivesOf(store).compact("thread", { upTo, summary: "" }), "invalid_argument");
    }
    assert.equal((await loaded(store, "thread")).messages.length, 3);
    assert.equal((await compact(store, "thread", 1)).messageCount, 2);
    assert.equal((await loaded(store, "other")).messages.length, 2);
  }),

  archiveCase("L6 a compaction neither makes a thread nor revives one", async ({ store }) => {
    const archives = archivesOf(store);
    await rejectsWith(archives.compact("missing", { upTo: 1, summary: "" }), "thread_not_found");
    await rejectsWith(archives.compact("missing", { upTo: 1, summary: "", expectedRevision: 0 }), "thread_not_found");
    const revision = await store.append("thread", [say("1")]);
    await store.deleteThread("thread");
    const late = { upTo: revision, summary: "late", expectedRevision: revision };
    await rejectsWith(archives.compact("thread", late), "thread_conflict", { expected: revision, actual: 0 });
    await rejectsWith(archives.compact("thread", { upTo: revision, summary: "late" }), "thread_not_found");
    for (const threadId of ["missing", "thread"]) {
      await assertAbsent(store, threadId);
      assert.deepEqual((await archives.list(threadId)).items, []);
    }
    await store.importThread("nothing", { messages: [] });
    await rejectsWith(archives.compact("nothing", { upTo: 1, summary: "" }), "thread_not_found");
    await store.saveExtra("extra only", { a: 1 });
    await rejectsWith(archives.compact("extra only", { upTo: 1, summary: "" }), "invalid_argument");
    assert.equal((await loaded(store, "extra only")).summary, undefined);
  }),

  archiveCase("Archives are listed oldest first, page by page", async ({ store }) => {
    for (let i = 1; i <= 12; i++) await archiveTexts(store, "thread", [`${i}`]);
    await archiveTexts(store, "other", ["x"]);
    const archives = archivesOf(store);
    const all = Array.from({ length: 12 }, (_, i) => `a${i + 1}`);
    for (const limit of [1, 5, 11, 12, 100]) {
      const seen: string[] = [];
      let after: string | undefined;
      let pages = 0;
      do {
        const { items, next } = await archives.list("thread", { after, limit });
        seen.push(...items.map(({ archiveId }) => archiveId));
        after = next ?? undefined;
        pages++;
      } while (after !== undefined && pages < 20);
      assert.deepEqual([seen, pages], [all, Math.ceil(12 / limit)], `by ${limit}`);
    }
    const none = await archives.list("thread", { limit: 0 });
    assert.deepEqual(none.items, []);
    assert.ok(none.next !== null);
    assert.equal((await archives.list("thread", { after: none.next })).items.length, 12);
    assert.deepEqual(await archives.list("thread", { after: "a12" }), { items: [], next: null });
    assert.equal((await archives.list("thread")).next, null);
    for (const limit of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 10_001, wrong("1"), wrong(null)]) {
      await rejectsWith(archives.list("thread", { limit }), "invalid_argument");
    }
    for (const after of ["x", "1", "a-1", "a1' OR 1=1 --", wrong(1), wrong(null)]) {
      await rejectsWith(archives.list("thread", { after }), "invalid_argument");
    }
  }),

  archiveCase("L30 an archive is read by its own id in its own thread", async ({ store }) => {
    await archiveTexts(store, "thread", ["1"]);
    await archiveTexts(store, "other", ["1"]);
    await archiveTexts(store, "other", ["2"]);
    const archives = archivesOf(store);
    const bad = [
      "a2",
      "a0",
      "a01",
      "A1",
      " a1",
      "a1 ",
      "1",
      "",
      "a%",
      "a1' OR 1=1 --",
      "a1\0",
      "a99999999999999999999",
    ];
    for (const archiveId of bad) await rejectsWith(archives.read("thread", archiveId), "archive_not_found");
    assert.deepEqual(
      (await archives.read("other", "a2")).messages.map(({ message }) => message && textOf(message)),
      ["2"],
    );
    for (const threadId of ["", "\0", "x".repeat(256), wrong(5), "\ud83d"]) {
      await rejectsWith(archives.read(threadId, "a1"), "invalid_id");
      await rejectsWith(archives.list(threadId), "invalid_id");
      await rejectsWith(archives.compact(threadId, { upTo: 1, summary: "" }), "invalid_id");
      await rejectsWith(archives.prune(threadId, { keep: 1 }), "invalid_id");
      await rejectsWith(archives.contextAfter(threadId, { afterRunId: "run" }), "invalid_id");
    }
  }),

  archiveCase("What comes out of the archives is a copy, and so is what went in", async ({ store }) => {
    await store.append("thread", [say("1"), say("2")]);
    const [first, second] = (await logOf(store, "thread")).map(({ position }) => position);
    const options = { upTo: first ?? 0, summary: "summary", system: "system" };
    const work = archivesOf(store).compact("thread", options);
    Object.assign(options, { upTo: second, summary: "changed", system: "changed" });
    const info = await work;
    const read = async () => [await archivesOf(store).list("thread"), await archivesOf(store).read("thread", "a1")];
    const before = structuredClone(await read());
    assert.deepEqual([info.upTo, info.summary], [first, "summary"]);
    info.createdAt.setTime(0);
    const { items } = await archivesOf(store).list("thread");
    for (const item of items) item.createdAt.setTime(0);
    const archive = await archivesOf(store).read("thread", "a1");
    archive.createdAt.setTime(0);
    archive.extra.changed = true;
    for (const entry of archive.messages) {
      entry.createdAt.setTime(0);
      entry.message?.content.splice(0);
    }
    assert.deepEqual(await read(), before);
  }),

  archiveCase("S14 deleteThread erases the archives too, and a thread begun anew has none", async (bench) => {
    const { store } = bench;
    for (const threadId of ["thread", "other"]) {
      await archiveTexts(store, threadId, ["1"]);
      await archiveTexts(store, threadId, ["2"]);
    }
    const other = [await store.load("other"), await archivesOf(store).list("other")];
    assert.equal(await store.deleteThread("thread"), true);
    assert.equal(await store.deleteThread("thread"), false);
    const later = await bench.again();
    const archives = archivesOf(later);
    assert.deepEqual((await archives.list("thread")).items, []);
    await rejectsWith(archives.read("thread", "a1"), "archive_not_found");
    await assertAbsent(later, "thread");
    await later.append("thread", [say("anew"), say("more")]);
    assert.deepEqual(
      [await texts(later, "thread"), (await loaded(later, "thread")).summary],
      [["anew", "more"], undefined],
    );
    const { archiveId, messageCount } = await compact(later, "thread", 1);
    assert.equal(messageCount, 1);
    assert.equal((await archives.read("thread", archiveId)).previousSummary, null);
    assert.deepEqual([await later.load("other"), await archives.list("other")], other);
  }),

  archiveCase("D14 every method of the archives is refused after close", async ({ store }) => {
    await archiveTexts(store, "thread", ["1"]);
    const archives = archivesOf(store);
    await store.close();
    for (const [name, call] of METHODS) {
      const error: unknown = await call(archives).catch((thrown: unknown) => thrown);
      assert.equal((error as { code?: string }).code, "store_closed", `${name}: ${String(error)}`);
    }
  }),

  archiveCase("D14 close waits for a compaction in flight", async (bench) => {
    await bench.store.append("thread", [say("1"), say("2")]);
    const upTo = (await logOf(bench.store, "thread"))[0]?.position ?? 0;
    let settled = false;
    const work = archivesOf(bench.store)
      .compact("thread", { upTo, summary: "in flight" })
      .then(() => {
        settled = true;
      });
    await bench.store.close();
    await work;
    assert.ok(settled);
    if (bench.store.capabilities.durable === true) {
      assert.equal((await loaded(await bench.again(), "thread")).summary, "in flight");
    }
  }),

  conformanceCase(
    "A damaged message can be set aside: the thread loads again, and the archive names the row",
    async ({ store, plantRow }) => {
      await store.append("thread", [say("1")]);
      await plantRow("thread", '{"role":"developer","content":[]}');
      await store.append("thread", [say("2"), say("3")]);
      await rejectsWith(store.load("thread"), "checkpoint_corruption");
      await compact(store, "thread", 1);
      assert.deepEqual(await texts(store, "thread"), ["3"]);
      const { messages } = await archivesOf(store).read("thread", "a1");
      assert.deepEqual(
        messages.map(({ message }) => message && textOf(message)),
        ["1", undefined, "2"],
      );
      await rejectsWith(Promise.reject(messages[1]?.error), "checkpoint_corruption", { rowRef: messages[1]?.rowRef });
    },
    ["archives", "plantRow"],
  ),
];
