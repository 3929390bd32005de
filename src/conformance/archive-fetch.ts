/** What a search shows of a source, and how `fetch` pages it. */
import assert from "node:assert/strict";
import type { FetchOptions, SearchHit, SourcePage } from "../checkpoint/archives.ts";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { toolCall, toolResultMessage } from "../messages/construct.ts";
import { type Bench, conformanceCase } from "./case.ts";
import { archivesOf, archiveTexts, compact, rejectsWith, reply, say, wrong } from "./tools.ts";

const searchCase = (name: string, body: (bench: Bench) => Promise<void>) =>
  conformanceCase(name, body, ["archives", "search"]);

/** Characters of one to four bytes, joined ones, and accents that stand alone. */
const MIXED = "plain é e\u0301 用户 😀 👨‍👩‍👧 🇩🇪 ß İ ﬁ \u0301\u0302\u0303 ".repeat(40);

async function hitFor(store: Checkpointer, query: string, previewBytes?: number): Promise<SearchHit> {
  const { hits } = await archivesOf(store).search(query, { previewBytes });
  assert.equal(hits.length, 1, `hits for ${query}`);
  return hits[0] ?? assert.fail("no hit");
}

const at = ({ archive_id, source_id }: SearchHit): FetchOptions => ({ archiveId: archive_id, sourceId: source_id });

