/** Where a context is cut: what holds for any log, and the cases that people meet. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseCut, isAnswer, requestSetAside } from "../../src/agent/compaction-cut.ts";
import {
  assistantMessage,
  text,
  thinking,
  toolCall,
  toolCallsOf,
  toolResultMessage,
  userMessage,
} from "../../src/messages/construct.ts";
import { pairToolCalls } from "../../src/messages/pairing.ts";
import type { AssistantBlock, Message } from "../../src/messages/schema.ts";
import { isSigned } from "../../src/messages/signatures.ts";
import { isCutShort } from "../../src/messages/state.ts";
import { modelView } from "../../src/messages/view.ts";

const one = () => 1;
const user = (said: string, run_id: string | null = "r") => userMessage(said, { run_id });
const says = (said: string, run_id: string | null = "r") => assistantMessage(said, { run_id });
const calls = (id: string, { signed = false, run_id = "r" } = {}) =>
  assistantMessage([...(signed ? [thinking("hm")] : []), toolCall(id, "t")], { run_id, stop_reason: "tool_use" });
const result = (id: string, run_id = "r") => toolResultMessage({ id, name: "t" }, "did", { run_id });
const failed = (run_id = "r") => assistantMessage([], { run_id, stop_reason: "error" });
const step = (id: string, about?: { signed?: boolean; run_id?: string }) => [
  calls(id, about),
  result(id, about?.run_id ?? "r"),
];
const exchange = (run_id: string) => [user("ask", run_id), says("answer", run_id)];

describe("finished turns", () => {
  const log = [...exchange("r1"), ...exchange("r2"), ...exchange("r3")];

  test.each([
    [0, 6],
    [1, 6],
    [2, 4],
    [3, 4],
    [4, 2],
  ])("of a budget of %i messages: the cut is at %i", (keep, cut) => {
    expect(chooseCut(log, keep, one)).toBe(cut);
  });

  test("nothing is cut when all of it fits the budget", () => {
    expect(chooseCut(log, 5, one)).toBe(2);
    expect(chooseCut(log, 6, one)).toBe(0);
    expect(chooseCut(exchange("r1"), 1, one)).toBe(2);
  });

  test("nothing is cut where nothing was answered", () => {
    expect(chooseCut([], 0, one)).toBe(0);
    expect(chooseCut([user("a")], 0, one)).toBe(0);
    expect(chooseCut([user("a"), user("b")], 0, one)).toBe(0);
  });

  test("M19 a question without an answer stays, however long it is, with all messages of it", () => {
    expect(chooseCut([...log, user("a", "r4"), user("b", "r4")], 0, one)).toBe(6);
    expect(chooseCut([...log, user("a", "r4"), failed("r4")], 0, one)).toBe(6);
  });

  test("M3 a result that the log has far from its call is not parted from it", () => {
    const messages = [user("a"), calls("c"), user("b", "r2"), says("x", "r2"), result("c"), ...exchange("r3")];
    expect(chooseCut(messages, 4, one)).toBe(5);
  });

  test("M1 a call that an older turn left open for ever holds nothing up", () => {
    expect(chooseCut([user("a"), calls("c"), ...exchange("r2"), ...exchange("r3")], 2, one)).toBe(4);
  });
});

describe("a run under way", () => {
  test("keeps the newest steps that fit, and what the model has not read in any case", () => {
    const messages = [...exchange("r1"), user("go"), ...step("1"), ...step("2"), ...step("3")];
    expect(chooseCut(messages, 0, one)).toBe(7);
    expect(chooseCut(messages, 4, one)).toBe(5);
    expect(chooseCut(messages, 6, one)).toBe(3);
    expect(chooseCut(messages, 7, one)).toBe(2);
  });

  test("what a user adds meanwhile goes on with the results before it", () => {
    const messages = [...exchange("r1"), user("go"), ...step("1"), user("and this")];
    expect(chooseCut(messages, 0, one)).toBe(3);
  });

  test("results of a run that was left are set aside when another one asks", () => {
    expect(chooseCut([user("go"), ...step("1"), user("other", "r2")], 0, one)).toBe(3);
  });

  test("L24 keeps the calls that wait, with all that was done in their turn", () => {
    const waiting = assistantMessage([toolCall("2", "t"), toolCall("3", "t")], { run_id: "r" });
    expect(chooseCut([user("go"), ...step("1"), waiting, result("2")], 2, one)).toBe(3);
    expect(chooseCut([user("go"), waiting, result("2")], 0, one)).toBe(0);
  });

  test("M11 signed calls that the model has not gone on from are set aside whole", () => {
    const messages = [...exchange("r1"), user("go"), ...step("1", { signed: true }), ...step("2")];
    expect(chooseCut(messages, 6, one)).toBe(7);
    expect(chooseCut([...messages, user("and this")], 7, one)).toBe(7);
    expect(chooseCut([...messages, user("new", "r2")], 7, one)).toBe(7);
    expect(chooseCut([...messages, says("done"), user("new", "r2")], 8, one)).toBe(2);
  });

  test("M11 while a signed call waits, nothing is set aside", () => {
    expect(chooseCut([...exchange("r1"), user("go"), ...step("1", { signed: true }), calls("2")], 0, one)).toBe(0);
  });

  test("a failed attempt stays: a retried request is recognised by it", () => {
    expect(chooseCut([...exchange("r1"), user("go"), ...step("1"), failed()], 0, one)).toBe(3);
    expect(chooseCut([...exchange("r1"), user("go"), ...step("1", { signed: true }), failed()], 0, one)).toBe(5);
  });

  test("M11 a turn that was broken off does not make the signed calls before it finished", () => {
    const broken = [...exchange("r1"), user("go"), ...step("1", { signed: true }), failed()];
    expect(chooseCut([...broken, user("new", "r2")], 5, one)).toBe(6);
    expect(chooseCut([...broken, user("new", "r2"), says("done", "r2")], 7, one)).toBe(2);
  });
});

describe("what was asked", () => {
  const words = (messages: readonly Message[], cut: number) =>
    requestSetAside(messages, cut).map(({ content }) =>
      content.map((block) => ("text" in block ? block.text : "")).join(),
    );

  test("is the user's words of the run under way that are set aside", () => {
    const messages = [...exchange("r1"), user("go"), ...step("1"), user("and this"), ...step("2"), ...step("3")];
    expect(words(messages, 8)).toEqual(["go", "and this"]);
    expect(words(messages, 5)).toEqual(["go"]);
    expect(words(messages, 2)).toEqual([]);
  });

  test("is nothing of a run that was answered, or left", () => {
    expect(words(exchange("r1"), 2)).toEqual([]);
    expect(words([user("go"), ...step("1"), user("other", "r2")], 3)).toEqual([]);
  });
});

describe("any log", () => {
  const id = fc.constantFrom("a", "b", "c");
  const run = fc.constantFrom(null, "r1", "r2");
  const block: fc.Arbitrary<AssistantBlock> = fc.oneof(
    fc.constant(text("said")),
    fc.constant(thinking("hm")),
    id.map((name) => toolCall(name, "t")),
  );
  const message: fc.Arbitrary<Message> = fc.oneof(
    run.map((run_id) => user("u", run_id)),
    fc
      .tuple(fc.array(block, { maxLength: 3 }), fc.constantFrom("stop", "aborted", "error"), run)
      .map(([content, stop_reason, run_id]) => assistantMessage(content, { stop_reason, run_id })),
    fc.tuple(id, run).map(([call, run_id]) => toolResultMessage({ id: call, name: "t" }, "did", { run_id })),
  );
  const anything = fc.tuple(fc.array(message, { maxLength: 16 }), fc.nat(12));
  const holds = (property: (messages: Message[], keep: number, cut: number) => void) =>
    fc.assert(
      fc.property(anything, ([messages, keep]) => property(messages, keep, chooseCut(messages, keep, one))),
      { numRuns: 3000 },
    );

  test("is cut beside no call that has its result on the other side, and before no result", () => {
    holds((messages, _keep, cut) => {
      for (const { index, result } of pairToolCalls(messages).calls) {
        if (result !== undefined) expect(index < cut).toBe(result < cut);
      }
      if (cut > 0) expect(messages[cut]?.role).not.toBe("tool_result");
    });
  });

  test("keeps the open calls of its last turn, and questions without an answer", () => {
    holds((messages, _keep, cut) => {
      let end = messages.length;
      while (end > 0 && isCutShort(messages[end - 1] as Message)) end--;
      while (messages[end - 1]?.role === "user") end--;
      expect(cut).toBeLessThanOrEqual(end);
      const turn = messages.findLastIndex(
        (one, i) => i < end && one.role === "assistant" && (!isCutShort(one) || toolCallsOf(one).length > 0),
      );
      const open = pairToolCalls(messages).calls.some(({ index, result }) => index === turn && result === undefined);
      if (open) expect(cut).toBeLessThanOrEqual(turn);
    });
  });

  test("sets an exchange aside, or nothing", () => {
    holds((messages, _keep, cut) => {
      if (cut > 0) expect(messages.slice(0, cut).some(({ role }) => role === "assistant")).toBe(true);
    });
  });

  test("never leaves tool calls at its end without the reasoning that they were signed with", () => {
    holds((messages, _keep, cut) => {
      if (cut === 0) return;
      const kept = messages.slice(cut).filter((one) => !isCutShort(one) || toolCallsOf(one).length > 0);
      // Failed attempts at the end are not sent.
      while (kept.length > 0 && isCutShort(kept.at(-1) as Message)) kept.pop();
      const last = kept.findLast(({ role }) => role === "assistant");
      if (last && toolCallsOf(last).length > 0) {
        const turn = kept.lastIndexOf(last);
        const asked = kept.findLastIndex(({ role }, i) => i < turn && role === "user");
        expect(kept.slice(asked + 1, turn + 1).some(isSigned)).toBe(false);
      }
    });
  });

  test("views the two halves as it views the whole, but for names that were used before the cut", () => {
    holds((messages, _keep, cut) => {
      const sizes = [messages.slice(0, cut), messages.slice(cut)].map((half) => modelView(half).messages.length);
      expect(sizes[0] === undefined ? 0 : sizes[0] + (sizes[1] ?? 0)).toBe(modelView(messages).messages.length);
    });
  });

  test("keeps no more than the budget allows where it could keep less", () => {
    holds((messages, keep, cut) => {
      if (cut === 0 || messages.length - cut <= keep) return;
      // Then it is what has to stay, so a smaller budget changes nothing.
      expect(chooseCut(messages, 0, one)).toBe(cut);
    });
  });
});

test("an answer is a whole turn of the model without calls", () => {
  expect([says("x"), calls("c"), failed(), user("u")].map(isAnswer)).toEqual([true, false, false, false]);
});
