/** Ids are data: the same limits in every method, never folded, never a path, never SQL. */
import assert from "node:assert/strict";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { conformanceCase } from "./case.ts";
import { assertAbsent, rejectsWith, request, say, texts, wrong } from "./tools.ts";

const LONGEST = ["a".repeat(255), "é".repeat(255), "🦄".repeat(255)];
const BAD_IDS = [
  "",
  "a".repeat(256),
  "🦄".repeat(256),
  "a\0b",
  "\ud83d",
  "x\udd11",
  "a".repeat(1000),
  ...[5, {}, true].map((value) => wrong(value) as string),
];
const NO_IDS = [null, undefined].map((value) => wrong(value) as string);

/** Ids that a careless store would merge, or take for a path or a pattern. */
const ODD_IDS = [
  ...["../evil", "..\\evil", "/etc/x", ".", "..", "a/b", "a%2Fb", "%5C", "CON", "a.json", "a:b", "agent:main:uuid"],
  ...["a", "A", "a ", " a", "a.", "a\t", "a\n", "a\u0001b", "a\u200b", "ß", "ss", "ẞ", "İ", "i", "ı", "ﬁ", "fi"],
  ...["\u00e9", "e\u0301", "É", "e", "😀", "😃", "\ufffd", "\ufeffa", "__proto__", "constructor", "toString"],
  ...["x') OR 1=1 --", "%", "_", "*", "?", "'", '"', "`", "\\", "null", "0", "00", "1e3", "a\r\nb"],
];

type Method = [name: string, call: (store: Checkpointer, id: string) => Promise<unknown>];

const BY_THREAD: Method[] = [
  ["load", (store, id) => store.load(id)],
  ["append", (store, id) => store.append(id, [say("hi")])],
  ["append of nothing", (store, id) => store.append(id, [])],
  ["saveExtra", (store, id) => store.saveExtra(id, { a: 1 })],
  ["claimRun", (store, id) => store.claimRun(id, "run")],
  ["markRunComplete", (store, id) => store.markRunComplete(id, "run")],
  ["snapshot", (store, id) => store.snapshot(id, { afterRunId: "run" })],
  ["fork of it", (store, id) => store.fork(id, "new", { afterRunId: "run" })],
  ["fork to it", (store, id) => store.fork("thread", id, { afterRunId: "run" })],
  ["savePendingRequest", (store, id) => store.savePendingRequest(id, request("q"))],
  ["savePendingRequest of null", (store, id) => store.savePendingRequest(id, null)],
  ["loadPending", (store, id) => store.loadPending(id)],
  [
    "clearPendingRequestIfMatches",
    (store, id) => store.clearPendingRequestIfMatches(id, { questionId: "q", runId: null }),
  ],
  ["answerPending", (store, id) => store.answerPending(id, { questionId: "q", runId: null, answer: 1 })],
  ["saveHitlAnswer", (store, id) => store.saveHitlAnswer(id, "q", 1)],
  ["loadHitlAnswer", (store, id) => store.loadHitlAnswer(id, "q")],
  ["listHitlAnswers", (store, id) => store.listHitlAnswers(id)],
  ["clearHitlAnswers", (store, id) => store.clearHitlAnswers(id)],
  ["listMessages", (store, id) => store.listMessages(id)],
  ["importThread", (store, id) => store.importThread(id, {})],
  ["listRuns", (store, id) => store.listRuns(id)],
  ["deleteThread", (store, id) => store.deleteThread(id)],
];

const RUN = { claimedAt: new Date(), completedAt: null, completionSeq: null };

const BY_RUN: Method[] = [
  ["claimRun", (store, id) => store.claimRun("thread", id)],
  ["markRunComplete", (store, id) => store.markRunComplete("thread", id)],
  ["snapshot", (store, id) => store.snapshot("thread", { afterRunId: id })],
  ["fork", (store, id) => store.fork("thread", "new", { afterRunId: id })],
  ["importThread", (store, id) => store.importThread("thread", { runs: [{ ...RUN, runId: id }] })],
];

/** Where null says that there is no run. */
const BY_OPTIONAL_RUN: Method[] = [
  ["append", (store, id) => store.append("thread", [say("hi"), say("x", id)])],
  ["savePendingRequest", (store, id) => store.savePendingRequest("thread", request("q"), { runId: id })],
  [
    "clearPendingRequestIfMatches",
    (store, id) => store.clearPendingRequestIfMatches("thread", { questionId: "q", runId: id }),
  ],
  ["answerPending", (store, id) => store.answerPending("thread", { questionId: "q", runId: id, answer: 1 })],
  ["saveHitlAnswer", (store, id) => store.saveHitlAnswer("thread", "q", 1, { runId: id })],
  ["loadHitlAnswer", (store, id) => store.loadHitlAnswer("thread", "q", { runId: id })],
  ["clearHitlAnswers", (store, id) => store.clearHitlAnswers("thread", { runId: id })],
  [
    "importThread of a question",
    (store, id) => store.importThread("thread", { pending: { request: request("q"), runId: id } }),
  ],
  [
    "importThread of an answer",
    (store, id) => store.importThread("thread", { answers: [{ runId: id, questionId: "q", answer: 1 }] }),
  ],
];

