/** What archives refuse, and that what is refused changes nothing; how they are listed and read. */
import assert from "node:assert/strict";
import { textOf } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import { archivesOf, archiveTexts, assertAbsent, compact, loaded, logOf, rejectsWith, say, wrong } from "./tools.ts";

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

export const archiveDoorCases = [
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
    const [first = 1, last = 0] = [log[0], log.at(-1)];
    // Where positions are the store's, those in between are the other thread's.
    for (let upTo = Math.max(1, first - 2); upTo <= last + 1; upTo++) {
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
];
