/** Search: whose archives are looked through, what is gone from them, and when a search stops. */
import assert from "node:assert/strict";
import { type Bench, conformanceCase } from "./case.ts";
import { archivesOf, archiveTexts, compact, completeRun, found, loaded, logOf, rejectsWith, say } from "./tools.ts";

const searchCase = (name: string, body: (bench: Bench) => Promise<void>) =>
  conformanceCase(name, body, ["archives", "search"]);

/** Which threads a search finds something in. */
async function threadsWith({ store }: Pick<Bench, "store">, query: string, threadId?: string): Promise<string[]> {
  const { hits } = await archivesOf(store).search(query, { threadId });
  return hits.map(({ thread_id }) => thread_id).sort();
}

export const archiveScopeCases = [
  searchCase("S15 L30 a search is of one thread, or of all of the store", async (bench) => {
    const ids = ["a", "A", "a ", "%", "_", "x') OR 1=1 --", "é", "e\u0301", "a\\", "x".repeat(255)];
    for (const id of ids) await archiveTexts(bench.store, id, ["the needle"]);
    await archiveTexts(bench.store, "hay", ["only hay"]);
    const store = await bench.again();
    for (const query of ["needle", "ne"]) {
      assert.deepEqual(await threadsWith({ store }, query), ids.toSorted());
      for (const id of ids) assert.deepEqual(await threadsWith({ store }, query, id), [id]);
      for (const id of ["hay", "missing", "*"]) assert.deepEqual(await threadsWith({ store }, query, id), []);
    }
  }),

  searchCase("A limit is of the hits in scope", async ({ store }) => {
    await archiveTexts(store, "one", ["needle 1", "needle 2"]);
    await archiveTexts(
      store,
      "two",
      Array.from({ length: 30 }, (_, i) => `needle of two, ${i}`),
    );
    for (const query of ["needle", "ne"]) {
      const { hits, has_more } = await archivesOf(store).search(query, { threadId: "one", limit: 2 });
      assert.deepEqual([hits.map(({ preview }) => preview), has_more], [["needle 2", "needle 1"], false]);
      assert.equal((await archivesOf(store).search(query, { threadId: "one", limit: 1 })).has_more, true);
      assert.equal((await archivesOf(store).search(query, { limit: 32 })).has_more, false);
    }
  }),

  searchCase("S15 what a fork copied is found in the fork when that is asked for", async (bench) => {
    const { store } = bench;
    await completeRun(store, "source", "needle");
    await store.append("source", [say("open needle", "open")]);
    await compact(store, "source", 0);
    await store.append("source", [say("after")]);
    await store.fork("source", "dropped", { afterRunId: "needle" });
    await completeRun(store, "source", "later");
    await store.fork("source", "fork", { afterRunId: "later" });
    for (const query of ["needle", "le"]) {
      assert.deepEqual(await found(store, query, { threadId: "source" }), [
        "open needle",
        "reply needle",
        "ask needle",
      ]);
      assert.deepEqual(await found(store, query, { threadId: "fork" }), ["reply needle", "ask needle"]);
      // The fork ends before its source's archive does, so all of it is active.
      assert.deepEqual(await found(store, query, { threadId: "dropped" }), []);
    }
    await store.deleteThread("source");
    const later = await bench.again();
    assert.deepEqual(await threadsWith({ store: later }, "needle"), ["fork", "fork"]);
    assert.deepEqual(await found(later, "needle", { threadId: "fork" }), ["reply needle", "ask needle"]);
  }),

  searchCase("S12 S14 what was deleted is found no more, also when its thread is begun anew", async (bench) => {
    const { store } = bench;
    for (let round = 1; round <= 3; round++) {
      await archiveTexts(store, "thread", [`zebra ${round}`, "both"]);
      await archiveTexts(store, "other", [`quagga ${round}`, "both"]);
      assert.deepEqual(await found(store, "zebra"), [`zebra ${round}`]);
      assert.deepEqual(await threadsWith({ store }, "both", "thread"), ["thread"]);
      await store.deleteThread("thread");
      await store.deleteThread("thread");
      for (const query of ["zebra", "ze"]) assert.deepEqual(await found(store, query), []);
      assert.deepEqual(
        await found(store, "quagga", { limit: round }),
        Array.from({ length: round }, (_, i) => `quagga ${round - i}`),
      );
    }
    const later = await bench.again();
    await later.append("thread", [say("zebra, active")]);
    assert.deepEqual(await found(later, "zebra"), []);
    await compact(later, "thread", 0);
    assert.deepEqual(await found(later, "zebra"), ["zebra, active"]);
    if (later.capabilities.integrityCheck === true) assert.deepEqual(await later.checkIntegrity(), []);
  }),

  searchCase("What retention removed is found no more, and fetch says so", async (bench) => {
    const { store } = bench;
    for (let i = 1; i <= 3; i++) await archiveTexts(store, "thread", [`needle ${i}`]);
    const { hits } = await archivesOf(store).search("needle");
    await archivesOf(store).prune("thread", { keep: 1 });
    const later = await bench.again();
    for (const query of ["needle", "ne"]) assert.deepEqual(await found(later, query), ["needle 3"]);
    for (const { archive_id, source_id } of hits.slice(1)) {
      const fetch = archivesOf(later).fetch("thread", { archiveId: archive_id, sourceId: source_id });
      await rejectsWith(fetch, "archive_pruned");
    }
    await later.append("thread", [say("needle 4")]);
    await compact(later, "thread", 0);
    assert.deepEqual(await found(later, "needle"), ["needle 4", "needle 3"]);
    if (later.capabilities.integrityCheck === true) assert.deepEqual(await later.checkIntegrity(), []);
  }),

  searchCase("Imported archives are searched, and no longer when others take their place", async (bench) => {
    const { store } = bench;
    const createdAt = new Date(Date.UTC(2020, 0, 1));
    const archive = { archiveId: "a1", createdAt, summary: "", system: null, extra: {}, prunedAt: null };
    const messages = [1, 2, 3].map((i) => ({ message: say(`needle ${i}`), createdAt }));
    await store.importThread("thread", { messages, archives: [{ ...archive, messageCount: 2 }] });
    assert.deepEqual(await found(store, "needle"), ["needle 2", "needle 1"]);
    await store.importThread("thread", { archives: [{ ...archive, messageCount: 1 }] });
    assert.deepEqual(await found(store, "needle"), ["needle 1"]);
    const second = { ...archive, archiveId: "a2", messageCount: 2 };
    await store.importThread("thread", { archives: [{ ...archive, messageCount: 1 }, second] });
    const later = await bench.again();
    const { hits } = await archivesOf(later).search("needle", { threadId: "thread" });
    assert.deepEqual(
      hits.map(({ archive_id, preview }) => [archive_id, preview]),
      [
        ["a2", "needle 3"],
        ["a2", "needle 2"],
        ["a1", "needle 1"],
      ],
    );
    await later.importThread("thread", { archives: [] });
    assert.deepEqual(await found(later, "needle"), []);
  }),

  conformanceCase(
    "Two stores on the same data find what the other one set aside or removed",
    async ({ store, other }) => {
      const second = await other();
      await archiveTexts(store, "thread", ["needle 1"]);
      assert.deepEqual(await found(second, "needle"), ["needle 1"]);
      await archiveTexts(second, "thread", ["needle 2"]);
      assert.deepEqual(await found(store, "needle"), ["needle 2", "needle 1"]);
      await archivesOf(store).prune("thread", { keep: 1 });
      for (const query of ["needle", "ne"]) assert.deepEqual(await found(second, query), ["needle 2"]);
      await second.deleteThread("thread");
      assert.deepEqual(await found(store, "needle"), []);
    },
    ["archives", "search", "multiProcess"],
  ),

  searchCase("A search stops at its time limit, or when it is told to, and the store goes on", async ({ store }) => {
    await archiveTexts(store, "small", ["needle"]);
    const stopped = { threadId: "small", signal: AbortSignal.abort(new Error("before")) };
    await assert.rejects(archivesOf(store).search("needle", stopped), { message: "before" });
    // More than can be read in a millisecond: text that has the query's characters everywhere, and nowhere together.
    const text = "x y ".repeat(1000);
    await archiveTexts(
      store,
      "thread",
      Array.from({ length: 1500 }, (_, i) => `${i} ${text}`),
    );
    const archives = archivesOf(store);
    await rejectsWith(archives.search("xy", { timeLimitMs: 1 }), "search_timeout", { limitMs: 1 });
    const reason = new Error("enough");
    const stop = new AbortController();
    const search = archives.search("xy", { signal: stop.signal, timeLimitMs: 600_000 });
    stop.abort(reason);
    await assert.rejects(search, reason);
    await assert.rejects(archives.search("1499 x", { signal: AbortSignal.abort(reason) }), reason);
    const { signal } = new AbortController();
    assert.equal((await archives.search("1499 x", { signal, timeLimitMs: 600_000 })).hits.length, 1);
    assert.equal((await loaded(store, "thread")).messages.length, 0);
    assert.equal((await logOf(store, "thread")).length, 1500);
  }),

  searchCase("D14 close waits for a search in flight, or stops it", async ({ store }) => {
    await archiveTexts(store, "thread", ["needle"]);
    let settled = false;
    const search = archivesOf(store)
      .search("needle")
      .then(
        ({ hits }) => assert.equal(hits.length, 1),
        (error: unknown) => rejectsWith(Promise.reject(error), "store_closed"),
      )
      .finally(() => {
        settled = true;
      });
    await store.close();
    await search;
    assert.ok(settled);
  }),
];
