/** Listings for people and tools: pages without gaps or repeats, in a fixed order, with limits that mean what they say. */
import assert from "node:assert/strict";
import type { Page } from "../checkpoint/checkpointer.ts";
import { userMessage } from "../messages/construct.ts";
import { conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, rejectsWith, reply, request, say, wrong } from "./tools.ts";

/** Reads all pages. @param between what happens between two pages (Default: nothing) */
async function allPages<T, Cursor>(
  read: (after: Cursor | undefined) => Promise<Page<T, Cursor>>,
  between: () => Promise<unknown> = async () => {},
): Promise<T[][]> {
  const pages: T[][] = [];
  let after: Cursor | undefined;
  do {
    const page = await read(after);
    pages.push(page.items);
    after = page.next ?? undefined;
    await between();
  } while (after !== undefined && pages.length < 100);
  return pages;
}

/** In code point order; in JavaScript's own order the astral one would stand before U+E000. */
const IN_ORDER = ["", "A", "a", "a ", "aa", "b", "e\u0301", "\u00e9", "\ud7ff", "\ue000", "\uffff", "\u{10000}", "😀"];
const ORDERED_IDS = IN_ORDER.map((suffix) => `id${suffix}`);
const BAD_LIMITS = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 10_001, null, "10"].map((value) =>
  wrong(value),
);

