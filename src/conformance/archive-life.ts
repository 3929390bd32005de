/** The life of archives: where there are any, how they end with their thread or their store, and damage in them. */
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

export const archiveLifeCases = [
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
