// The tour checks itself: what comes must be what was expected, to the letter.
import { inspect, isDeepStrictEqual } from "node:util";

/** Something came out otherwise than the tour promises. */
export class Deviation extends Error {
  constructor(what, expected, actual) {
    super(`Not as it should be: ${what}\n  expected: ${show(expected)}\n  came:     ${show(actual)}`);
  }
}

/** @throws Deviation unless the two are deeply equal */
export function check(what, actual, expected) {
  if (!isDeepStrictEqual(actual, expected)) throw new Deviation(what, expected, actual);
  console.log(`   ✓ ${what}`);
}

function show(value) {
  return typeof value === "string" ? value : inspect(value, { depth: null, maxStringLength: null });
}
