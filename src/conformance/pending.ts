/** The pending request and the answer ledger: one question at a time, one answer wins, and any JSON is an answer. */
import assert from "node:assert/strict";
import type { JsonValue } from "../messages/json.ts";
import { conformanceCase } from "./case.ts";
import { assertAbsent, loaded, rejectsWith, request, say, texts, wrong } from "./tools.ts";

const APPROVE = {
  kind: "approve",
  tool_name: "remove",
  tool_call_id: "call_0",
  args: { path: "/tmp/a\0b", zeta: 1, a: [null] },
  details: { risk: "high" },
  newer_field: { kept: [true] },
};
const ASK = {
  kind: "ask",
  questions: [
    {
      key: "colour",
      prompt: "Which?",
      options: [{ label: "Teal", value: "teal", description: null, allow_input: true, newer_field: 1 }],
      multi_select: true,
      required: false,
      newer_field: "kept",
    },
  ],
};

const ANSWERS: JsonValue[] = [
  false,
  true,
  null,
  "",
  0,
  [],
  {},
  "a\0b",
  { decision: "approve", args: { path: "x", big: "é".repeat(200_000) } },
];

export const pendingCases = [
  conformanceCase("A pending request is kept with its run until it is removed", async (bench) => {
    const { store } = bench;
    assert.equal(await store.loadPending("thread"), undefined);
    await store.savePendingRequest("thread", request("q"), { runId: "run" });
    const later = await bench.again();
    assert.deepEqual(await later.loadPending("thread"), { request: request("q"), runId: "run" });
    assert.equal(await later.loadPending("other"), undefined);
    await later.savePendingRequest("thread", null);
    await later.savePendingRequest("thread", null);
    await assertAbsent(later, "thread");
  }),

  conformanceCase("A pending request replaces the one before it", async ({ store }) => {
    await store.savePendingRequest("thread", request("first"), { runId: "run" });
    await store.savePendingRequest("thread", request("second"));
    assert.deepEqual(await store.loadPending("thread"), { request: request("second"), runId: null });
  }),

  conformanceCase("Requests of every kind keep their fields, unknown ones too", async (bench) => {
    const requests = [
      request("approve", { payload: APPROVE, newer_field: null }),
      request("ask", { payload: ASK, thread_id: null, timeout_seconds: 1.5 }),
      request("bare", { payload: { kind: "confirm", prompt: "" }, timeout_seconds: undefined }),
    ];
    for (const [i, one] of requests.entries()) await bench.store.savePendingRequest(`thread ${i}`, one);
    const later = await bench.again();
    for (const [i, one] of requests.entries()) {
      const stored = (await later.loadPending(`thread ${i}`))?.request;
      assert.deepEqual(stored, JSON.parse(JSON.stringify(one)));
    }
  }),

  conformanceCase("A request of another shape is refused, and the one before it stays", async ({ store }) => {
    await store.savePendingRequest("thread", request("q"));
    const bad = [
      {},
      [],
      undefined,
      "text",
      request("q2", { payload: { kind: "unheard of" } }),
      request("q2", { payload: { ...APPROVE, args: null } }),
      request("q2", { payload: { ...APPROVE, args: [] } }),
      request("q2", { created_at: "today" }),
      request("q2", { bad: 1n }),
    ];
    for (const value of bad) await rejectsWith(store.savePendingRequest("thread", wrong(value)), "invalid_message");
    await rejectsWith(store.savePendingRequest("thread", request("")), "invalid_id");
    assert.deepEqual((await store.loadPending("thread"))?.request, request("q"));
  }),

  conformanceCase("H9 a pending request, messages, extra and answers are kept side by side", async ({ store }) => {
    await store.append("thread", [say("hi")]);
    await store.saveExtra("thread", { q: "extra" });
    await store.savePendingRequest("thread", request("q"), { runId: "q" });
    await store.saveHitlAnswer("thread", "q", "answer", { runId: "q" });
    await store.append("thread", [say("more")]);
    assert.deepEqual(await texts(store, "thread"), ["hi", "more"]);
    assert.deepEqual((await loaded(store, "thread")).extra, { q: "extra" });
    assert.equal((await store.loadPending("thread"))?.runId, "q");
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "q" }), "answer");
  }),

  conformanceCase("A pending request is cleared only when question and run both match", async ({ store }) => {
    const clear = (questionId: string, runId: string | null, threadId = "thread") =>
      store.clearPendingRequestIfMatches(threadId, { questionId, runId });
    await store.savePendingRequest("thread", request("q"), { runId: "run" });
    assert.equal(await clear("other", "run"), false);
    assert.equal(await clear("q", "other"), false);
    assert.equal(await clear("q", null), false);
    assert.equal(await clear("q", "run", "elsewhere"), false);
    assert.ok(await store.loadPending("thread"));
    assert.equal(await clear("q", "run"), true);
    assert.equal(await store.loadPending("thread"), undefined);
    assert.equal(await clear("q", "run"), false);
    await store.savePendingRequest("thread", request("q"));
    assert.equal(await clear("q", "run"), false);
    assert.equal(await clear("q", null), true);
  }),

  conformanceCase("An answer is recorded and the next question takes the place of this one", async ({ store }) => {
    await store.savePendingRequest("thread", request("q1"), { runId: "run" });
    const first = { questionId: "q1", runId: "run", answer: { decision: "approve" }, next: request("q2") };
    assert.equal(await store.answerPending("thread", first), true);
    assert.deepEqual(await store.loadPending("thread"), { request: request("q2"), runId: "run" });
    assert.deepEqual(await store.loadHitlAnswer("thread", "q1", { runId: "run" }), { decision: "approve" });
    assert.equal(await store.answerPending("thread", first), false);
    const last = { questionId: "q2", runId: "run", answer: false, next: null };
    assert.equal(await store.answerPending("thread", last), true);
    assert.equal(await store.loadPending("thread"), undefined);
    assert.equal(await store.loadHitlAnswer("thread", "q2", { runId: "run" }), false);
  }),

  conformanceCase("A stale answer, or one to another thread or run, changes nothing", async ({ store }) => {
    await store.savePendingRequest("thread", request("q"), { runId: "run" });
    const next = request("next");
    const answer = (threadId: string, questionId: string, runId: string | null) =>
      store.answerPending(threadId, { questionId, runId, answer: "stale", next });
    assert.equal(await answer("thread", "old", "run"), false);
    assert.equal(await answer("thread", "q", "old"), false);
    assert.equal(await answer("thread", "q", null), false);
    assert.equal(await answer("elsewhere", "q", "run"), false);
    assert.deepEqual(await store.loadPending("thread"), { request: request("q"), runId: "run" });
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "run" }), undefined);
    assert.equal(await store.loadHitlAnswer("thread", "old", { runId: "run" }), undefined);
    await assertAbsent(store, "elsewhere");
  }),

  conformanceCase("An answer or a next question that is refused changes nothing", async ({ store }) => {
    await store.savePendingRequest("thread", request("q"), { runId: "run" });
    const match = { questionId: "q", runId: "run" };
    await rejectsWith(store.answerPending("thread", { ...match, answer: wrong(1n) }), "invalid_message");
    await rejectsWith(store.answerPending("thread", { ...match, answer: 1, next: wrong({}) }), "invalid_message");
    assert.deepEqual(await store.loadPending("thread"), { request: request("q"), runId: "run" });
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "run" }), undefined);
  }),

  conformanceCase("Of simultaneous answers exactly one wins", async ({ store }) => {
    await store.savePendingRequest("thread", request("q"), { runId: "run" });
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, answer) =>
        store.answerPending("thread", { questionId: "q", runId: "run", answer, next: request(`next ${answer}`) }),
      ),
    );
    assert.equal(answers.filter(Boolean).length, 1);
    const winner = answers.indexOf(true);
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "run" }), winner);
    assert.equal((await store.loadPending("thread"))?.request.question_id, `next ${winner}`);
  }),

  conformanceCase(
    "H5 a request saved by one store is answered through another, and once",
    async ({ store, other }) => {
      const second = await other();
      await store.savePendingRequest("thread", request("q"));
      const answers = await Promise.all(
        [store, second].map((by, answer) => by.answerPending("thread", { questionId: "q", runId: null, answer })),
      );
      assert.equal(answers.filter(Boolean).length, 1);
      assert.equal(await store.loadHitlAnswer("thread", "q"), answers.indexOf(true));
      assert.equal(await second.loadPending("thread"), undefined);
    },
    ["multiProcess"],
  ),

  conformanceCase("H1 answers to several questions of a run are kept apart", async ({ store }) => {
    const options = { runId: "run" };
    for (const id of ["call_2", "call_0", "call_1"]) await store.saveHitlAnswer("thread", id, { to: id }, options);
    for (const id of ["call_0", "call_1", "call_2"]) {
      assert.deepEqual(await store.loadHitlAnswer("thread", id, options), { to: id });
    }
    assert.equal(await store.loadHitlAnswer("thread", "call_3", options), undefined);
    await store.saveHitlAnswer("thread", "call_1", "changed", options);
    assert.equal(await store.loadHitlAnswer("thread", "call_1", options), "changed");
    assert.deepEqual(await store.loadHitlAnswer("thread", "call_0", options), { to: "call_0" });
  }),

  conformanceCase("H1 answers of other runs, of no run and of other threads are kept apart", async ({ store }) => {
    await store.saveHitlAnswer("thread", "q", "a", { runId: "a" });
    await store.saveHitlAnswer("thread", "q", "b", { runId: "b" });
    await store.saveHitlAnswer("thread", "q", "none");
    await store.saveHitlAnswer("other", "q", "other", { runId: "a" });
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "a" }), "a");
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "b" }), "b");
    assert.equal(await store.loadHitlAnswer("thread", "q"), "none");
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: null }), "none");
    await store.clearHitlAnswers("thread", { runId: "a" });
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "a" }), undefined);
    await store.clearHitlAnswers("thread");
    assert.equal(await store.loadHitlAnswer("thread", "q"), undefined);
    assert.equal(await store.loadHitlAnswer("thread", "q", { runId: "b" }), "b");
    assert.equal(await store.loadHitlAnswer("other", "q", { runId: "a" }), "other");
  }),

  conformanceCase("Answers are cleared by question, all of a run, or none for an empty list", async ({ store }) => {
    const left = async (): Promise<unknown[]> =>
      Promise.all(["a", "b", "c"].map((id) => store.loadHitlAnswer("thread", id, { runId: "run" })));
    for (const id of ["a", "b", "c"]) await store.saveHitlAnswer("thread", id, id, { runId: "run" });
    await store.clearHitlAnswers("thread", { runId: "run", questionIds: [] });
    assert.deepEqual(await left(), ["a", "b", "c"]);
    await store.clearHitlAnswers("thread", { runId: "run", questionIds: ["a", "c", "unknown"] });
    assert.deepEqual(await left(), [undefined, "b", undefined]);
    await store.clearHitlAnswers("thread", { runId: "run" });
    assert.deepEqual(await left(), [undefined, undefined, undefined]);
  }),

  conformanceCase("The ledger lists every answer, by run and question in code point order", async ({ store }) => {
    assert.deepEqual(await store.listHitlAnswers("thread"), []);
    const given: [string | null, string][] = [
      ["b", "2"],
      ["a", "\u{1F600}"],
      [null, "9"],
      ["a", "\uFF5E"],
      ["b", "10"],
    ];
    for (const [runId, questionId] of given) {
      await store.saveHitlAnswer("thread", questionId, { to: questionId }, { runId });
    }
    await store.saveHitlAnswer("other", "1", true, { runId: "a" });
    const order: [string | null, string][] = [
      [null, "9"],
      ["a", "\uFF5E"],
      ["a", "\u{1F600}"],
      ["b", "10"],
      ["b", "2"],
    ];
    const expected = order.map(([runId, questionId]) => ({ runId, questionId, answer: { to: questionId } }));
    assert.deepEqual(await store.listHitlAnswers("thread"), expected);
    await store.clearHitlAnswers("thread", { runId: "a" });
    assert.deepEqual(
      await store.listHitlAnswers("thread"),
      expected.filter(({ runId }) => runId !== "a"),
    );
  }),

  conformanceCase("H13 L19 false, null, empty text, 0 and any other JSON are answers", async (bench) => {
    const { store } = bench;
    for (const [i, answer] of ANSWERS.entries()) {
      await store.saveHitlAnswer("thread", `saved ${i}`, answer);
      await store.savePendingRequest("thread", request(`asked ${i}`));
      assert.equal(await store.answerPending("thread", { questionId: `asked ${i}`, runId: null, answer }), true);
    }
    const later = await bench.again();
    for (const [i, answer] of ANSWERS.entries()) {
      assert.deepEqual(await later.loadHitlAnswer("thread", `saved ${i}`), answer);
      assert.deepEqual(await later.loadHitlAnswer("thread", `asked ${i}`), answer);
    }
  }),
];