export const archiveFetchCases = [
  searchCase("A preview shows the match and keeps to its bytes, wherever the match stands", async (bench) => {
    const said = [
      `STARTMARK ${MIXED}`,
      `${MIXED} MIDDLEMARK ${MIXED}`,
      `${MIXED} ENDMARK`,
      `${"x".repeat(5000)}JOINEDMARK${"😀".repeat(3000)}`,
      `${"İ".repeat(900)}SHIFTMARK${"ß".repeat(900)}`,
    ];
    await archiveTexts(bench.store, "thread", said);
    const later = await bench.again();
    for (const [i, mark] of ["STARTMARK", "MIDDLEMARK", "ENDMARK", "JOINEDMARK", "SHIFTMARK"].entries()) {
      const whole = said[i]?.normalize("NFC") ?? "";
      for (const previewBytes of [undefined, 30, 31, 32, 33, 34, 100, 10_000]) {
        const { preview } = await hitFor(later, mark.toLowerCase(), previewBytes);
        const about = `${mark} in ${previewBytes} bytes: ${preview}`;
        const bytes = Buffer.byteLength(preview);
        assert.ok(bytes <= (previewBytes ?? 300), about);
        assert.ok(preview.includes(mark), about);
        assert.ok(preview.isWellFormed() && !preview.includes("\ufffd"), about);
        const shown = preview.replace(/^…/, "").replace(/…$/, "");
        assert.ok(whole.includes(shown), about);
        const places = [preview.startsWith("…"), preview.endsWith("…")];
        assert.deepEqual(places, [!whole.startsWith(shown), !whole.endsWith(shown)], about);
      }
    }
  }),

  searchCase("A preview of the least size is one all the same, of a match of any length", async ({ store }) => {
    const long = "match of forty-one characters, more or less";
    await archiveTexts(store, "thread", [`before it ${long} after it`]);
    const { preview } = await hitFor(store, long, 16);
    assert.ok(Buffer.byteLength(preview) <= 16, preview);
    assert.match(preview, /match/);
    // 16 bytes are not 16 characters.
    await archiveTexts(store, "thread", ["éééééé 17th"]);
    const { preview: cut } = await hitFor(store, "17th", 16);
    assert.ok(Buffer.byteLength(cut) <= 16 && cut.startsWith("…") && cut.endsWith("17th"), cut);
    await archiveTexts(store, "thread", ["exactly 16 bytes"]);
    assert.equal((await hitFor(store, "16 bytes", 16)).preview, "exactly 16 bytes");
  }),

  searchCase("A preview shows the first match, and of U+0000 a sign for it", async ({ store }) => {
    await archiveTexts(store, "thread", [`${"a ".repeat(500)}needle one ${"b ".repeat(500)}needle two`, "nul\0sign"]);
    assert.match((await hitFor(store, "needle")).preview, /needle one/);
    assert.equal((await hitFor(store, "sign")).preview, "nul\ufffdsign");
  }),

  searchCase("fetch pages a source by bytes, and the pages join to the whole", async (bench) => {
    const whole = `NEEDLE \0 ${MIXED}`;
    await archiveTexts(bench.store, "thread", [whole]);
    const later = await bench.again();
    const hit = await hitFor(later, "needle");
    const total = Buffer.byteLength(whole);
    for (const limit of [16, 17, 18, 19, 1000, undefined, 1_000_000]) {
      let joined = "";
      let offset: number | null = 0;
      while (offset !== null) {
        const page: SourcePage = await archivesOf(later).fetch("thread", { ...at(hit), offset, limit });
        const { text, next_offset, has_more, total_bytes } = page;
        const bytes = Buffer.byteLength(text);
        assert.ok(bytes > 0 && bytes <= (limit ?? 4000), `${bytes} bytes of ${limit}`);
        assert.deepEqual([page.offset, total_bytes, has_more], [offset, total, next_offset !== null]);
        if (next_offset !== null) assert.equal(next_offset, offset + bytes);
        joined += text;
        offset = next_offset;
      }
      assert.equal(joined, whole, `by ${limit}`);
    }
    const { text, offset, next_offset, has_more, total_bytes, ...rest } = await archivesOf(later).fetch(
      "thread",
      at(hit),
    );
    const { archive_id, source_id, role, created_at } = hit;
    assert.deepEqual(rest, { archive_id, source_id, role, created_at });
  }),

  searchCase(
    "fetch from within a character goes on to the next, and from past the end gives nothing",
    async ({ store }) => {
      await archiveTexts(store, "thread", ["a é 😀 needle"]);
      const hit = await hitFor(store, "needle");
      const total = Buffer.byteLength("a é 😀 needle");
      const from = async (offset: number) => {
        const {
          text,
          offset: begins,
          next_offset,
          has_more,
        } = await archivesOf(store).fetch("thread", { ...at(hit), offset });
        assert.deepEqual([next_offset, has_more], [null, false]);
        return [begins, text];
      };
      assert.deepEqual(await from(2), [2, "é 😀 needle"]);
      assert.deepEqual(await from(3), [4, " 😀 needle"]);
      for (const offset of [6, 7, 8]) assert.deepEqual(await from(offset), [9, " needle"]);
      for (const offset of [total, total + 1, Number.MAX_SAFE_INTEGER])
        assert.deepEqual(await from(offset), [total, ""]);
    },
  ),

  searchCase("fetch gives the text of any archived message, one without text too", async ({ store }) => {
    await store.append("thread", [
      say("asked"),
      { ...reply("said"), content: [toolCall("c", "look", { at: { x: 1 } })] } as never,
      toolResultMessage({ id: "c", name: "look" }, "seen"),
      say(""),
    ]);
    await compact(store, "thread", 0);
    const { messages } = await archivesOf(store).read("thread", "a1");
    const pages = messages.map(({ position }) =>
      archivesOf(store).fetch("thread", { archiveId: "a1", sourceId: String(position) }),
    );
    assert.deepEqual(
      (await Promise.all(pages)).map(({ role, text, total_bytes }) => [role, text, total_bytes]),
      [
        ["user", "asked", 5],
        ["assistant", "look\nat:\n  x: 1", 15],
        ["tool_result", "seen", 4],
        ["user", "", 0],
      ],
    );
  }),

  searchCase("L30 fetch finds a source by its own id, in its own archive and thread", async ({ store }) => {
    await archiveTexts(store, "thread", ["one"]);
    await archiveTexts(store, "thread", ["two"]);
    await store.append("thread", [say("active")]);
    await archiveTexts(store, "other", ["elsewhere"]);
    const archives = archivesOf(store);
    const [one, two] = [await hitFor(store, "one"), await hitFor(store, "two")];
    const fetch = (archiveId: string, sourceId: string, threadId = "thread") =>
      archives.fetch(threadId, { archiveId, sourceId });
    assert.equal((await fetch(one.archive_id, one.source_id)).text, "one");
    await rejectsWith(fetch(one.archive_id, two.source_id), "source_not_found");
    await rejectsWith(fetch(two.archive_id, one.source_id), "source_not_found");
    for (const archiveId of ["a3", "a0", "", "x", "a1' OR 1=1 --", "\0"]) {
      await rejectsWith(fetch(archiveId, one.source_id), "archive_not_found");
    }
    await rejectsWith(fetch(one.archive_id, one.source_id, "missing"), "archive_not_found");
    const { revision } = (await store.load("thread")) ?? assert.fail("no thread");
    const id = one.source_id;
    const bad = [
      `${revision}`,
      `${revision + 1}`,
      "0",
      "-1",
      "1.5",
      "",
      "x",
      `${id} `,
      `0${id}`,
      `${id}' OR 1=1 --`,
      "1e400",
    ];
    for (const sourceId of bad) await rejectsWith(fetch(one.archive_id, sourceId), "source_not_found");
  }),

  searchCase("W11 what is no id, offset or size of a page is refused", async ({ store }) => {
    await archiveTexts(store, "thread", ["needle"]);
    const good = at(await hitFor(store, "needle"));
    const fetch = (options: object) => archivesOf(store).fetch("thread", { ...good, ...options });
    const never = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, wrong("20"), wrong(null)];
    for (const offset of never) await rejectsWith(fetch({ offset }), "invalid_argument");
    for (const limit of [...never, 0, 15, 1_000_001]) await rejectsWith(fetch({ limit }), "invalid_argument");
    for (const id of [undefined, null, 1, ["a1"]]) {
      await rejectsWith(fetch({ archiveId: id }), "invalid_argument");
      await rejectsWith(fetch({ sourceId: id }), "invalid_argument");
    }
    for (const threadId of ["", "\0", wrong(5)]) {
      await rejectsWith(archivesOf(store).fetch(threadId, good), "invalid_id");
    }
    assert.equal((await fetch({ limit: 16, offset: 0 })).text, "needle");
  }),
];
