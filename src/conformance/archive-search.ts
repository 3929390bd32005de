/** Search: what it looks through, in which order it tells of what it found, and what it refuses. */
import assert from "node:assert/strict";
import { assistantMessage, image, text, thinking, toolCall, toolResultMessage } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import {
  archivesOf,
  archiveTexts,
  compact,
  completeRun,
  found,
  logOf,
  raw,
  rejectsWith,
  reply,
  say,
  wrong,
} from "./tools.ts";

const searchCase = (name: string, body: (bench: Bench) => Promise<void>) =>
  conformanceCase(name, body, ["archives", "search"]);

export const archiveSearchCases = [
  searchCase("S15 tool calls and textual results are found, and nothing that nobody said", async (bench) => {
    const { store } = bench;
    const args = { path: "/tmp/Needle.txt", deep: { list: ["inner value", 4711, true, null] }, "odd key": "1" };
    const options = { provider_options: { secret: "hidden-signature" } };
    await store.append("the-thread-id", [
      raw({ ...say("spoken word"), metadata: { note: "hidden-metadata" }, other: "hidden-field" }),
      raw({
        ...say(""),
        content: [image("aGlkZGVuLWltYWdl", "image/png"), { type: "video_v9", text: "hidden-block" }],
      }),
      assistantMessage(
        [{ ...thinking("hidden-reasoning"), ...options }, toolCall("hidden-call-id", "read_file", args)],
        {
          run_id: "hidden-run",
          error_message: "hidden-error",
          model_id: "hidden-model",
        },
      ),
      toolResultMessage({ id: "hidden-call-id", name: "hidden-name" }, [text("printed result")], {
        details: { note: "hidden-details" },
      }),
    ]);
    await compact(store, "the-thread-id", 0, { summary: "hidden-summary", system: "hidden-system" });
    await store.saveExtra("the-thread-id", { note: "hidden-extra" });
    const later = await bench.again();
    const roles = async (query: string) => (await archivesOf(later).search(query)).hits.map(({ role }) => role);
    assert.deepEqual(await roles("spoken"), ["user"]);
    assert.deepEqual(await roles("printed result"), ["tool_result"]);
    for (const said of ["read_file", "/tmp/needle", "inner value", "4711", "odd key", "path", "deep"]) {
      assert.deepEqual(await roles(said), ["assistant"], said);
    }
    const unsaid = [
      "hidden",
      "the-thread-id",
      "aGlkZGVu",
      "image/png",
      "base64",
      "type",
      "role",
      "content",
      "arguments",
    ];
    for (const word of [...unsaid, '":', '{"', "[{", "\\n"]) assert.deepEqual(await roles(word), [], word);
  }),

  searchCase("What is active is not searched until it is set aside", async ({ store }) => {
    await store.append("thread", [say("needle 1"), say("needle 2"), say("needle 3")]);
    assert.deepEqual(await found(store, "needle"), []);
    await compact(store, "thread", 2);
    assert.deepEqual(await found(store, "needle"), ["needle 1"]);
    await compact(store, "thread", 1);
    await store.append("thread", [say("needle 4")]);
    assert.deepEqual(await found(store, "needle"), ["needle 2", "needle 1"]);
    assert.deepEqual(await found(store, "ne"), ["needle 2", "needle 1"]);
  }),

  searchCase("W6 hits come newest first by their place in the thread, whatever the clock said", async (bench) => {
    const days = [20, 3, 9, 1];
    const createdAt = (i: number) => new Date(Date.UTC(2020, 0, days[i]));
    const messages = days.map((_, i) => ({ message: reply(`needle ${i}`), createdAt: createdAt(i) }));
    await bench.store.importThread("thread", { messages });
    await compact(bench.store, "thread", 2);
    await compact(bench.store, "thread", 0);
    const later = await bench.again();
    for (const query of ["needle", "ne"]) {
      const { hits, has_more } = await archivesOf(later).search(query, { threadId: "thread" });
      assert.equal(has_more, false);
      assert.deepEqual(
        hits.map(({ source_id, ...hit }) => hit),
        [3, 2, 1, 0].map((i) => ({
          thread_id: "thread",
          archive_id: i < 2 ? "a1" : "a2",
          role: "assistant",
          created_at: createdAt(i).toISOString(),
          preview: `needle ${i}`,
        })),
      );
      assert.equal(new Set(hits.map(({ source_id }) => source_id)).size, 4);
    }
  }),

  searchCase("A search gives as many hits as its limit, and says whether there are more", async ({ store }) => {
    await archiveTexts(
      store,
      "thread",
      Array.from({ length: 25 }, (_, i) => `needle ${i}`),
    );
    const archives = archivesOf(store);
    for (const query of ["needle", "ne"]) {
      for (const [limit, count, more] of [
        [undefined, 20, true],
        [24, 24, true],
        [25, 25, false],
        [10_000, 25, false],
        [1, 1, true],
        [0, 0, true],
      ] as const) {
        const { hits, has_more } = await archives.search(query, { limit });
        assert.deepEqual([hits.length, has_more], [count, more], `${query} with limit ${limit}`);
        if (count > 0) assert.equal(hits[0]?.preview, "needle 24");
      }
    }
    assert.deepEqual(await archives.search("nothing", { limit: 0 }), { hits: [], has_more: false });
  }),

  searchCase("A match is found wherever it stands in a long text", async ({ store }) => {
    // Each character once, so that each two that stand together are one place.
    const text = String.fromCodePoint(...Array.from({ length: 20_000 }, (_, i) => 0x4e00 + i));
    const said = [text, text.slice(0, 10_000), text.slice(10_001)];
    await archiveTexts(store, "thread", said);
    for (let start = 0; start < 20_000; start += 1111) {
      for (const length of [2, 3, 100]) {
        const query = text.slice(start, start + length);
        const { hits } = await archivesOf(store).search(query);
        const expected = said.filter((one) => one.includes(query));
        assert.equal(hits.length, expected.length, `${length} from ${start}`);
        for (const { preview } of hits) assert.ok(preview.includes(query.slice(0, 50)), `${length} from ${start}`);
      }
    }
  }),

  searchCase("What nearly matches takes no place of what does", async ({ store }) => {
    const near = Array.from({ length: 60 }, (_, i) => `Needl e, nEE eed edl dle ${i}`);
    await archiveTexts(store, "thread", ["needle 1", ...near, "needle 2", ...near]);
    for (const query of ["needle", "ne"]) {
      const { hits, has_more } = await archivesOf(store).search(query, { limit: 2 });
      assert.deepEqual([hits.map(({ preview }) => preview), has_more], [["needle 2", "needle 1"], false]);
    }
  }),

  searchCase("A source is one hit however often it matches", async ({ store }) => {
    await store.append("thread", [
      assistantMessage([text("needle needle"), text("needle"), toolCall("c", "needle", { a: "needle" })]),
    ]);
    await compact(store, "thread", 0);
    for (const query of ["needle", "ne"]) assert.equal((await archivesOf(store).search(query)).hits.length, 1);
  }),

  searchCase("W11 what is no text, limit, size, time or id is refused", async ({ store }) => {
    await archiveTexts(store, "thread", ["text"]);
    const archives = archivesOf(store);
    for (const query of [undefined, null, 5, ["text"], {}])
      await rejectsWith(archives.search(wrong(query)), "invalid_argument");
    const never = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, wrong("20"), wrong(null)];
    const bad = {
      limit: [...never, 10_001],
      previewBytes: [...never, 0, 15, 10_001],
      timeLimitMs: [...never, 0, 600_001],
    };
    for (const [name, values] of Object.entries(bad)) {
      for (const value of values) await rejectsWith(archives.search("text", { [name]: value }), "invalid_argument");
    }
    for (const threadId of ["", "\0", "\ud83d", "x".repeat(256), wrong(5), wrong(null)]) {
      await rejectsWith(archives.search("text", { threadId }), "invalid_id");
    }
    const edges = { limit: 10_000, previewBytes: 10_000, timeLimitMs: 600_000 };
    assert.equal((await archives.search("text", edges)).hits.length, 1);
    assert.equal((await archives.search("text", { previewBytes: 16 })).hits.length, 1);
  }),

  searchCase("A completed run's sources are found by the time that its messages were stored", async ({ store }) => {
    await completeRun(store, "thread", "run");
    await compact(store, "thread", 0);
    const log = await logOf(store, "thread");
    const { hits } = await archivesOf(store).search(" run");
    const stored = log.map(({ createdAt, message }) => [createdAt.toISOString(), message?.role]);
    assert.deepEqual(hits.map(({ created_at, role }) => [created_at, role]).toReversed(), stored);
  }),
];
