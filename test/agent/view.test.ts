/** The model view as a pure function: what holds of it for any log. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  image,
  text,
  thinking,
  toolCall,
  toolCallsOf,
  toolResultMessage,
  userMessage,
} from "../../src/messages/construct.ts";
import { danglingCalls, pairToolCalls } from "../../src/messages/pairing.ts";
import type { AssistantBlock, Message, UserBlock } from "../../src/messages/schema.ts";
import { modelView, UNKNOWN_OUTCOME } from "../../src/messages/view.ts";
import { lines } from "./support.ts";

// Few ids, so that they are reused, collide with the names that the view makes, and results find calls or don't.
const id = fc.constantFrom("a", "b", "a_2", "a_2_2", "", "call_0");
const words = fc.constantFrom("", " \n", "\u00a0", "hello", "x\u0000", "\u200b");
const userBlock: fc.Arbitrary<UserBlock> = fc.oneof(
  words.map(text),
  fc.constant(null).map(() => image("data:,", "image/png")),
  fc.constant(null).map(() => ({ type: "video_v9", foo: 1 }) as never),
);
const assistantBlock: fc.Arbitrary<AssistantBlock> = fc.oneof(
  userBlock,
  words.map((said) => ({ ...thinking(said), provider_options: { signature: "s" } })),
  fc.tuple(id, fc.nat(9)).map(([name, n]) => toolCall(name, "tool", { n })),
);
const runId = fc.constantFrom(null, "r1", "r2");
const stop = fc.constantFrom("stop", "tool_use", "aborted", "error");
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.tuple(fc.array(userBlock, { maxLength: 3 }), runId).map(([content, run_id]) => userMessage(content, { run_id })),
  fc
    .tuple(fc.array(assistantBlock, { maxLength: 5 }), stop, runId)
    .map(([content, stop_reason, run_id]) => assistantMessage(content, { stop_reason, run_id })),
  fc
    .tuple(id, fc.array(userBlock, { maxLength: 2 }), runId)
    .map(([call, content, run_id]) => toolResultMessage({ id: call, name: "tool" }, content, { run_id })),
);
const log = fc.array(message, { maxLength: 14 });
const holds = (property: (messages: Message[]) => void) => fc.assert(fc.property(log, property), { numRuns: 1000 });

describe("the view of any log", () => {
  test("has each call directly followed by exactly its results, with unique ids and no orphan", () => {
    holds((messages) => {
      const { messages: view } = modelView(messages);
      const ids: string[] = [];
      for (let i = 0; i < view.length; ) {
        const calls = toolCallsOf(view[i] as Message);
        expect(view[i]?.role).not.toBe("tool_result");
        const results = view.slice(i + 1, i + 1 + calls.length);
        expect(results.map((one) => (one.role === "tool_result" ? one.tool_call_id : one.role))).toEqual(
          calls.map((call) => call.id),
        );
        ids.push(...calls.map((call) => call.id));
        i += 1 + calls.length;
      }
      expect(new Set(ids).size).toBe(ids.length);
    });
  });

  test("has no blank text, and no message that is empty but a result", () => {
    holds((messages) => {
      for (const { role, content } of modelView(messages).messages) {
        for (const block of content) if (block.type === "text") expect(block.text.trim()).not.toBe("");
        if (role !== "tool_result") expect(content).not.toEqual([]);
      }
    });
  });

  test("leaves the log as it is", () => {
    holds((messages) => {
      const before = structuredClone(messages);
      modelView(messages);
      expect(messages).toEqual(before);
    });
  });

  test("is the view of itself, with nothing found", () => {
    holds((messages) => {
      const { messages: view } = modelView(messages);
      const again = modelView(view);
      expect(again.messages).toEqual(view);
      expect(again.findings).toEqual([]);
    });
  });

  test("keeps every call, in order, with its arguments, and every thing said", () => {
    holds((messages) => {
      const { messages: view } = modelView(messages);
      const args = (list: readonly Message[]) => list.flatMap((one) => toolCallsOf(one).map((call) => call.arguments));
      expect(args(view)).toEqual(args(messages));
      const said = (list: readonly Message[]) =>
        list.flatMap((one) =>
          one.role === "tool_result"
            ? []
            : (one.content as { type: string; text?: string }[]).filter(
                ({ type, text = "" }) =>
                  type !== "tool_call" && type !== "thinking" && (type !== "text" || text.trim() !== ""),
              ),
        );
      expect(said(view)).toEqual(said(messages));
    });
  });

  test("finds something exactly where it differs from the log", () => {
    holds((messages) => {
      const { messages: view, findings } = modelView(messages);
      if (findings.length === 0) expect(view).toEqual(messages);
      else expect(view).not.toEqual(messages);
      for (const { index } of findings) expect(messages[index]).toBeDefined();
    });
  });

  test("of a log whose calls are answered begins as it did when the log was shorter", () => {
    holds((messages) => {
      for (let end = 0; end < messages.length; end++) {
        const start = messages.slice(0, end);
        if (danglingCalls(start).length > 0) continue;
        const view = modelView(start).messages;
        expect(modelView(messages).messages.slice(0, view.length)).toEqual(view);
      }
    });
  });
});

describe("the view", () => {
  test("M5 pairs a reused id with the nearest call, and a suffix keeps it apart", () => {
    const turn = (n: number) => [
      assistantMessage([toolCall("call_0", "t", { n })]),
      toolResultMessage({ id: "call_0", name: "t" }, `r${n}`),
    ];
    const { messages, findings } = modelView([userMessage("go"), ...turn(0), ...turn(1), ...turn(2)]);
    expect(lines(messages)).toEqual([
      "user go",
      "assistant t(call_0)",
      "tool_result call_0 r0",
      "assistant t(call_0_2)",
      "tool_result call_0_2 r1",
      "assistant t(call_0_3)",
      "tool_result call_0_3 r2",
    ]);
    expect(findings.map(({ kind, index }) => [kind, index])).toEqual([
      ["reused_call_id", 3],
      ["reused_call_id", 5],
    ]);
  });

  test("M1 answers a dangling call in words that say so, at the time and in the run of its turn", () => {
    const turn = assistantMessage([toolCall("a", "t")], { run_id: "r", timestamp: 5 });
    const { messages, findings } = modelView([turn, userMessage("hello?")]);
    expect(messages[1]).toEqual(
      toolResultMessage({ id: "a", name: "t" }, UNKNOWN_OUTCOME, { is_error: true, run_id: "r", timestamp: 5 }),
    );
    expect(findings).toEqual([{ kind: "dangling_call", index: 0, toolCallId: "a" }]);
  });

  test("M2 leaves out orphans and second results, and names them", () => {
    const result = (said: string) => toolResultMessage({ id: "a", name: "t" }, said);
    const { messages, findings } = modelView([
      result("orphan"),
      assistantMessage([toolCall("a", "t")]),
      result("first"),
      result("second"),
    ]);
    expect(lines(messages)).toEqual(["assistant t(a)", "tool_result a first"]);
    expect(findings.map(({ kind, index }) => [kind, index])).toEqual([
      ["orphan_result", 0],
      ["duplicate_result", 3],
    ]);
  });

  test("brings a result that stands elsewhere to its call", () => {
    const { messages, findings } = modelView([
      assistantMessage([toolCall("a", "t")]),
      userMessage("are you there?"),
      toolResultMessage({ id: "a", name: "t" }, "r"),
    ]);
    expect(lines(messages)).toEqual(["assistant t(a)", "tool_result a r", "user are you there?"]);
    expect(findings.map(({ kind }) => kind)).toEqual(["misplaced_result"]);
  });

  test("keeps what a turn that was cut short said, without its thinking", () => {
    const content = [thinking("hm"), text("As I was ")];
    for (const stop_reason of ["aborted", "error"]) {
      const { messages, findings } = modelView([assistantMessage(content, { stop_reason })]);
      expect(messages[0]?.content).toEqual([text("As I was ")]);
      expect(findings).toEqual([{ kind: "cut_short", index: 0 }]);
    }
    expect(modelView([assistantMessage(content, { stop_reason: "length" })]).messages[0]?.content).toEqual(content);
  });

  test("M10 leaves thinking alone, blank or not, and its place among the blocks", () => {
    const content: AssistantBlock[] = [
      { ...thinking(""), provider_options: { signature: "a+/=" } },
      text("one"),
      { ...thinking("two\n"), provider_options: { signature: "b" } },
      toolCall("a", "t"),
    ];
    const result = toolResultMessage({ id: "a", name: "t" }, "r");
    expect(modelView([assistantMessage(content), result])).toEqual({
      messages: [assistantMessage(content, { timestamp: expect.any(Number) }), result],
      findings: [],
    });
  });

  test("tells apart two calls that are one object", () => {
    const call = toolCall("a", "t");
    const { messages } = modelView([assistantMessage([call, call])]);
    expect(lines(messages).map((one) => one.split(" error")[0])).toEqual([
      "assistant t(a) t(a_2)",
      "tool_result a",
      "tool_result a_2",
    ]);
  });
});

describe("pairing any log", () => {
  test("answers each call at most once, by a later result of its id, and accounts for every result", () => {
    holds((messages) => {
      const { calls, orphans, duplicates } = pairToolCalls(messages);
      const used = calls.flatMap(({ result }) => result ?? []);
      const results = messages.flatMap(({ role }, i) => (role === "tool_result" ? i : []));
      expect([...used, ...orphans, ...duplicates].toSorted((a, b) => a - b)).toEqual(results);
      for (const { call, index, result } of calls) {
        if (result === undefined) continue;
        expect(result).toBeGreaterThan(index);
        expect(messages[result]).toMatchObject({ tool_call_id: call.id });
      }
    });
  });
});
