/** The life of a store and of a thread: deletion, closing, and what a backend says it can do. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { type Bench, conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, rejectsWith, request, say, texts } from "./tools.ts";

/** Every method, with arguments that are fine. */
const METHODS: [name: string, call: (store: Checkpointer) => Promise<unknown>][] = [
  ["load", (store) => store.load("thread")],
  ["append", (store) => store.append("thread", [say("hi")])],
  ["append of nothing", (store) => store.append("thread", [])],
  ["saveExtra", (store) => store.saveExtra("thread", { a: 1 })],
  ["claimRun", (store) => store.claimRun("thread", "new")],
  ["markRunComplete", (store) => store.markRunComplete("thread", "run")],
  ["snapshot", (store) => store.snapshot("thread", { afterRunId: "run" })],
  ["fork", (store) => store.fork("thread", "fork", { afterRunId: "run" })],
  ["savePendingRequest", (store) => store.savePendingRequest("thread", request("q"))],
  ["loadPending", (store) => store.loadPending("thread")],
  [
    "clearPendingRequestIfMatches",
    (store) => store.clearPendingRequestIfMatches("thread", { questionId: "q", runId: null }),
  ],
  ["answerPending", (store) => store.answerPending("thread", { questionId: "q", runId: null, answer: 1 })],
  ["saveHitlAnswer", (store) => store.saveHitlAnswer("thread", "q", 1)],
  ["loadHitlAnswer", (store) => store.loadHitlAnswer("thread", "q")],
  ["listHitlAnswers", (store) => store.listHitlAnswers("thread")],
  ["clearHitlAnswers", (store) => store.clearHitlAnswers("thread")],
  ["listMessages", (store) => store.listMessages("thread")],
  ["listThreads", (store) => store.listThreads()],
  ["listRuns", (store) => store.listRuns("thread")],
  ["importThread", (store) => store.importThread("thread", { extra: { a: 1 } })],
  ["deleteThread", (store) => store.deleteThread("thread")],
  ["backup", (store) => store.backup(join(tmpdir(), "everthread-never-written"))],
  ["checkIntegrity", (store) => store.checkIntegrity()],
];

