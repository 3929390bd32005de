/** Appending: all or none, revisions, and conflicts. */
import assert from "node:assert/strict";
import { conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, rejectsWith, reply, request, say, settle, texts, wrong } from "./tools.ts";

/** What is no revision. */
const BAD_REVISIONS = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1", null].map((value) => wrong(value));

export const appendCases = [
  conformanceCase("A thread that has nothing is undefined, and an empty append changes nothing", async ({ store }) => {
    assert.equal(await store.load("thread"), undefined);
    assert.equal(await store.append("thread", []), 0);
    await assertAbsent(store, "thread");
    const revision = await store.append("thread", [say("hi")]);
    assert.equal(await store.append("thread", []), revision);
    assert.deepEqual(await texts(store, "thread"), ["hi"]);
  }),

  conformanceCase("A thread loads whole: messages, extra, revision and parent", async ({ store }) => {
    const messages = [say("hi"), reply("hello")];
    const revision = await store.append("thread", messages);
    await store.saveExtra("thread", { plan: [1, 2] });
    assert.deepEqual(await store.load("thread"), {
      messages,
      extra: { plan: [1, 2] },
      revision,
      parentThreadId: null,
      tail: false,
    });
  }),

  conformanceCase("The revision grows with every append and is what load gives", async ({ store }) => {
    let last = 0;
    for (const batch of [[say("1")], [say("2"), say("3")], [say("4")]]) {
      const revision = await store.append("thread", batch);
      assert.ok(Number.isSafeInteger(revision) && revision > last, `${revision} should be over ${last}`);
      assert.equal((await loaded(store, "thread")).revision, revision);
      last = revision;
    }
  }),

  conformanceCase("A revision never repeats, also after the thread was deleted", async (bench) => {
    const old = await bench.store.append("thread", [say("1"), say("2"), say("3")]);
    await bench.store.deleteThread("thread");
    const store = await bench.again();
    await store.saveExtra("thread", { begun: "anew" });
    assert.equal((await loaded(store, "thread")).revision, 0);
    await rejectsWith(store.append("thread", [say("late")], { expectedRevision: old }), "thread_conflict");
    const revision = await store.append("thread", [say("new")], { expectedRevision: 0 });
    assert.ok(revision > old, `${revision} should be over ${old}`);
  }),

  conformanceCase("An append is all or none when one of its messages is refused", async ({ store }) => {
    await completeRun(store, "thread", "done");
    const before = await store.load("thread");
    const code = "run_already_completed";
    await rejectsWith(store.append("thread", [say("a"), say("b", "done"), say("c")]), code);
    await rejectsWith(store.append("thread", [say("a"), wrong({ role: "user" })]), "invalid_message");
    await rejectsWith(store.append("thread", [say("a"), say("b", "\0")]), "invalid_id");
    assert.deepEqual(await store.load("thread"), before);
  }),

  conformanceCase(
    "C7 an append with the present revision is never stale, whatever else was saved",
    async ({ store }) => {
      let revision = 0;
      for (const text of ["1", "2", "3"]) {
        revision = await store.append("thread", [say(text)], { expectedRevision: revision });
      }
      await store.savePendingRequest("thread", request("q"), { runId: "run", expectedRevision: revision });
      await store.saveExtra("thread", { a: 1 }, { expectedRevision: revision });
      await store.saveHitlAnswer("thread", "q", true, { runId: "run" });
      await store.claimRun("thread", "run");
      await store.append("other", [say("elsewhere")]);
      await store.append("thread", [say("4")], { expectedRevision: revision });
      assert.deepEqual(await texts(store, "thread"), ["1", "2", "3", "4"]);
    },
  ),

  conformanceCase("C11 a retry with the same expected revision does not write twice", async ({ store }) => {
    const base = await store.append("thread", [say("1")]);
    const batch = [say("2"), reply("3")];
    const actual = await store.append("thread", batch, { expectedRevision: base });
    const retry = store.append("thread", batch, { expectedRevision: base });
    await rejectsWith(retry, "thread_conflict", { threadId: "thread", expected: base, actual });
    assert.deepEqual(await texts(store, "thread"), ["1", "2", "3"]);
  }),

  conformanceCase("C12 a message with the id of another thread's message leaves that one alone", async ({ store }) => {
    const message = { ...say("mine"), id: "m1" };
    await store.append("a", [message]);
    await store.append("b", [{ ...say("yours"), id: "m1" } as typeof message]);
    assert.deepEqual([await texts(store, "a"), await texts(store, "b")], [["mine"], ["yours"]]);
  }),

  conformanceCase("L6 a late write never revives a deleted thread", async ({ store }) => {
    const expected = await store.append("thread", [say("1")]);
    await store.deleteThread("thread");
    const late = { expectedRevision: expected };
    const conflict = { threadId: "thread", expected, actual: 0 };
    await rejectsWith(store.append("thread", [say("2")], late), "thread_conflict", conflict);
    await rejectsWith(store.saveExtra("thread", { a: 1 }, late), "thread_conflict", conflict);
    await rejectsWith(store.savePendingRequest("thread", request("q"), late), "thread_conflict", conflict);
    await assertAbsent(store, "thread");
  }),

  conformanceCase("A write at another revision changes nothing", async ({ store }) => {
    await store.append("thread", [say("1")]);
    await store.saveExtra("thread", { a: 1 });
    await store.savePendingRequest("thread", request("q"));
    const before = await store.load("thread");
    const at = { expectedRevision: 0 };
    await rejectsWith(store.append("thread", [say("2")], at), "thread_conflict");
    await rejectsWith(store.saveExtra("thread", { a: 2 }, at), "thread_conflict");
    await rejectsWith(store.savePendingRequest("thread", request("q2"), at), "thread_conflict");
    await rejectsWith(store.savePendingRequest("thread", null, at), "thread_conflict");
    assert.deepEqual(await store.load("thread"), before);
    assert.equal((await store.loadPending("thread"))?.request.question_id, "q");
  }),

  conformanceCase("L7 of writers at one revision, one wins and the others get a conflict", async ({ store }) => {
    const base = await store.append("thread", [say("base")]);
    const writers = Array.from({ length: 10 }, (_, i) =>
      store.append("thread", [say(`writer ${i}`), say("two")], { expectedRevision: base }),
    );
    const { resolved, refused } = await settle(writers);
    assert.equal(resolved.length, 1);
    for (const error of refused) {
      await rejectsWith(Promise.reject(error), "thread_conflict", { expected: base, actual: resolved[0] });
    }
    assert.equal((await texts(store, "thread")).length, 3);
    assert.equal((await loaded(store, "thread")).revision, resolved[0]);
  }),

  conformanceCase(
    "L7 two stores on the same data see each other's writes and conflicts",
    async ({ store, other }) => {
      const second = await other();
      const revision = await store.append("thread", [say("1")]);
      assert.deepEqual(await texts(second, "thread"), ["1"]);
      const races = [store, second].map((writer) =>
        writer.append("thread", [say("2")], { expectedRevision: revision }),
      );
      const { resolved, refused } = await settle(races);
      assert.equal(resolved.length, 1);
      await rejectsWith(Promise.reject(refused[0]), "thread_conflict");
      await Promise.all([store, second, store, second].map((writer, i) => writer.append("thread", [say(`${i}`)])));
      assert.equal((await texts(store, "thread")).length, 6);
      assert.deepEqual(await texts(store, "thread"), await texts(second, "thread"));
    },
    ["multiProcess"],
  ),

  conformanceCase(
    "D9 what was acknowledged is there when the store is opened again",
    async ({ store, again }) => {
      const revision = await store.append("thread", [say("1", "run")]);
      await store.saveExtra("thread", { a: 1 });
      await store.claimRun("thread", "run");
      await store.markRunComplete("thread", "run");
      await store.fork("thread", "fork", { afterRunId: "run" });
      await store.savePendingRequest("thread", request("q"), { runId: "run" });
      await store.saveHitlAnswer("thread", "q", 0, { runId: "run" });
      const runs = await store.listRuns("thread");
      const threads = await store.listThreads();
      const later = await again();
      assert.equal((await loaded(later, "thread")).revision, revision);
      assert.deepEqual(await later.listRuns("thread"), runs);
      assert.deepEqual(await later.listThreads(), threads);
      assert.equal((await loaded(later, "fork")).parentThreadId, "thread");
      assert.deepEqual(await later.loadPending("thread"), { request: request("q"), runId: "run" });
      assert.equal(await later.loadHitlAnswer("thread", "q", { runId: "run" }), 0);
    },
    ["durable"],
  ),

  conformanceCase("What is no revision is refused", async ({ store }) => {
    await store.append("thread", [say("1")]);
    for (const revision of BAD_REVISIONS) {
      const code = "invalid_argument";
      await rejectsWith(store.load("thread", { after: revision }), code);
      await rejectsWith(store.append("thread", [say("2")], { expectedRevision: revision }), code);
      await rejectsWith(store.saveExtra("thread", { a: 1 }, { expectedRevision: revision }), code);
      await rejectsWith(store.savePendingRequest("thread", request("q"), { expectedRevision: revision }), code);
      await rejectsWith(store.listMessages("thread", { after: revision }), code);
    }
    assert.deepEqual((await loaded(store, "thread")).extra, {});
    assert.deepEqual(await texts(store, "thread"), ["1"]);
  }),
];
