/**
 * A search finds every archived source that says what is looked for, and no other: on SQLite, where an index finds most of it,
 * and in memory, which looks at each text. What must be found is worked out from a table of what Unicode folds, and not by the
 * code that folds.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, toolCall, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { newId } from "../../src/util/ids.ts";
import { fastDir, fuzz } from "./fuzz.ts";

/** Each letter, and what it is once case is forgotten. */
const FOLDED: Record<string, string> = {
  a: "a",
  A: "a",
  b: "b",
  B: "b",
  s: "s",
  S: "s",
  ſ: "s",
  ß: "ss",
  ẞ: "ss",
  i: "i",
  I: "i",
  ı: "i",
  İ: "i\u0307",
  f: "f",
  F: "f",
  ﬁ: "fi",
  ﬀ: "ff",
  σ: "σ",
  ς: "σ",
  Σ: "σ",
  é: "é",
  É: "é",
  Å: "å",
  å: "å",
  e: "e",
  E: "e",
  k: "k",
  K: "k",
  "\u212a": "k",
  中: "中",
  文: "文",
  한: "한",
  "😀": "😀",
  𐐀: "𐐨",
  𐐨: "𐐨",
  "%": "%",
  "*": "*",
  '"': '"',
  "'": "'",
  " ": " ",
  "\n": "\n",
  "\0": "\ufffd",
  "-": "-",
  _: "_",
};
/** As they stand in texts: also taken apart, with a mark that follows. */
const UNITS = [...Object.keys(FOLDED), "e\u0301", "E\u0301", "A\u030a", "\u1112\u1161\u11ab"];

const said = fc.string({ unit: fc.constantFrom(...UNITS), maxLength: 24 });
/** Of few letters, so that much is found that is not quite what is looked for. */
const few = fc.string({ unit: fc.constantFrom("s", "ß", "S", "i", "İ", "é", "e\u0301", "中", "😀"), maxLength: 12 });
const sayings = fc.array(fc.oneof(said, few), { minLength: 1, maxLength: 12 });
/** A piece of what was said, perhaps in another case; or anything. */
const queries = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ of: fc.nat(11), at: fc.nat(20), length: fc.integer({ min: 1, max: 8 }), how: fc.nat(2) }),
  },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...UNITS), maxLength: 5 }) },
);

/** One normal form: what is composed is one letter. */
function normal(text: string): string {
  return text.normalize("NFC").replaceAll("\0", "\ufffd");
}

function folded(text: string): string {
  return [...normal(text)].map((letter) => FOLDED[letter] ?? letter).join("");
}

/** What must be found, by the rule of the contract: from three characters on in any case. */
function says(text: string, query: string): boolean {
  if (query === "") return false;
  return [...normal(query)].length >= 3 ? folded(text).includes(folded(query)) : normal(text).includes(normal(query));
}

const directory = fastDir();
const path = join(directory, "threads.db");
let stores: Checkpointer[] = [];
beforeAll(async () => {
  stores = [new MemoryCheckpointer(), await SqliteCheckpointer.open(path)];
});
afterAll(async () => {
  for (const store of stores) await store.close();
  rmSync(directory, { recursive: true });
});

const tally = { searches: 0, hits: 0 };
const property = fc.asyncProperty(
  sayings,
  fc.array(queries, { minLength: 1, maxLength: 8 }),
  fc.boolean(),
  fc.nat(2),
  async (texts, asked, inCalls, compactions) => {
    const threadId = newId();
    const wanted = asked.map((query) =>
      typeof query === "string" ? query : pieceOf(texts[query.of % texts.length] ?? "", query),
    );
    for (const store of stores) {
      const messages = texts.map((text) => messageOf(text, inCalls));
      await store.append(threadId, messages);
      const { items } = await store.listMessages(threadId);
      // In one archive or in several, and perhaps not the last.
      for (let i = compactions; i >= 0; i--) {
        const upTo = items.at(-1 - i)?.position;
        if (upTo !== undefined) await store.archives?.compact(threadId, { upTo, summary: "s" });
      }
      for (const query of wanted) {
        const found = await store.archives?.search(query, { threadId, limit: 10_000 });
        const expected = items.filter((_, i) => says(textOf(texts[i] ?? "", inCalls), query)).toReversed();
        const { backend } = store.capabilities;
        const places = found?.hits.map(({ source_id }) => Number(source_id));
        expect([backend, query, places]).toEqual([backend, query, expected.map(({ position }) => position)]);
        tally.searches++;
        tally.hits += expected.length;
      }
    }
    for (const store of stores) await store.deleteThread(threadId);
  },
);
fuzz("a search finds what says it and nothing else", 80, property, {
  summary: () => `${tally.searches} searches, ${tally.hits} hits.`,
});

function messageOf(text: string, inCalls: boolean): Message {
  return inCalls ? assistantMessage([toolCall("c", "name", { key: text })]) : userMessage(text);
}

/** What a source says: a call's name and its arguments. */
function textOf(text: string, inCalls: boolean): string {
  return inCalls ? `name\nkey: ${text}` : text;
}

function pieceOf(text: string, { at, length, how }: { at: number; length: number; how: number }): string {
  const letters = [...text];
  const start = letters.length === 0 ? 0 : at % letters.length;
  const piece = letters.slice(start, start + length).join("");
  return how === 0 ? piece : how === 1 ? piece.toUpperCase() : piece.normalize("NFD");
}
