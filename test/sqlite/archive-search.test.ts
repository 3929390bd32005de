/** Search by the index of a file: that it finds what a scan finds, across blocks of ids, in long messages, in every query. */
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { parseInTurns } from "../../src/checkpoint/sqlite/large-message.ts";
import { assistantMessage, toolCall, userMessage } from "../../src/messages/construct.ts";
import type { JsonValue } from "../../src/messages/json.ts";
import { tempDir } from "../support/temp.ts";
import { archiveTexts, found, hasFts5, OpenDatabase } from "./archive-files.ts";

/** A small alphabet, so that queries and texts meet: case, marks, folding of all kinds, signs of FTS5, JSON and SQL. */
const CHARACTERS = [
  ..."aAbBeE\u0301é ßẞsSſfﬁiıİ\u0307σςΣ\"'*()-\\/\n\0%_;:,",
  "😀",
  "👨‍👩‍👧",
  "\ud83d",
  "K",
  "用",
  "\u{f0000}",
];
const said = fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 40 }).map((parts) => parts.join(""));

test.skipIf(!hasFts5)(
  "S7 S11 what the index finds is what the in-memory engine finds, and what a scan finds",
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(said, { minLength: 1, maxLength: 12 }),
        fc.array(said, { maxLength: 8 }),
        async (texts, more) => {
          await using indexed = await SqliteCheckpointer.open(":memory:");
          await using memory = new MemoryCheckpointer();
          const path = join(tempDir(), "scan.db");
          await using scanning = await SqliteCheckpointer.open(path, { durability: "off" });
          const stores = [indexed, memory, scanning];
          for (const store of stores) await archiveTexts(store, "t", texts);
          using db = new OpenDatabase(path);
          db.exec("DROP TABLE everthread_archive_index");
          const parts = texts.flatMap((text) => [text.slice(1, 4), text.slice(2, 9), text.slice(-5), text]);
          for (const query of [...more, ...parts, ...more.map((text) => text.slice(0, 2))]) {
            const [expected, ...others] = await Promise.all(stores.map((store) => found(store, query)));
            for (const other of others) expect(other, JSON.stringify(query)).toEqual(expected);
          }
        },
      ),
      { numRuns: 40 },
    );
  },
);

test("what a tool call says is found by what stands nowhere in its JSON", async () => {
  await using store = await SqliteCheckpointer.open(":memory:");
  const call = toolCall("c", "look", { at: { x: 1e21 }, list: ["a", 2.5], deep: 'quo"te' });
  const upTo = await store.append("t", [assistantMessage([call]), userMessage("nothing of that")]);
  await store.archives.compact("t", { upTo, summary: "" });
  for (const query of ["t:", ": ", "- ", "e+", "+2", "- a", "x: 1", '"t'])
    expect(await found(store, query), query).toHaveLength(1);
});

test("S4 a query of any length is one question: of 100 kB, of one character again and again", async () => {
  await using store = await SqliteCheckpointer.open(":memory:");
  const long = Array.from({ length: 12_000 }, (_, i) => `word ${i}`).join(" ");
  await archiveTexts(store, "t", [long, `${long}!`, "a".repeat(500), "aaa"]);
  expect((await store.archives.search(long.toUpperCase())).hits).toHaveLength(2);
  expect((await store.archives.search(`${long}!`)).hits).toHaveLength(1);
  expect((await store.archives.search(long.slice(0, -1).concat("?"))).hits).toHaveLength(0);
  expect(await found(store, "aaa")).toHaveLength(2);
  expect(await found(store, "a".repeat(100))).toHaveLength(1);
});

describe("ids far apart", () => {
  /** Threads whose messages are in different blocks of the index, and so many ids apart. */
  async function spread(store: SqliteCheckpointer, path: string): Promise<void> {
    using db = new OpenDatabase(path);
    for (const id of [0, 131_070, 131_071, 262_144, 5_000_000, 8_589_934_591, 2 ** 40]) {
      db.exec(`UPDATE sqlite_sequence SET seq = ${id} WHERE name = 'messages'`);
      await archiveTexts(store, "one", [`needle one ${id}`]);
      await archiveTexts(store, "two", [`needle two ${id}`, "hay"]);
    }
  }

  test("hits are in order, once, and within the limit", async () => {
    const path = join(tempDir(), "far.db");
    await using store = await SqliteCheckpointer.open(path);
    await archiveTexts(store, "one", ["the first"]);
    await spread(store, path);
    for (const [query, threadId, count] of [
      ["needle", undefined, 14],
      ["needle", "one", 7],
      ["needle two", "two", 7],
      ["needle one", "two", 0],
      ["ne", undefined, 14],
      ["the first", "one", 1],
    ] as const) {
      const all = await store.archives.search(query, { threadId, limit: 100 });
      const ids = all.hits.map(({ source_id }) => Number(source_id));
      expect(ids, query).toEqual(ids.toSorted((a, b) => b - a));
      expect([new Set(ids).size, all.has_more], query).toEqual([count, false]);
      for (let limit = 1; limit < count; limit++) {
        const some = await store.archives.search(query, { threadId, limit });
        expect([some.hits, some.has_more]).toEqual([all.hits.slice(0, limit), true]);
      }
    }
    await store.archives.prune("two", { keep: 1 });
    expect(await found(store, "needle", "two")).toHaveLength(1);
    expect(await store.checkIntegrity()).toEqual([]);
  });
});

