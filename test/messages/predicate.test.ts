/** The fast check of a message's shape: it must say what valibot says, of every value. */
import fc from "fast-check";
import * as v from "valibot";
import { expect, test } from "vitest";
import { assistantMessage, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { predicateOf } from "../../src/messages/predicate.ts";
import { messageSchema } from "../../src/messages/schema.ts";

const isMessage = predicateOf(messageSchema);
const call = { type: "tool_call", id: "c", name: "n", arguments: { a: "b" } } as const;
const MESSAGES: unknown[] = [
  userMessage([
    { type: "text", text: "hi" },
    { type: "image", source: "data:", media_type: "image/png" },
  ]),
  assistantMessage([{ type: "thinking", thinking: "hm" }, { type: "text", text: "yes" }, call], {
    usage: { input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 },
    run_id: "r",
    response_id: "id",
    error_message: "none",
  }),
  toolResultMessage(call, "done", { details: { any: ["thing", null] }, is_error: true, timestamp: null }),
  { role: "user", content: [{ type: "a new kind", of: "block" }], and: "a new field" },
  { role: "assistant", content: [{ type: "text", text: "" }], usage: null },
  { role: "user", content: [] },
];
const VALUES = [
  null,
  true,
  0,
  Number.NaN,
  "x",
  "",
  "text",
  "user",
  "tool_result",
  [],
  [null],
  {},
  { type: "text" },
  { type: "y" },
];

/** `value` with the part at each path removed, or replaced by each of VALUES. */
function* variants(value: unknown): Generator<unknown> {
  yield* VALUES;
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value)) {
    const { [key]: part, ...rest } = value as Record<string, unknown>;
    const rebuild = (changed: unknown) =>
      Array.isArray(value)
        ? value.map((item, i) => (String(i) === key ? changed : item))
        : { ...value, [key]: changed };
    if (Array.isArray(value)) yield value.filter((_, i) => String(i) !== key);
    else yield rest;
    for (const variant of variants(part)) yield rebuild(variant);
  }
}

test("it says what valibot says of messages with any one part gone or changed", () => {
  const seen = { yes: 0, no: 0 };
  for (const message of MESSAGES) {
    expect(isMessage(message)).toBe(true);
    for (const variant of variants(message)) {
      const expected = v.is(messageSchema, variant);
      if (isMessage(variant) !== expected) expect.fail(`valibot says ${expected} of ${JSON.stringify(variant)}`);
      seen[expected ? "yes" : "no"]++;
    }
  }
  expect(seen.yes).toBeGreaterThan(100);
  expect(seen.no).toBeGreaterThan(500);
});

test("it says what valibot says of any values in the place of the fields", () => {
  const field = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(...VALUES));
  const block = fc.record(
    {
      type: fc.constantFrom("text", "image", "thinking", "tool_call", "new", 1),
      text: field,
      id: field,
      name: field,
      arguments: field,
    },
    { requiredKeys: [] },
  );
  const message = fc.record(
    {
      role: fc.constantFrom("user", "assistant", "tool_result", "x"),
      content: fc.oneof(field, fc.array(block)),
      usage: field,
      metadata: field,
      is_error: field,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(message, (value) => {
      expect(isMessage(value)).toBe(v.is(messageSchema, value));
    }),
    { numRuns: 2000 },
  );
});

test("a field that is there and undefined is told from one that is absent", () => {
  const schema = v.looseObject({ needed: v.unknown(), free: v.optional(v.string()) });
  for (const value of [
    {},
    { needed: undefined },
    { needed: 1, free: undefined },
    { needed: 1, free: null },
    [],
    null,
  ]) {
    expect(predicateOf(schema)(value)).toBe(v.is(schema, value));
  }
  // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
  expect(predicateOf(v.array(v.string()))(["a", , "b"])).toBe(false);
});

test("a kind of schema that it does not know is refused when it is made", () => {
  expect(() => predicateOf(v.looseObject({ date: v.optional(v.date()) }))).toThrow(/schema of type date/);
  expect(() => predicateOf(v.pipe(v.string(), v.transform(Number)))).toThrow(/schema of type transform/);
});
