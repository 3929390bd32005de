/** Ids of questions against CubeLoop's own: values that it gave once, and a live Python where there is one. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { askQuestionIds, asksTheSame, deriveQuestionId, pythonJson } from "../../src/agent/question-id.ts";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import { PythonPeer, python, pythonLabel } from "../support/python.ts";

interface Given {
  ask: { calls: JsonObject[]; ids: string[] };
  derive: { kind: string; payload: JsonValue; id: string }[];
}

const given = JSON.parse(readFileSync(new URL("./question-ids.json", import.meta.url), "utf8")) as Given;
const callsWith = (calls: readonly JsonObject[]) => calls.map((args) => ({ arguments: args }));

test("the ids of ask_user calls are those that CubeLoop gave", () => {
  expect(askQuestionIds(callsWith(given.ask.calls))).toEqual(given.ask.ids);
});

test("the hashes of payloads are those that CubeLoop gave", () => {
  expect(given.derive.map(({ kind, payload }) => deriveQuestionId(kind, payload))).toEqual(
    given.derive.map(({ id }) => id),
  );
});

test("fields in another order, defaults left out and unknown fields make no difference", () => {
  const short = { questions: [{ prompt: "p", key: "k", options: [{ value: "v", label: "l" }] }] };
  const long = {
    questions: [
      {
        key: "k",
        required: true,
        multi_select: false,
        options: [{ allow_input: false, description: null, label: "l", value: "v", icon: "x" }],
        prompt: "p",
        hint: "none",
      },
    ],
  };
  const [a, b] = askQuestionIds(callsWith([short, long]));
  expect(a?.endsWith(".0")).toBe(true);
  expect(b).toBe(a?.replace(/0$/, "1"));
  expect(asksTheSame(a ?? "", b ?? "")).toBe(true);
});

test("a call without valid questions has no id and takes no number", () => {
  const valid = { questions: [{ key: "k", prompt: "p" }] };
  const ids = askQuestionIds(callsWith([{}, { questions: "k" }, valid, { questions: [{ key: 1 }] }, valid]));
  expect(ids.map((id) => id?.slice(-2))).toEqual([undefined, undefined, ".0", undefined, ".1"]);
});

test("other questions are told apart", () => {
  const [a, b] = askQuestionIds(
    callsWith([{ questions: [{ key: "k", prompt: "p" }] }, { questions: [{ key: "k", prompt: "P" }] }]),
  );
  expect(asksTheSame(a ?? "", b ?? "")).toBe(false);
});

test("pythonJson writes JSON with the same meaning, in ASCII", () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary", noUnicodeString: false }), (text) => {
      const value = JSON.parse(text) as JsonValue;
      const written = pythonJson(value);
      expect(written).toMatch(/^[ -~]*$/);
      expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

describe.skipIf(!python.path)(`with Python (${pythonLabel})`, () => {
  test("a live CubeLoop gives the committed ids", async () => {
    await using peer = new PythonPeer(":memory:");
    expect(await peer.call("ask_ids", given.ask.calls)).toEqual(given.ask.ids);
    for (const { kind, payload, id } of given.derive) {
      expect(await peer.call("question_id", kind, payload)).toBe(id);
    }
  });

  test("any questions get the same ids from both", async () => {
    await using peer = new PythonPeer(":memory:");
    const text = fc.string({ unit: "binary", maxLength: 12 });
    const option = fc.record(
      { label: text, value: text, description: fc.option(text), allow_input: fc.boolean() },
      { requiredKeys: ["label", "value"] },
    );
    const question = fc.record(
      {
        key: text,
        prompt: text,
        options: fc.option(fc.array(option, { maxLength: 3 })),
        multi_select: fc.boolean(),
        required: fc.boolean(),
      },
      { requiredKeys: ["key", "prompt"] },
    );
    const call = fc.record({ questions: fc.array(question, { minLength: 1, maxLength: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 4 }), async (calls) => {
        const args = JSON.parse(JSON.stringify(calls)) as JsonObject[];
        expect(askQuestionIds(callsWith(args))).toEqual(await peer.call("ask_ids", args));
      }),
      { numRuns: 200 },
    );
  });

  test("any JSON gets the same hash from both", async () => {
    await using peer = new PythonPeer(":memory:");
    await fc.assert(
      fc.asyncProperty(fc.json({ stringUnit: "binary" }), async (text) => {
        const payload = JSON.parse(text) as JsonValue;
        expect(deriveQuestionId("confirm", payload)).toBe(await peer.call("question_id", "confirm", payload));
      }),
      { numRuns: 500 },
    );
  });

  test("numbers of every size are written as Python writes them", async () => {
    await using peer = new PythonPeer(":memory:");
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 50 }),
        async (doubles) => {
          const payload = [
            ...doubles,
            ...doubles.map(Math.fround),
            ...doubles.map((n, i) => n * 10 ** -(i % 30)),
          ].filter(Number.isFinite);
          expect(deriveQuestionId("confirm", payload)).toBe(await peer.call("question_id", "confirm", payload));
        },
      ),
      { numRuns: 100 },
    );
  });
});
