/** Texts, names and JSON that are likely to go wrong somewhere. */
import * as fc from "fast-check";
import { type JsonObject, type JsonValue, setOwn } from "../../src/messages/json.ts";

/** Pieces of text that storage, folding, terminals and queries treat in ways of their own. */
const PIECES = [
  "a",
  "A",
  "b",
  " ",
  "\t",
  "\n",
  "\r\n",
  "\0",
  "'",
  '"',
  "\\",
  "%",
  "_",
  "*",
  "ß",
  "ẞ",
  "İ",
  "ı",
  "ﬁ",
  "Σ",
  "ς",
  "é",
  "e\u0301",
  "\u0301",
  "中",
  "文字",
  "한",
  "\u1112\u1161",
  "😀",
  "👩‍👩‍👧",
  "\u202e",
  "\u200b",
  "\ufeff",
  "\ufffd",
  "\uffff",
  "\u2028",
  "\x1b[31m",
  "\x7f",
  "NULL",
  "--",
  "{}",
  "\\u0000",
  "\\ud800",
];

/** Well-formed text. */
export const text = fc.string({
  unit: fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: "binary", minLength: 1, maxLength: 2 })),
  maxLength: 6,
});

/** Text with halves of surrogate pairs in it. */
export const illFormed = fc
  .tuple(text, fc.constantFrom("\ud83d", "\ude00", "\udc00\ud800"), text)
  .map((parts) => parts.join(""))
  .filter((value) => !value.isWellFormed());

const KEYS = [
  "a",
  "b",
  "__proto__",
  "constructor",
  "toString",
  "10",
  "2",
  "fork",
  "é",
  "e\u0301",
  "k\0",
  "",
  "hasOwnProperty",
  "length",
];
const key = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...KEYS) }, { weight: 1, arbitrary: text });

const NUMBERS = [
  0,
  1,
  -1,
  0.1,
  1e308,
  -1e308,
  5e-324,
  2 ** 53,
  -(2 ** 53),
  2 ** 63,
  1e21,
  1e-7,
  4.35,
  400,
  1_700_000_000.25,
];
/** -0 is stored as 0, everywhere. */
const number = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.integer(),
  fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => (value === 0 ? 0 : value)),
);

/** An object made of entries, `__proto__` among them. Of a key given twice the last counts. */
export function objectOf<T>(entries: readonly (readonly [string, T])[]): { [key: string]: T } {
  const object: { [key: string]: T } = {};
  for (const [name, value] of entries) setOwn(object, name, value);
  return object;
}

const { json, object } = fc.letrec<{ json: JsonValue; object: JsonObject }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, false, true, "", 0),
    text,
    number,
    fc.array(tie("json"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.array(fc.tuple(key, tie("json")), { maxLength: 4 }).map(objectOf),
}));

export { json, object };

/** Ids that some collation, pattern, file system or query would take for one another. */
export const IDS = [
  "t",
  "T",
  "t ",
  " t",
  "tt",
  "é",
  "e\u0301",
  "ß",
  "ss",
  "😀",
  "\uffff",
  "\ue000",
  "%",
  "_",
  "../t",
  "t/",
  "NUL",
  "a'b",
  'a"b',
  "a\\b",
  "a\nb",
  "\u202et",
  "__proto__",
  "0",
  "00",
  "t".repeat(64),
  "😀".repeat(64),
] as const;
/** Ids of up to 255 characters, which a run begun here may not have. */
export const LONG_IDS = ["t".repeat(255), "😀".repeat(255), "t".repeat(65)] as const;
