/** Compaction: a summary in place of the older messages, which stay in the log and can be read back whole. */
import assert from "node:assert/strict";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { assistantMessage, text, textOf, toolCall, toolResultMessage } from "../messages/construct.ts";
import type { Message } from "../messages/schema.ts";
import { type Bench, conformanceCase } from "./case.ts";
import { archivesOf, compact, loaded, logOf, raw, rejectsWith, reply, request, say, settle, texts } from "./tools.ts";

const archiveCase = (name: string, body: (bench: Bench) => Promise<void>) => conformanceCase(name, body, ["archives"]);

const words = (...said: string[]): Message[] => said.map((word) => say(word));

export const archiveCases = [
  archiveCase("A compacted thread loads as its summary and what follows, at the same revision", async (bench) => {
    const { store } = bench;
    const revision = await store.append("thread", words("1", "2", "3", "4"));
    await store.saveExtra("thread", { a: 1 });
    const info = await compact(store, "thread", 1, { summary: "One to three.", expectedRevision: revision });
    const [, , third] = await logOf(store, "thread");
    assert.deepEqual([info.upTo, info.atRevision, info.messageCount], [third?.position, revision, 3]);
    assert.deepEqual([info.summary, info.prunedAt], ["One to three.", null]);
    const later = await bench.again();
    const { messages, ...rest } = await loaded(later, "thread");
    assert.deepEqual(messages.map(textOf), ["4"]);
    const expected = { summary: "One to three.", compactedUpTo: info.upTo, kept: 1, extra: { a: 1 }, revision };
    assert.deepEqual(rest, { ...expected, parentThreadId: null, tail: false });
    assert.deepEqual((await archivesOf(later).list("thread")).items, [info]);
  }),

  archiveCase("A thread that was not compacted has no summary and no archives", async ({ store }) => {
    await store.append("thread", words("1"));
    const checkpoint = await loaded(store, "thread");
    for (const name of ["summary", "compactedUpTo", "kept"]) assert.ok(!(name in checkpoint), name);
    for (const threadId of ["thread", "missing"]) {
      assert.deepEqual(await archivesOf(store).list(threadId), { items: [], next: null });
      await rejectsWith(archivesOf(store).read(threadId, "a1"), "archive_not_found");
    }
  }),

  archiveCase(
    "load after a revision continues the active context, and gives all of it from elsewhere",
    async (bench) => {
      const { store } = bench;
      await store.append("thread", words("1", "2", "3", "4"));
      const { upTo } = await compact(store, "thread", 2);
      await store.append("thread", words("5", "6"));
      const log = await logOf(store, "thread");
      const after = async (revision: number) => {
        const { messages, tail, kept, summary } = await loaded(store, "thread", revision);
        assert.equal(summary, "summary");
        return [messages.map(textOf).join(" "), tail, kept];
      };
      const expected = [
        ["3 4 5 6", false, 2],
        ["3 4 5 6", false, 2],
        ["4 5 6", true, 1],
        ["5 6", true, 0],
        ["6", true, 0],
        ["", true, 0],
      ];
      for (const [i, { position }] of log.entries())
        assert.deepEqual(await after(position), expected[i], `after ${i + 1}`);
      assert.equal(upTo, log[1]?.position);
      assert.deepEqual(await after(0), expected[0]);
      assert.deepEqual(await after((log.at(-1)?.position ?? 0) + 1), expected[0]);
    },
  ),

  archiveCase("Appends go on after a compaction, and kept counts what was there before it", async (bench) => {
    const { store } = bench;
    const revision = await store.append("thread", words("1", "2"));
    await compact(store, "thread", 0);
    const { messages, kept, revision: at } = await loaded(store, "thread");
    assert.deepEqual([messages, kept, at], [[], 0, revision]);
    const next = await store.append("thread", [reply("3")], { expectedRevision: revision });
    assert.ok(next > revision);
    const later = await bench.again();
    assert.deepEqual(await texts(later, "thread"), ["3"]);
    assert.equal((await loaded(later, "thread")).kept, 0);
    assert.deepEqual(
      (await logOf(later, "thread")).map(({ message }) => message && textOf(message)),
      ["1", "2", "3"],
    );
  }),

  archiveCase("A second compaction sets aside what the first one left", async (bench) => {
    const { store } = bench;
    await store.append("thread", words("1", "2", "3"));
    const first = await compact(store, "thread", 1, { summary: "first" });
    await store.append("thread", words("4", "5"));
    const second = await compact(store, "thread", 1, { summary: "second" });
    assert.deepEqual([first.archiveId, second.archiveId], ["a1", "a2"]);
    assert.deepEqual([first.messageCount, second.messageCount], [2, 2]);
    const later = await bench.again();
    const { messages, summary, compactedUpTo, kept } = await loaded(later, "thread");
    assert.deepEqual([messages.map(textOf), summary, compactedUpTo, kept], [["5"], "second", second.upTo, 1]);
    const archives = archivesOf(later);
    assert.deepEqual((await archives.list("thread")).items, [first, second]);
    const [one, two] = [await archives.read("thread", "a1"), await archives.read("thread", "a2")];
    assert.deepEqual([one.previousSummary, two.previousSummary], [null, "first"]);
    const said = [one, two].map((archive) => archive.messages.map(({ message }) => message && textOf(message)));
    assert.deepEqual(said, [
      ["1", "2"],
      ["3", "4"],
    ]);
  }),

  archiveCase("D13 each message is active or archived, once, also when compactions are tried again", async (bench) => {
    const { store } = bench;
    for (let turn = 0; turn < 4; turn++) {
      const revision = await store.append("thread", words(`${turn} a`, `${turn} b`, `${turn} c`));
      await compact(store, "thread", 1, { expectedRevision: revision });
      await rejectsWith(compact(store, "thread", 1, { expectedRevision: revision }), "compaction_conflict");
    }
    const later = await bench.again();
    const { items } = await archivesOf(later).list("thread");
    const archived = await Promise.all(items.map(({ archiveId }) => archivesOf(later).read("thread", archiveId)));
    const positions = archived.flatMap(({ messages }) => messages.map(({ position }) => position));
    const { messages } = await loaded(later, "thread");
    const log = await logOf(later, "thread");
    assert.equal(messages.length, 1);
    assert.deepEqual(
      [...positions, log.at(-1)?.position],
      log.map(({ position }) => position),
    );
    assert.deepEqual(
      archived.map(({ messages, upTo }) => messages.at(-1)?.position === upTo),
      Array(4).fill(true),
    );
  }),

  archiveCase("Archived messages stay in the log, where they were", async (bench) => {
    const { store } = bench;
    await store.append("thread", words("1", "2", "3"));
    // A row may move to another file; its place in the log is the same.
    const seen = async (from: Checkpointer) => [
      (await logOf(from, "thread")).map(({ rowRef, ...entry }) => entry),
      await from.listThreads(),
    ];
    const before = await seen(store);
    await compact(store, "thread", 1);
    const later = await bench.again();
    assert.deepEqual(await seen(later), before);
    const { messages } = await archivesOf(later).read("thread", "a1");
    assert.deepEqual(messages, (await logOf(later, "thread")).slice(0, 2));
  }),

  archiveCase("An archive keeps the system prompt and the extra of its moment", async (bench) => {
    const { store } = bench;
    await store.append("thread", words("1", "2", "3"));
    await compact(store, "thread", 2);
    await store.saveExtra("thread", { plan: { step: 1 }, list: [null, "\0"] });
    await compact(store, "thread", 1, { system: "Be brief." });
    await store.saveExtra("thread", { plan: { step: 2 } });
    const archives = archivesOf(await bench.again());
    const [one, two] = [await archives.read("thread", "a1"), await archives.read("thread", "a2")];
    assert.deepEqual([one.system, one.extra], [null, {}]);
    assert.deepEqual([two.system, two.extra], ["Be brief.", { plan: { step: 1 }, list: [null, "\0"] }]);
  }),

  archiveCase("E1 E2 a summary and a system prompt are any text, an empty one too", async (bench) => {
    const { store } = bench;
    const any = "nul \0, \u{1f600}, e\u0301, \u2028, 100 % 'quoted' \"\\\" {x}";
    await store.append("thread", words("1", "2", "3"));
    await compact(store, "thread", 2, { summary: any, system: any });
    await compact(store, "thread", 1, { summary: "half a pair \ud83d", system: "\udd11" });
    await compact(store, "thread", 0, { summary: "", system: "" });
    const later = await bench.again();
    const archives = archivesOf(later);
    const kept = await Promise.all(["a1", "a2", "a3"].map((archiveId) => archives.read("thread", archiveId)));
    assert.deepEqual(
      kept.map(({ summary, system, previousSummary }) => [summary, system, previousSummary]),
      [
        [any, any, null],
        ["half a pair \ufffd", "\ufffd", any],
        ["", "", "half a pair \ufffd"],
      ],
    );
    assert.equal((await loaded(later, "thread")).summary, "");
  }),

  archiveCase("M10 M11 M12 M15 archived and kept messages stay as they were, byte for byte", async (bench) => {
    const signed = { type: "thinking", thinking: "First.\n", provider_options: { a: { signature: "Eq+/=\n\u0301" } } };
    const said = [
      raw({
        ...assistantMessage([]),
        content: [signed, { type: "redacted_thinking", data: "Zm9v+/=" }, text("e\u0301")],
      }),
      raw({ role: "assistant", content: [{ type: "reasoning", content: null, summary: [] }], usage: null }),
      raw({ role: "user", content: [{ type: "image", source: "AAECAw==", media_type: "image/png" }], metadata: {} }),
      raw({
        role: "user",
        content: [{ type: "video_v9", foo: 1, zeta: [], a: { "10": 1, "2": null } }],
        field_of_v9: 1,
      }),
      assistantMessage([toolCall("call_0", "look", { zeta: 1, a: "\0" })]),
      toolResultMessage({ id: "call_0", name: "look" }, "nul \0", { details: [null, { b: 1 }] }),
      raw({ ...assistantMessage([]), content: [{ ...signed, thinking: "kept" }, text("after")] }),
    ];
    const { store } = bench;
    await store.append("thread", said);
    await compact(store, "thread", 1);
    const later = await bench.again();
    const { messages, kept } = await loaded(later, "thread");
    assert.equal(kept, 1);
    const archived = (await archivesOf(later).read("thread", "a1")).messages.map(({ message }) => message);
    assert.deepEqual(
      [...archived, ...messages].map((message) => JSON.stringify(message)),
      said.map((message) => JSON.stringify(message)),
    );
  }),

  archiveCase("A run may be compacted while it is under way", async (bench) => {
    const { store } = bench;
    await store.claimRun("thread", "run");
    await store.append("thread", [say("1", "run"), reply("2", "run"), reply("3", "run")]);
    await store.savePendingRequest("thread", request("q"), { runId: "run" });
    await store.saveHitlAnswer("thread", "earlier", false, { runId: "run" });
    await compact(store, "thread", 1);
    assert.deepEqual(await store.loadPending("thread"), { request: request("q"), runId: "run" });
    assert.equal(await store.loadHitlAnswer("thread", "earlier", { runId: "run" }), false);
    await store.append("thread", [reply("4", "run")]);
    await store.markRunComplete("thread", "run");
    await rejectsWith(store.append("thread", [reply("5", "run")]), "run_already_completed");
    const later = await bench.again();
    assert.deepEqual((await later.snapshot("thread", { afterRunId: "run" })).map(textOf), ["3", "4"]);
  }),

  archiveCase("An archive of many messages is whole", async (bench) => {
    const { store } = bench;
    const many = Array.from({ length: 1200 }, (_, i) => `${i}`);
    await store.append("thread", words(...many));
    const { messageCount } = await compact(store, "thread", 1);
    const later = await bench.again();
    const { messages } = await archivesOf(later).read("thread", "a1");
    const said = messages.map(({ message }) => message && textOf(message));
    assert.deepEqual([messageCount, said], [1199, many.slice(0, -1)]);
    assert.deepEqual(await texts(later, "thread"), ["1199"]);
  }),

  archiveCase("C7 F7 of compactions at once one is made, and a second try makes no other", async (bench) => {
    const { store } = bench;
    const expectedRevision = await store.append("thread", words("1", "2", "3"));
    const upTo = (await logOf(store, "thread"))[1]?.position ?? 0;
    const options = { upTo, summary: "once", expectedRevision };
    const works = Array.from({ length: 5 }, () => archivesOf(store).compact("thread", options));
    const { resolved, refused } = await settle(works);
    assert.equal(resolved.length, 1);
    const fields = { threadId: "thread", upTo, compactedUpTo: upTo };
    for (const error of refused) await rejectsWith(Promise.reject(error), "compaction_conflict", fields);
    const again = archivesOf(await bench.again());
    await rejectsWith(again.compact("thread", { ...options, summary: "twice" }), "compaction_conflict", fields);
    assert.deepEqual((await again.list("thread")).items, resolved);
  }),

  conformanceCase(
    "Two stores on the same data see each other's compactions, and of two at once one is made",
    async ({ store, other }) => {
      const second = await other();
      await store.append("thread", words("1", "2", "3"));
      await compact(second, "thread", 2);
      const { messages, summary, revision } = await loaded(store, "thread");
      assert.deepEqual([messages.map(textOf), summary], [["2", "3"], "summary"]);
      const races = [store, second].map((one) => compact(one, "thread", 1, { expectedRevision: revision }));
      const { resolved, refused } = await settle(races);
      assert.equal(resolved.length, 1);
      await rejectsWith(Promise.reject(refused[0]), "compaction_conflict");
      assert.deepEqual([await texts(store, "thread"), await texts(second, "thread")], [["3"], ["3"]]);
      assert.equal((await archivesOf(second).list("thread")).items.length, 2);
      await store.append("thread", words("4"));
      await rejectsWith(compact(second, "thread", 1, { expectedRevision: revision }), "thread_conflict");
    },
    ["archives", "multiProcess"],
  ),
];
