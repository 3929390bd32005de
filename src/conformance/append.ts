/** Appending and loading: all or none, revisions, conflicts, copies, and the tail after a revision. */
import assert from "node:assert/strict";
import type { Checkpoint } from "../checkpoint/checkpointer.ts";
import { userMessage } from "../messages/construct.ts";
import type { JsonObject } from "../messages/json.ts";
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

  conformanceCase("load gives what follows a revision, or all when the thread was begun anew", async ({ store }) => {
    const first = await store.append("thread", [say("1")]);
    const last = await store.append("thread", [say("2"), say("3")]);
    await store.saveExtra("thread", { a: 1 });
    const tail = await loaded(store, "thread", first);
    assert.deepEqual([tail.messages.length, tail.tail, tail.revision, tail.extra], [2, true, last, { a: 1 }]);
    const none = await loaded(store, "thread", last);
    assert.deepEqual([none.messages, none.tail, none.revision], [[], true, last]);
    assert.equal((await loaded(store, "thread", 0)).messages.length, 3);
    await store.deleteThread("thread");
    assert.equal(await store.load("thread", { after: last }), undefined);
    await store.append("thread", [say("anew")]);
    const anew = await loaded(store, "thread", last);
    assert.deepEqual([anew.messages.length, anew.tail], [1, false]);
  }),

  conformanceCase("load is one snapshot, also while others append", async ({ store }) => {
    const appends: Promise<number>[] = [];
    const loads: Promise<Checkpoint | undefined>[] = [];
    for (let i = 0; i < 20; i++) {
      appends.push(store.append("thread", [say(`${i}`), reply("two")]));
      loads.push(store.load("thread"));
    }
    const revisions = [0, ...(await Promise.all(appends))].toSorted((a, b) => a - b);
    for (const checkpoint of await Promise.all(loads)) {
      const { messages, revision } = checkpoint ?? { messages: [], revision: 0 };
      assert.equal(messages.length % 2, 0, "an append should be seen whole or not at all");
      assert.equal(revision, revisions[messages.length / 2]);
    }
  }),

  conformanceCase("What went in is a copy: changing it afterwards changes nothing", async ({ store }) => {
    const metadata: JsonObject = { tags: ["a"] };
    const batch = [userMessage("hi", { metadata })];
    const extra: JsonObject = { list: [1] };
    const pending = request("q");
    const answer = { list: [1] };
    const works = [
      store.append("thread", batch),
      store.saveExtra("thread", extra),
      store.savePendingRequest("thread", pending),
      store.saveHitlAnswer("thread", "q", answer),
    ];
    metadata.tags = ["changed"];
    batch.push(userMessage("pushed"));
    extra.list = "changed";
    pending.created_at = 0;
    answer.list.push(2);
    await Promise.all(works);
    const { messages, extra: stored } = await loaded(store, "thread");
    assert.deepEqual(
      messages.map((message) => message.metadata),
      [{ tags: ["a"] }],
    );
    assert.deepEqual(stored, { list: [1] });
    assert.deepEqual((await store.loadPending("thread"))?.request, request("q"));
    assert.deepEqual(await store.loadHitlAnswer("thread", "q"), { list: [1] });
  }),

  conformanceCase("What comes out is a copy: changing it changes nothing", async ({ store }) => {
    const read = async () => ({
      checkpoint: await loaded(store, "thread"),
      snapshot: await store.snapshot("thread", { afterRunId: "run" }),
      pending: await store.loadPending("thread"),
      answer: (await store.loadHitlAnswer("thread", "q")) as JsonObject,
      log: await store.listMessages("thread"),
      runs: await store.listRuns("thread"),
      threads: await store.listThreads(),
    });
    await completeRun(store, "thread", "run");
    await store.saveExtra("thread", { list: [1] });
    await store.savePendingRequest("thread", request("q"));
    await store.saveHitlAnswer("thread", "q", { list: [1] });
    const before = structuredClone(await read());
    const { checkpoint, snapshot, pending, answer, log, runs, threads } = await read();
    for (const message of [...checkpoint.messages, ...snapshot, ...log.items.map((entry) => entry.message)]) {
      message?.content.splice(0);
    }
    for (const entry of log.items) entry.createdAt.setTime(0);
    for (const run of runs.items) {
      run.claimedAt.setTime(0);
      run.completedAt?.setTime(0);
    }
    for (const thread of threads.items) thread.createdAt?.setTime(0);
    checkpoint.messages.pop();
    checkpoint.extra.list = "changed";
    if (pending) pending.request.created_at = 0;
    answer.list = "changed";
    assert.deepEqual(await read(), before);
  }),

  conformanceCase("extra is merged by its top-level keys, also by writers at once", async ({ store }) => {
    await store.saveExtra("thread", { a: { x: 1 }, b: 1 });
    await store.saveExtra("thread", { a: { y: 2 }, c: null });
    await store.saveExtra("thread", {});
    assert.deepEqual((await loaded(store, "thread")).extra, { a: { y: 2 }, b: 1, c: null });
    await Promise.all(Array.from({ length: 20 }, (_, i) => store.saveExtra("thread", { [`key ${i}`]: i })));
    assert.equal(Object.keys((await loaded(store, "thread")).extra).length, 23);
  }),
];