export const listingCases = [
  conformanceCase("A thread is listed with its counts, times, parent and whether it waits", async ({ store }) => {
    await completeRun(store, "a", "run");
    const revision = await store.append("a", [say("more")]);
    await store.savePendingRequest("a", request("q"));
    await store.fork("a", "b", { afterRunId: "run" });
    await store.saveExtra("c", { only: "extra" });
    const { items, next } = await store.listThreads();
    assert.equal(next, null);
    const [a, b, c] = items;
    assert.ok(a && b && c && items.length === 3);
    assert.ok(a.createdAt instanceof Date && a.updatedAt instanceof Date);
    assert.ok(a.createdAt.getTime() > 0 && a.createdAt.getTime() <= a.updatedAt.getTime());
    const { createdAt, updatedAt, ...rest } = a;
    assert.deepEqual(rest, { threadId: "a", messageCount: 3, revision, parentThreadId: null, pending: true });
    assert.deepEqual([b.threadId, b.messageCount, b.parentThreadId, b.pending], ["b", 3, "a", false]);
    assert.equal(b.revision, (await loaded(store, "b")).revision);
    assert.deepEqual(c, {
      threadId: "c",
      messageCount: 0,
      revision: 0,
      parentThreadId: null,
      createdAt: null,
      updatedAt: null,
      pending: false,
    });
  }),

  conformanceCase(
    "A thread of which anything is stored is listed, also by its whole id as prefix",
    async ({ store }) => {
      await store.saveHitlAnswer("answer", "q", 1);
      await store.saveExtra("extra", { a: 1 });
      await store.savePendingRequest("request", request("q"));
      await store.claimRun("run", "run");
      const listed = async (prefix: string): Promise<[string, boolean][]> =>
        (await store.listThreads({ prefix })).items.map((thread) => [thread.threadId, thread.pending]);
      const all: [string, boolean][] = [
        ["answer", false],
        ["extra", false],
        ["request", true],
        ["run", false],
      ];
      assert.deepEqual(await listed(""), all);
      for (const thread of all) assert.deepEqual(await listed(thread[0]), [thread]);
    },
  ),

  conformanceCase("An empty store and a missing thread have empty listings", async ({ store }) => {
    assert.deepEqual(await store.listThreads(), { items: [], next: null });
    await assertAbsent(store, "thread");
  }),

  conformanceCase("Messages are listed in order, with position, row and time", async ({ store }) => {
    await store.append("thread", [say("1"), reply("2")]);
    const revision = await store.append("thread", [say("3")]);
    const { items } = await store.listMessages("thread");
    assert.deepEqual(
      items.map((entry) => entry.message),
      (await loaded(store, "thread")).messages,
    );
    const positions = items.map((entry) => entry.position);
    assert.deepEqual(
      positions,
      positions.toSorted((a, b) => a - b),
    );
    assert.equal(positions.at(-1), revision);
    assert.equal(new Set(items.map((entry) => entry.rowRef)).size, 3);
    for (const { rowRef, createdAt } of items) assert.ok(rowRef !== "" && createdAt.getTime() > 0);
  }),

  conformanceCase(
    "W3 pages of messages of one time have each once, also while the thread changes",
    async ({ store }) => {
      const at = { timestamp: 1_700_000_000 };
      await store.append(
        "thread",
        Array.from({ length: 205 }, (_, i) => userMessage(`${i}`, { ...at, metadata: { i } })),
      );
      const pages = await allPages<{ message?: { metadata?: object } }, number>(
        (after) => store.listMessages("thread", { after }),
        () => store.saveExtra("thread", { touched: Math.random() }),
      );
      assert.deepEqual(
        pages.map((page) => page.length),
        [100, 100, 5],
      );
      assert.deepEqual(
        pages.flat().map((entry) => entry.message?.metadata),
        Array.from({ length: 205 }, (_, i) => ({ i })),
      );
    },
  ),

  conformanceCase("W3 pages of threads have each once, also while threads change", async ({ store }) => {
    const ids = Array.from({ length: 205 }, (_, i) => `thread ${String(i).padStart(3, "0")}`);
    await Promise.all(ids.map((id) => store.append(id, [say("hi")])));
    const pages = await allPages<{ threadId: string }, string>(
      (after) => store.listThreads({ after, limit: 100 }),
      () => store.append("thread 000", [say("moved")]),
    );
    assert.deepEqual(
      pages.map((page) => page.length),
      [100, 100, 5],
    );
    assert.deepEqual(
      pages.flat().map((thread) => thread.threadId),
      ids,
    );
  }),

  conformanceCase("A listing that ends with a full page has no next page", async ({ store }) => {
    await store.append("a", [say("1"), say("2")]);
    await store.append("b", [say("1")]);
    await completeRun(store, "b", "run");
    assert.equal((await store.listMessages("a", { limit: 2 })).next, null);
    assert.equal((await store.listThreads({ limit: 2 })).next, null);
    assert.equal((await store.listRuns("b", { limit: 1 })).next, null);
    const { items, next } = await store.listThreads({ limit: 1 });
    assert.deepEqual([items.length, next], [1, "a"]);
  }),

  conformanceCase(
    "Threads and runs are listed by id, in code point order, one page after another",
    async ({ store }) => {
      const shuffled = ORDERED_IDS.toSorted((a, b) => b.length - a.length || (a < b ? 1 : -1));
      await Promise.all(shuffled.map((id) => store.append(id, [say("hi")])));
      await Promise.all(shuffled.map((id) => store.claimRun("id", id)));
      const threads = await allPages<{ threadId: string }, string>((after) => store.listThreads({ after, limit: 3 }));
      assert.deepEqual(
        threads.flat().map((thread) => thread.threadId),
        ORDERED_IDS,
      );
      const runs = await allPages<{ runId: string }, string>((after) => store.listRuns("id", { after, limit: 3 }));
      assert.deepEqual(
        runs.flat().map((run) => run.runId),
        ORDERED_IDS,
      );
    },
  ),

  conformanceCase("A cursor need not name what is still there", async ({ store }) => {
    await store.append("b", [say("hi")]);
    assert.equal((await store.listThreads({ after: "a" })).items.length, 1);
    assert.equal((await store.listThreads({ after: "c" })).items.length, 0);
    assert.equal((await store.listMessages("b", { after: Number.MAX_SAFE_INTEGER })).items.length, 0);
    assert.equal((await store.listRuns("b", { after: "a" })).items.length, 0);
  }),

  conformanceCase("L30 a prefix is plain text", async ({ store }) => {
    const ids = ["a%c", "a*", "a[b]", "a\\b", "a_b", "abc", "Abc", "x') OR 1=1 --", "😀a", "é"];
    await Promise.all(ids.map((id) => store.append(id, [say("hi")])));
    const withPrefix = async (prefix: string): Promise<string[]> =>
      (await store.listThreads({ prefix })).items.map((thread) => thread.threadId);
    for (const prefix of ["a%", "a*", "a[", "a\\", "a_", "A", "ab", "x') OR 1=1 --", "😀", "é", "%", "zz", "abcd"]) {
      assert.deepEqual(
        await withPrefix(prefix),
        ids.filter((id) => id.startsWith(prefix)),
        `prefix ${prefix}`,
      );
    }
    assert.equal((await withPrefix("")).length, ids.length);
    const { items } = await store.listThreads({ prefix: "a", after: "a_b", limit: 5 });
    assert.deepEqual(
      items.map((thread) => thread.threadId),
      ["abc"],
    );
  }),

  conformanceCase(
    "W11 a limit of 0 gives nothing, none gives 100, and what is no limit is refused",
    async ({ store }) => {
      await store.append(
        "a",
        Array.from({ length: 101 }, () => say("hi")),
      );
      await store.append("b", [say("hi")]);
      await store.claimRun("a", "run");
      const listings = [
        (limit: number | undefined) => store.listThreads({ limit }),
        (limit: number | undefined) => store.listMessages("a", { limit }),
        (limit: number | undefined) => store.listRuns("a", { limit }),
      ];
      for (const list of listings) {
        assert.deepEqual((await list(0)).items, []);
        assert.deepEqual((await list(-0)).items, []);
        assert.equal((await list(1)).items.length, 1);
        for (const limit of BAD_LIMITS) await rejectsWith(list(limit), "invalid_argument");
      }
      assert.equal((await store.listMessages("a", { limit: undefined })).items.length, 100);
      assert.equal((await store.listMessages("a", { limit: 10_000 })).items.length, 101);
    },
  ),

  conformanceCase("What is no cursor or prefix is refused", async ({ store }) => {
    await rejectsWith(store.listThreads({ after: wrong(1) }), "invalid_argument");
    await rejectsWith(store.listThreads({ prefix: wrong(null) }), "invalid_argument");
    await rejectsWith(store.listRuns("thread", { after: wrong(1) }), "invalid_argument");
  }),

  conformanceCase("A run is listed with the times of its claim and completion", async ({ store }) => {
    await store.claimRun("thread", "open");
    await completeRun(store, "thread", "done");
    const [done, open] = (await store.listRuns("thread")).items;
    assert.ok(done && open);
    assert.ok(done.claimedAt.getTime() > 0 && done.completedAt instanceof Date);
    assert.ok(done.claimedAt.getTime() <= done.completedAt.getTime());
    assert.deepEqual([done.runId, done.completionSeq], ["done", 1]);
    assert.deepEqual([open.runId, open.completedAt, open.completionSeq], ["open", null, null]);
    assert.ok(open.claimedAt.getTime() > 0);
  }),
];
