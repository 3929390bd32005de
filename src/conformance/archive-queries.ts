/** Queries: literal text, in whichever script, case and normal form. */
import assert from "node:assert/strict";
import { type Bench, conformanceCase } from "./case.ts";
import { archivesOf, archiveTexts, compact, found, say } from "./tools.ts";

const searchCase = (name: string, body: (bench: Bench) => Promise<void>) =>
  conformanceCase(name, body, ["archives", "search"]);

/** A case that archives texts and looks for each query; it must find these texts, given oldest first, and no others. */
const queryCase = (name: string, said: readonly string[], queries: readonly [query: string, ...found: string[]][]) =>
  searchCase(name, async (bench) => {
    await archiveTexts(bench.store, "thread", said);
    const later = await bench.again();
    for (const [query, ...expected] of queries) {
      assert.deepEqual(await found(later, query), expected.toReversed(), `search for ${JSON.stringify(query)}`);
    }
  });

const AWKWARD = [
  ..."\" ' * ( ) ^ : - + { } [ ] \\ % _ ? . , ; & | ~ # $ @ ! = < >".split(" "),
  '""',
  "''",
  "multi-agent",
  "don't",
  "a/b",
  "^x",
  "foo:bar",
  "NEAR(a b)",
  "quick AND",
  "-foo",
  "20.04",
  "C++",
  "{x}",
  "a OR b",
  "NOT a",
  "a*",
  '"a b"',
  "text:a",
  "\\d+",
  "[a-z]",
  "%a%",
  "__",
  "x') OR 1=1 --",
  "$1",
  "a\nb",
  "a\tb",
  "  ",
];