describe("E12 a message of megabytes", () => {
  const filler = 'ein "Füchslein" \\ \n 用户 😀 '.repeat(60_000);

  test("is found wherever the match stands, and fetched", async () => {
    await using store = await SqliteCheckpointer.open(":memory:");
    await using memory = new MemoryCheckpointer();
    const texts = [`STARTMARK ${filler}`, `${filler} MIDDLE"MARK ${filler}`, `${filler} ENDMARK`];
    for (const one of [store, memory]) {
      await archiveTexts(one, "t", texts);
      await one.append("t", [
        assistantMessage([toolCall("c", "write", { [`${filler}key`]: filler, last: "argument" })]),
      ]);
      const upTo = (await one.load("t"))?.revision ?? 0;
      await one.archives.compact("t", { upTo, summary: "" });
    }
    for (const query of [
      "startmark",
      'middle"mark',
      "endmark",
      "füchslein",
      "argument",
      "😀 key",
      "nothing",
      "zq",
      "xM",
    ]) {
      const expected = await memory.archives.search(query, { timeLimitMs: 60_000 });
      const actual = await store.archives.search(query, { timeLimitMs: 60_000 });
      const of = ({ hits }: typeof actual) => hits.map(({ preview, source_id }) => [preview, source_id]);
      expect(of(actual), query).toEqual(of(expected));
    }
  });

  test("is damage to nobody else when it is damaged", async () => {
    const path = join(tempDir(), "damaged.db");
    await using store = await SqliteCheckpointer.open(path);
    await archiveTexts(store, "t", [`needle ${filler}`, "needle two", `${filler} needle`]);
    using db = new OpenDatabase(path);
    db.exec("UPDATE messages SET message_json = substr(message_json, 1, 1500000) WHERE id = 1");
    db.exec(
      `UPDATE messages SET message_json = replace(message_json, '"role":"user"', '"role":"nobody"') WHERE id = 3`,
    );
    for (const query of ["needle", "ne"]) expect(await found(store, query)).toEqual(["needle two"]);
  });
});

describe("JSON in pieces", () => {
  const turns = { isSliceOver: true, breathe: async () => undefined };
  const parse = (json: string): Promise<JsonValue> => parseInTurns(json, turns);

  test("any JSON is parsed as by JSON.parse", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.nat(), async (value, i) => {
        const long = '\\"é\n😀\ud83d'.repeat(40_000 + (i % 7));
        const all = { value, long, list: [value, long, { [`k${i}`]: long }], [long]: value };
        const json = JSON.stringify(all);
        expect(await parse(json)).toEqual(JSON.parse(json));
        expect(await parse(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 20 },
    );
  });

  test("an escape sequence is cut nowhere, whatever stands before it", async () => {
    for (let shift = 0; shift < 14; shift++) {
      for (const escaped of ["\\u00e9", "\\\\", "\\n", "\\ud83d\\ude00", '\\\\\\"', "\\\\u00e9"]) {
        const json = `["${"x".repeat(shift)}${escaped.repeat(60_000)}"]`;
        expect(await parse(json)).toEqual(JSON.parse(json));
      }
    }
    const proto = `{"__proto__":"${"y".repeat(300_000)}"}`;
    expect(Object.entries((await parse(proto)) as object)).toEqual([["__proto__", "y".repeat(300_000)]]);
  });

  test.each(['["abc', '["abc\\"', '["abc"', `["${"\n".repeat(300_000)}"]`, "", `{"a":"${"b".repeat(300_000)}"`])(
    "what is no JSON is refused: %.10s",
    async (json) => {
      await expect(parse(json)).rejects.toBeInstanceOf(SyntaxError);
    },
  );
});
