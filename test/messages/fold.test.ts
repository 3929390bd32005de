/** The one folding that index, scan and query share. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldCase, normalText, unfoldIndex } from "../../src/util/fold.ts";

const folded = (text: string) => foldCase(normalText(text));
const anyText = fc.string({ unit: "binary" });
/** What case, normal forms and joining make hard, often side by side. */
const hardText = fc
  .array(
    fc.constantFrom(
      ..."aAeEiIsSkKßẞıİﬁΣσςǰΐᾳ\u0345\u0301\u0307\u0308\u0327\u030cK\u212bÅ😀🇩\u200d가각\u1100\u1161𐐀𐐨 ͅŉև",
    ),
    {
      maxLength: 12,
    },
  )
  .map((characters) => characters.join(""));
const text = fc.oneof(anyText, hardText);

test.each([
  ["e\u0301", "\u00e9"],
  ["\u1112\u1161\u11ab", "\ud55c"],
  ["\u212b", "\u00c5"],
  ["a\0b", "a\ufffdb"],
  ["\ud83d", "\ufffd"],
  ["\udd11\ud83d", "\ufffd\ufffd"],
  ["\ud83d\udd11", "\ud83d\udd11"],
  // Compatibility forms are other characters.
  ["ﬁ", "ﬁ"],
  ["", ""],
])("S8 normalText of %j is %j", (given, expected) => {
  expect(normalText(given)).toBe(expected);
});

test.each([
  ["Hello", "hello"],
  ["ẞ ß SS", "ss ss ss"],
  ["ﬁne ﬄ", "fine ffl"],
  ["ΟΔΟΣ οδος οδοσ", "οδοσ οδοσ οδοσ"],
  ["Iıi", "iii"],
  ["İ", "i\u0307"],
  ["𐐀", "𐐨"],
  ["K", "k"],
  ["É", "é"],
  ["é", "é"],
  ["用户 123 😀", "用户 123 😀"],
])("S7 foldCase of %j is %j", (given, expected) => {
  expect(folded(given)).toBe(expected);
});

describe("S7 S11", () => {
  const check = (property: (one: string, other: string) => void) => {
    fc.assert(fc.property(text, text, property), { numRuns: 3000 });
  };

  test("folding the parts of a text is folding the whole", () => {
    check((one, other) => {
      const normal = normalText(one + other);
      const parts = [...normal].map(foldCase).join("");
      expect(foldCase(normal)).toBe(parts);
    });
  });

  test("what is folded stays as it is when it is folded again", () => {
    check((one) => {
      expect(foldCase(folded(one))).toBe(folded(one));
      expect(normalText(normalText(one))).toBe(normalText(one));
    });
  });

  test("upper and lower case fold to the same", () => {
    check((one) => {
      const normal = normalText(one);
      expect(foldCase(normal.toUpperCase())).toBe(foldCase(normal));
    });
  });

  test("a place in folded text is that of the character it came from", () => {
    check((one) => {
      const normal = normalText(one);
      let at = 0;
      let foldedAt = 0;
      for (const character of normal) {
        const length = foldCase(character).length;
        for (let i = 0; i < length; i++) expect(unfoldIndex(normal, foldedAt + i)).toBe(at);
        at += character.length;
        foldedAt += length;
      }
      expect(unfoldIndex(normal, foldedAt)).toBe(normal.length);
    });
  });

  test("also far into a long text", () => {
    fc.assert(
      fc.property(fc.array(hardText, { minLength: 1, maxLength: 5 }), fc.nat({ max: 30_000 }), (parts, index) => {
        const normal = normalText(`${parts.join("").repeat(2000)}a`);
        let folded = 0;
        let at = 0;
        for (const character of normal) {
          folded += foldCase(character).length;
          if (folded > index) break;
          at += character.length;
        }
        expect(unfoldIndex(normal, index)).toBe(at);
      }),
      { numRuns: 50 },
    );
  });
});