export const archiveQueryCases = [
  queryCase(
    "S1 S9 one and two characters are found, in any script, and match in case",
    [
      "all ok here",
      "the db is up",
      "用户已登录",
      "下雨了",
      "hi 🎉",
      "two 😀😃",
      "👨‍👩‍👧 family",
      "flag 🇩🇪",
      "wave 👋🏽",
      "𐐀𐐁 Deseret",
    ],
    [
      ["ok", "all ok here"],
      ["OK"],
      ["db", "the db is up"],
      ["Db"],
      ["用户", "用户已登录"],
      ["雨", "下雨了"],
      ["🎉", "hi 🎉"],
      ["😀😃", "two 😀😃"],
      ["😃", "two 😀😃"],
      ["😃😀"],
      ["👨‍👩‍👧", "👨‍👩‍👧 family"],
      ["🇩🇪", "flag 🇩🇪"],
      ["👋🏽", "wave 👋🏽"],
      // Each is two units of UTF-16, and two of them are two characters.
      ["𐐀𐐁", "𐐀𐐁 Deseret"],
      ["𐐨𐐩"],
      ["𐐨𐐩 d", "𐐀𐐁 Deseret"],
      ["zz"],
    ],
  ),

  queryCase(
    "From three characters on case is ignored",
    ["Hello World", "hello again", "ПРИВЕТ мир", "😀😃😄 Smile"],
    [
      ["hello", "Hello World", "hello again"],
      ["HELLO", "Hello World", "hello again"],
      ["lo wo", "Hello World"],
      ["Hello World", "Hello World"],
      ["Привет", "ПРИВЕТ мир"],
      ["😃😄 s", "😀😃😄 Smile"],
      ["hel", "Hello World", "hello again"],
      ["he", "hello again"],
      ["He", "Hello World"],
      ["hello  world"],
      ["helloworld"],
    ],
  ),

  queryCase(
    "S3 S11 a query is one text: its words stand together, and its length is the whole's",
    ["广西 OR 桂林", "广西", "桂林", "ab cd ef", "ef cd ab", "phase-2 done", "Phase 2 done", " at both ends "],
    [
      ["广西 OR 桂林", "广西 OR 桂林"],
      ["广西", "广西 OR 桂林", "广西"],
      ["ab cd ef", "ab cd ef"],
      ["ab ef"],
      ["cd ", "ab cd ef", "ef cd ab"],
      [" at", " at both ends "],
      ["ENDS ", " at both ends "],
      ["s ", " at both ends "],
      ["phase-2", "phase-2 done"],
      ["PHASE 2", "Phase 2 done"],
      ["e-2", "phase-2 done"],
      ["e 2", "Phase 2 done"],
      ["-2", "phase-2 done"],
      [" 2", "Phase 2 done"],
    ],
  ),

  searchCase("S4 S5 L30 no query is a language: every text is found as it is", async ({ store }) => {
    const said = AWKWARD.map((query, i) => `${i}<before>${query}<after>`);
    await archiveTexts(store, "thread", said);
    for (const query of [...AWKWARD, "50%", "a_b", "NEAR", "AND"]) {
      // All of it is in one case, or too short to be found in another.
      const folded = query.length < 3 ? query : query.toLowerCase();
      const expected = said.filter((one) => (query.length < 3 ? one : one.toLowerCase()).includes(folded));
      assert.deepEqual(await found(store, query, { limit: 1000 }), expected.toReversed(), JSON.stringify(query));
    }
    const long = `${"long ".repeat(20_000)}end`;
    await archiveTexts(store, "thread", [`A ${long}`]);
    assert.deepEqual(await found(store, long), [`A ${long}`]);
    assert.deepEqual(await found(store, `${long}!`), []);
    assert.deepEqual(await archivesOf(store).search(""), { hits: [], has_more: false });
  }),

  queryCase(
    "S7 special cases of case are folded as in full: ß, ligatures, the final sigma, the dotted and the dotless i",
    ["STRASSE", "straße", "STRAẞE", "fine", "ﬁne", "ΟΔΟΣ", "οδος", "ΣΟΦΟΣΑ", "İstanbul", "ılık"],
    [
      ["strasse", "STRASSE", "straße", "STRAẞE"],
      ["Straße", "STRASSE", "straße", "STRAẞE"],
      ["STRAẞE", "STRASSE", "straße", "STRAẞE"],
      ["FINE", "fine", "ﬁne"],
      ["ﬁNE", "fine", "ﬁne"],
      ["οδοσ", "ΟΔΟΣ", "οδος"],
      ["οδος", "ΟΔΟΣ", "οδος"],
      ["οφος", "ΣΟΦΟΣΑ"],
      ["ΟΦΟΣ", "ΣΟΦΟΣΑ"],
      ["İSTANBUL", "İstanbul"],
      ["i̇stanbul", "İstanbul"],
      ["STANBUL", "İstanbul"],
      ["ilik", "ılık"],
      ["ILIK", "ılık"],
      // Too short to be folded.
      ["ß", "straße"],
      ["ẞ", "STRAẞE"],
    ],
  ),

  queryCase(
    "Composed and decomposed text is the same, and accents count",
    ["caf\u00e9 one", "cafe\u0301 two", "cafe three", "\ud55c\uad6d four", "\u1112\u1161\u11ab\u1100\u116e\u11a8 five"],
    [
      ["caf\u00e9", "caf\u00e9 one", "cafe\u0301 two"],
      ["cafe\u0301", "caf\u00e9 one", "cafe\u0301 two"],
      ["CAFE\u0301", "caf\u00e9 one", "cafe\u0301 two"],
      ["e\u0301", "caf\u00e9 one", "cafe\u0301 two"],
      ["cafe", "cafe three"],
      ["\u1112\u1161\u11ab", "\ud55c\uad6d four", "\u1112\u1161\u11ab\u1100\u116e\u11a8 five"],
    ],
  ),

  searchCase("S8 E2 E4 U+0000 and half pairs are text like other text, in sources and in queries", async (bench) => {
    await bench.store.append("thread", [
      say("nul\0after secretword"),
      say("cut \ud83d"),
      say("\udd11\ud83d pair \ud83d\udd11"),
    ]);
    await compact(bench.store, "thread", 0);
    const later = await bench.again();
    const [nul, cut, pair] = ["nul\0after secretword", "cut \ufffd", "\ufffd\ufffd pair \ud83d\udd11"];
    const expected: [query: string, ...found: unknown[]][] = [
      ["secretword", nul],
      ["l\0a", nul],
      ["\0", pair, cut, nul],
      ["nul\0AFTER", nul],
      ["abc\0def"],
      ["cut \ud83d", cut],
      ["\ud83d\udd11", pair],
      ["r \ud83d\udd11", pair],
      ["x\udd11"],
    ];
    for (const [query, ...texts] of expected) assert.deepEqual(await found(later, query), texts, JSON.stringify(query));
  }),
];