/** Gives a body a new directory, and removes it afterwards. */
async function inDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "everthread-conformance-"));
  try {
    await body(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function fill({ store }: Bench, threadId: string): Promise<void> {
  await completeRun(store, threadId, "run");
  await store.claimRun(threadId, "open");
  await store.append(threadId, [say("more", "open")]);
  await store.saveExtra(threadId, { a: 1 });
  await store.savePendingRequest(threadId, request("q"), { runId: "open" });
  await store.saveHitlAnswer(threadId, "q", 1, { runId: "open" });
  await store.saveHitlAnswer(threadId, "q", 1);
}

export const lifecycleCases = [
  conformanceCase("Every capability is true, or says why not", async ({ store: { capabilities } }) => {
    const { backend, ...rest } = capabilities;
    assert.ok(typeof backend === "string" && backend !== "");
    const names = ["archives", "backup", "durable", "integrityCheck", "multiProcess", "search"];
    assert.deepEqual(Object.keys(rest).sort(), names);
    for (const [name, capability] of Object.entries(rest)) {
      assert.ok(capability === true || capability.reason.length > 10, `${name} needs a reason`);
    }
  }),

  conformanceCase("Asking for what the backend can't do is refused, with its reason", async ({ store }) => {
    const { backup, integrityCheck } = store.capabilities;
    const refused = async (work: Promise<unknown>, reason: string): Promise<void> => {
      const error: unknown = await work.catch((thrown: unknown) => thrown);
      await rejectsWith(work, "unsupported");
      assert.ok(error instanceof Error && error.message.includes(reason), "the error should give the reason");
    };
    await inDirectory(async (directory) => {
      if (backup !== true) await refused(store.backup(join(directory, "copy")), backup.reason);
      if (integrityCheck !== true) await refused(store.checkIntegrity(), integrityCheck.reason);
    });
  }),

  conformanceCase("D14 every method is refused after close, and closing again is harmless", async (bench) => {
    const { store } = bench;
    await fill(bench, "thread");
    await store.close();
    for (const [name, call] of METHODS) {
      const error: unknown = await call(store).catch((thrown: unknown) => thrown);
      const { code } = error as { code?: string };
      assert.equal(code, "store_closed", `${name}: ${String(error)}`);
    }
    await store.close();
    await Promise.all([store.close(), store[Symbol.asyncDispose]()]);
  }),

  conformanceCase("await using closes the store", async ({ store }) => {
    await store[Symbol.asyncDispose]();
    await rejectsWith(store.load("thread"), "store_closed");
  }),

  conformanceCase("D14 close waits for work in flight, which settles first", async (bench) => {
    let settled = 0;
    const works = [
      bench.store.append("thread", [say("in flight")]),
      bench.store.saveExtra("thread", { a: 1 }),
      bench.store.load("other"),
    ].map((work: Promise<unknown>) => work.then(() => settled++));
    const closed = bench.store.close();
    await rejectsWith(bench.store.append("thread", [say("late")]), "store_closed");
    await closed;
    // What settled in the same turn of the event loop as close settled with it.
    await nextTurn();
    assert.equal(settled, works.length);
    if (bench.store.capabilities.durable === true) {
      const later = await loaded(await bench.again(), "thread");
      assert.deepEqual([later.messages.length, later.extra], [1, { a: 1 }]);
    }
  }),

  conformanceCase("deleteThread erases all of a thread and nothing of another", async (bench) => {
    await fill(bench, "thread");
    await fill(bench, "other");
    const before = await bench.store.load("other");
    assert.equal(await bench.store.deleteThread("thread"), true);
    assert.equal(await bench.store.deleteThread("thread"), false);
    const later = await bench.again();
    await assertAbsent(later, "thread");
    assert.equal(await later.loadHitlAnswer("thread", "q", { runId: "open" }), undefined);
    assert.equal(await later.loadHitlAnswer("thread", "q"), undefined);
    assert.deepEqual(await later.load("other"), before);
    assert.equal((await later.loadPending("other"))?.runId, "open");
    assert.equal(await later.loadHitlAnswer("other", "q", { runId: "open" }), 1);
    assert.equal((await later.listRuns("other")).items.length, 2);
  }),

  conformanceCase("deleteThread says whether there was anything, whatever it was", async ({ store }) => {
    assert.equal(await store.deleteThread("nothing"), false);
    await store.saveExtra("extra", { a: 1 });
    await store.savePendingRequest("pending", request("q"));
    await store.saveHitlAnswer("answer", "q", 1);
    await store.claimRun("run", "run");
    for (const threadId of ["extra", "pending", "answer", "run"]) {
      assert.equal(await store.deleteThread(threadId), true, threadId);
      assert.equal(await store.deleteThread(threadId), false, threadId);
      await assertAbsent(store, threadId);
    }
  }),

  conformanceCase("A deleted thread can be begun anew, and has nothing of the old one", async (bench) => {
    await fill(bench, "thread");
    await bench.store.fork("thread", "fork", { afterRunId: "run" });
    await bench.store.deleteThread("fork");
    await bench.store.append("fork", [say("anew")]);
    const { messages, extra, parentThreadId } = await loaded(bench.store, "fork");
    assert.deepEqual([messages.length, extra, parentThreadId], [1, {}, null]);
    assert.equal((await bench.store.listRuns("fork")).items.length, 0);
  }),

  conformanceCase(
    "A backup made during appends is a whole store, and never replaces a file",
    async ({ store, openCopy }) => {
      await inDirectory(async (directory) => {
        const path = join(directory, "copy");
        await store.append("thread", [say("before")]);
        const appends = Array.from({ length: 10 }, (_, i) => store.append("thread", [say(`${i}`), say("two")]));
        await Promise.all([store.backup(path), ...appends]);
        await rejectsWith(store.backup(path), "store_open_failed");
        const copied = await texts(await openCopy(path), "thread");
        assert.equal(copied[0], "before");
        assert.equal(copied.length % 2, 1);
        assert.deepEqual(copied, (await texts(store, "thread")).slice(0, copied.length));
      });
    },
    ["backup"],
  ),

  conformanceCase(
    "A sound store has no integrity problems",
    async (bench) => {
      await fill(bench, "thread");
      assert.deepEqual(await bench.store.checkIntegrity(), []);
    },
    ["integrityCheck"],
  ),
];
