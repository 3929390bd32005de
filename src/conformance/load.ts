/** Loading: the tail after a revision, one snapshot, copies both ways, and how extra is merged. */
import assert from "node:assert/strict";
import type { Checkpoint } from "../checkpoint/checkpointer.ts";
import { userMessage } from "../messages/construct.ts";
import type { JsonObject } from "../messages/json.ts";
import { conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, reply, request, say } from "./tools.ts";

export const loadCases = [
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

  conformanceCase("An extra of no keys begins no thread, and makes none that is there another one", async (bench) => {
    await bench.store.saveExtra("none", {});
    await bench.store.importThread("none", { extra: {} });
    await bench.store.claimRun("claimed", "run");
    await bench.store.saveExtra("claimed", {});
    const later = await bench.again();
    await assertAbsent(later, "none");
    assert.equal(await later.deleteThread("none"), false);
    assert.equal(await later.load("claimed"), undefined);
    assert.deepEqual(
      (await later.listThreads()).items.map(({ threadId }) => threadId),
      ["claimed"],
    );
  }),
];
