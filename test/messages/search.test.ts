/** What every engine's search shares: previews, pages of a source, the options at the door, the time limit. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkFetch,
  checkSearch,
  comparable,
  hitOf,
  pageOf,
  queryOf,
  SearchTimer,
} from "../../src/checkpoint/search.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { foldCase, normalText } from "../../src/util/fold.ts";

const sourceOf = (text: string) => ({
  threadId: "thread",
  archiveId: "a1",
  position: 7,
  createdAt: new Date(0),
  message: userMessage(text),
});
const hit = (text: string, query: string, previewBytes: number) =>
  hitOf(sourceOf(text), queryOf(query), previewBytes, new SearchTimer(60_000, undefined));
/** Characters of one to four bytes, combining marks, joined emoji, and those that grow when they are folded. */
const unit = fc.constantFrom(..."ab \n…éeßİﬁΐ用户😀🇩🇪\u0301\u0308\u200d", "👨‍👩‍👧", "e\u0301");
const text = (maxLength: number) =>
  fc.oneof(
    fc.array(unit, { maxLength }).map((units) => units.join("")),
    fc.string({ unit: "binary", maxLength }).map((any) => any.toWellFormed()),
  );

describe("preview", () => {
  test("keeps to its bytes, shows the match, and is a piece of the text", async () => {
    await fc.assert(
      fc.asyncProperty(text(200), text(200), fc.integer({ min: 36, max: 400 }), async (before, after, previewBytes) => {
        // Marks that follow a letter would make it another one.
        const whole = `${before}|NEEDLE|${after}`;
        const preview = (await hit(whole, "needle", previewBytes))?.preview ?? expect.fail("no hit");
        expect(Buffer.byteLength(preview)).toBeLessThanOrEqual(previewBytes);
        expect(preview.isWellFormed()).toBe(true);
        expect(preview).toContain("NEEDLE");
        const normal = normalText(whole);
        // The text itself may begin or end with the sign for what was left out.
        const starts = normal.startsWith(preview.slice(0, 8)) ? preview : preview.slice(1);
        const shown = normal.endsWith(starts.slice(-8)) ? starts : starts.slice(0, -1);
        expect(normal).toContain(shown);
      }),
      { numRuns: 1000 },
    );
  });

  test("shows a third of its room before the match and the rest after it", async () => {
    const whole = `${"b".repeat(1000)}NEEDLE${"a".repeat(1000)}`;
    expect((await hit(whole, "NEEDLE", 306))?.preview).toBe(`…${"b".repeat(100)}NEEDLE${"a".repeat(194)}…`);
  });

  test("is the whole text when that fits, and just not when it doesn't", async () => {
    const fits = `${"é".repeat(20)}needle`;
    expect((await hit(fits, "needle", 46))?.preview).toBe(fits);
    expect((await hit(fits, "needle", 45))?.preview).toBe(`…${"é".repeat(6)}needle`);
  });

  test("is there for any text that holds the query, of any length", async () => {
    await fc.assert(
      fc.asyncProperty(
        text(60),
        text(60),
        text(60),
        fc.integer({ min: 16, max: 60 }),
        async (before, query, after, previewBytes) => {
          // Parts that were normalised apart can join otherwise.
          const whole = normalText(before + query + after);
          const wanted = queryOf(query);
          const found = await hit(whole, query, previewBytes);
          expect(found !== undefined).toBe(comparable(whole, wanted).includes(wanted.text));
          expect(Buffer.byteLength(found?.preview ?? "")).toBeLessThanOrEqual(previewBytes);
          expect(found?.preview.isWellFormed() ?? true).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("a long text", () => {
  const filler = "ab é e\u0301 각 \u1112\u1161\u11ab 😀 ".repeat(20_000);

  test.for([
    ["at the start", 0],
    ["across the end of a piece", 128 * 1024 - 3],
    ["just after it", 128 * 1024],
    ["deep inside", 300_001],
    ["at the end", filler.length],
  ] as const)("is found in as a short one is, %s", async ([, at]) => {
    for (const needle of ["NEEDLE", "e\u0301\u0301NEEDLE\u1112\u1161\u11ab", `NEEDLE ${"x\u0301".repeat(1000)}`, "✂"]) {
      const cut = filler.slice(0, at).toWellFormed();
      const whole = `${cut}|${needle}|${filler.slice(at)}`;
      const preview = (await hit(whole, needle, 400))?.preview;
      expect(preview).toContain(normalText(needle).slice(0, 60));
      expect(Buffer.byteLength(preview ?? "")).toBeLessThanOrEqual(400);
      expect(preview?.startsWith("…")).toBe(at > 0);
      expect(preview?.endsWith("…")).toBe(at < filler.length || needle.length > 400);
    }
    expect(await hit(filler, "needle", 400)).toBeUndefined();
  });

  test.for([0, 1, 70_000, 300_001])("is found by a query longer than a piece, from %i on", async (at) => {
    const query = filler.slice(at).toWellFormed();
    const whole = `${filler.slice(0, at).toWellFormed()}|${query}|`;
    expect((await hit(whole, `|${query}`, 400))?.preview).toContain(normalText(`|${query}`).slice(0, 60));
    expect(await hit(whole, `|${query}?`, 400)).toBeUndefined();
  });

  test("of 20 MB leaves the event loop free, and stops at its time limit", async () => {
    const whole = "Long text, and é. ".repeat(1_200_000);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    expect(await hit(whole, "needle", 400)).toBeUndefined();
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
    const limited = hitOf(sourceOf(whole), queryOf("needle"), 400, new SearchTimer(1, undefined));
    await expect(limited).rejects.toMatchObject({ code: "search_timeout" });
  });
});

test("S1 S11 a query of three characters is folded, of fewer is not; characters are counted in their normal form", () => {
  const folded = ["abc", "用户名", "😀😃😄", "e\u0301bc", "  X"];
  const exact = ["", "ab", "用户", "😀😃", "e\u0301b", "ﬁß", "\0\ud83d"];
  for (const query of folded) expect(queryOf(query)).toEqual({ text: foldCase(normalText(query)), folded: true });
  for (const query of exact) expect(queryOf(query)).toEqual({ text: normalText(query), folded: false });
});

describe("pages of a source", () => {
  const fetch = { archiveId: "a1", sourceId: "7" };

  test("join to the whole text, whatever their size, each between characters", () => {
    fc.assert(
      fc.property(text(300), fc.integer({ min: 16, max: 90 }), (whole, limit) => {
        const source = sourceOf(whole);
        const total = Buffer.byteLength(whole);
        let joined = "";
        let offset: number | null = 0;
        while (offset !== null) {
          const page = pageOf(source, checkFetch({ ...fetch, offset, limit }));
          const bytes = Buffer.byteLength(page.text);
          expect(bytes).toBeLessThanOrEqual(limit);
          // No character has more than four bytes: only the last page may be shorter.
          if (page.has_more) expect(bytes).toBeGreaterThan(limit - 4);
          expect(page).toMatchObject({ offset, total_bytes: total, has_more: page.next_offset !== null });
          joined += page.text;
          offset = page.next_offset;
        }
        expect(joined).toBe(whole);
      }),
      { numRuns: 1000 },
    );
  });

  test("begin at the next character when the offset is within one", () => {
    fc.assert(
      fc.property(text(40), fc.nat({ max: 200 }), (whole, offset) => {
        const page = pageOf(sourceOf(whole), checkFetch({ ...fetch, offset }));
        const starts = [0];
        for (const character of whole) starts.push((starts.at(-1) ?? 0) + Buffer.byteLength(character));
        const expected = starts.find((start) => start >= offset) ?? starts.at(-1);
        expect(page.offset).toBe(expected);
        expect(page.text).toBe(Buffer.from(whole).subarray(expected).toString());
      }),
      { numRuns: 1000 },
    );
  });

  test("name no position that is none", () => {
    for (const sourceId of ["0", "-1", "1.5", "01", "1 ", "", "x", "1e3", "99999999999999999"]) {
      expect(checkFetch({ ...fetch, sourceId }).position).toBeNaN();
    }
    expect(checkFetch({ ...fetch, sourceId: "9007199254740991" }).position).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("the time limit", () => {
  test("is kept, and told in the error", async () => {
    const timer = new SearchTimer(1, undefined);
    timer.check();
    while (timer.remainingMs > 0);
    expect(() => timer.check()).toThrow(expect.objectContaining({ code: "search_timeout", limitMs: 1 }));
    await expect(timer.breathe()).rejects.toMatchObject({ code: "search_timeout" });
  });

  test("leaves the event loop a turn in every slice of work", async () => {
    const timer = new SearchTimer(600_000, undefined);
    let turns = 0;
    const count = setInterval(() => turns++, 0);
    for (let slice = 0; slice < 5; slice++) {
      while (!timer.isSliceOver);
      const before = turns;
      while (turns === before) await timer.breathe();
    }
    clearInterval(count);
    expect(turns).toBeGreaterThanOrEqual(5);
    timer.check();
  });

  test("a search that is told to stop rejects with the reason it was given", async () => {
    const stop = new AbortController();
    const { timer } = checkSearch("text", { signal: stop.signal });
    timer.check();
    const reason = new Error("enough");
    stop.abort(reason);
    expect(() => timer.check()).toThrow(reason);
    await expect(timer.breathe()).rejects.toBe(reason);
  });
});

test("a search's options have the defaults that the contract states", () => {
  const { threadId, limit, previewBytes, timer } = checkSearch("text");
  expect({ threadId, limit, previewBytes }).toEqual({ threadId: undefined, limit: 20, previewBytes: 300 });
  expect(timer.remainingMs).toBeGreaterThan(1000);
  expect(timer.remainingMs).toBeLessThanOrEqual(2000);
  expect(checkFetch({ archiveId: "a1", sourceId: "1" })).toMatchObject({ offset: 0, limit: 4000 });
});