const BY_QUESTION: Method[] = [
  ["savePendingRequest", (store, id) => store.savePendingRequest("thread", request(id))],
  [
    "answerPending of a next",
    (store, id) => store.answerPending("thread", { questionId: "q", runId: null, answer: 1, next: request(id) }),
  ],
  [
    "clearPendingRequestIfMatches",
    (store, id) => store.clearPendingRequestIfMatches("thread", { questionId: id, runId: null }),
  ],
  ["answerPending", (store, id) => store.answerPending("thread", { questionId: id, runId: null, answer: 1 })],
  ["saveHitlAnswer", (store, id) => store.saveHitlAnswer("thread", id, 1)],
  ["loadHitlAnswer", (store, id) => store.loadHitlAnswer("thread", id)],
  ["clearHitlAnswers", (store, id) => store.clearHitlAnswers("thread", { questionIds: ["q", id] })],
  [
    "importThread",
    (store, id) => store.importThread("thread", { answers: [{ runId: null, questionId: id, answer: 1 }] }),
  ],
];

/** Where the id is a field of a record. */
const RECORDS = ["run id append", "question id savePendingRequest", "question id answerPending of a next"];

function refusals(kind: string, methods: Method[], ids: string[]) {
  return methods.map(([name, call]) =>
    conformanceCase(`Y6 L15 X1 what is no ${kind} is refused by ${name}`, async ({ store }) => {
      for (const id of ids) {
        // Within a record a value of another type is no record; everywhere else it is no id.
        const inRecord = typeof id !== "string" && RECORDS.includes(`${kind} ${name}`);
        await rejectsWith(call(store, id), inRecord ? "invalid_message" : "invalid_id");
      }
      await assertAbsent(store, "thread");
    }),
  );
}

export const idCases = [
  ...refusals("thread id", BY_THREAD, [...BAD_IDS, ...NO_IDS]),
  ...refusals("run id", BY_RUN, [...BAD_IDS, ...NO_IDS]),
  ...refusals("run id", BY_OPTIONAL_RUN, BAD_IDS),
  ...refusals("question id", BY_QUESTION, [...BAD_IDS, ...NO_IDS]),

  conformanceCase("Y6 ids of 255 characters of any script fit", async (bench) => {
    const { store } = bench;
    for (const id of LONGEST) {
      await store.append(id, [say("hi")]);
      await store.saveHitlAnswer(id, id, id);
      await store.savePendingRequest(id, request(id));
      await store.claimRun(id, "run");
      await store.markRunComplete(id, "run");
      await store.fork(id, `${[...id].slice(1).join("")}x`, { afterRunId: "run" });
    }
    const later = await bench.again();
    for (const id of LONGEST) {
      assert.deepEqual(await texts(later, id), ["hi"]);
      assert.equal(await later.loadHitlAnswer(id, id), id);
      assert.equal((await later.loadPending(id))?.request.question_id, id);
      assert.ok((await later.listRuns(`${[...id].slice(1).join("")}x`)).items.length === 1);
    }
  }),

  conformanceCase("X1 L15 L30 thread ids are data: none is folded, merged or a path", async (bench) => {
    const { store } = bench;
    await Promise.all(ODD_IDS.map((id) => store.append(id, [say(`of ${id}`)])));
    const later = await bench.again();
    for (const id of ODD_IDS) assert.deepEqual(await texts(later, id), [`of ${id}`], JSON.stringify(id));
    const listed = (await later.listThreads()).items.map((thread) => thread.threadId);
    assert.deepEqual(new Set(listed), new Set(ODD_IDS));
    assert.equal(listed.length, ODD_IDS.length);
    const dropped = ODD_IDS.filter((_, i) => i % 2 === 0);
    for (const id of dropped) assert.equal(await later.deleteThread(id), true, JSON.stringify(id));
    for (const id of ODD_IDS) {
      assert.deepEqual(await texts(later, id), dropped.includes(id) ? [] : [`of ${id}`], JSON.stringify(id));
    }
  }),

  conformanceCase("X1 L30 run ids and question ids are data: none is folded or merged", async (bench) => {
    const { store } = bench;
    await Promise.all(ODD_IDS.map((id) => store.claimRun("thread", id)));
    await Promise.all(ODD_IDS.map((id) => store.append("thread", [say(`of ${id}`, id)])));
    await Promise.all(ODD_IDS.map((id) => store.saveHitlAnswer("thread", id, id, { runId: id })));
    const later = await bench.again();
    const listed = (await later.listRuns("thread")).items.map((run) => run.runId);
    assert.deepEqual(listed.toSorted(), ODD_IDS.toSorted());
    for (const id of ODD_IDS) {
      assert.equal(await later.loadHitlAnswer("thread", id, { runId: id }), id, JSON.stringify(id));
    }
    const [completed] = ODD_IDS as [string];
    await later.markRunComplete("thread", completed);
    await rejectsWith(later.append("thread", [say("late", completed)]), "run_already_completed");
    const snapshot = await later.snapshot("thread", { afterRunId: completed });
    assert.deepEqual(
      snapshot.map((message) => message.run_id),
      [completed],
    );
    await later.clearHitlAnswers("thread", { runId: "%" });
    assert.equal(await later.loadHitlAnswer("thread", "%", { runId: "%" }), undefined);
    assert.equal(await later.loadHitlAnswer("thread", "_", { runId: "_" }), "_");
  }),
];
