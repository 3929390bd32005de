/** Messages and their blocks: the log keeps them as they are, in the order they were appended. */
import assert from "node:assert/strict";
import { assistantMessage, text, thinking, toolCall, toolResultMessage, userMessage } from "../messages/construct.ts";
import { danglingCalls, pairToolCalls } from "../messages/pairing.ts";
import type { Message } from "../messages/schema.ts";
import { conformanceCase } from "./case.ts";
import {
  assertAbsent,
  assertRoundTrip,
  loaded,
  raw,
  rejectsWith,
  reply,
  request,
  say,
  texts,
  throughStore,
  wrong,
} from "./tools.ts";

const calls = (...ids: string[]): Message => assistantMessage(ids.map((id) => toolCall(id, "look", { id })));
const result = (id: string): Message => toolResultMessage({ id, name: "look" }, `result of ${id}`);

const SIGNED = [
  { type: "thinking", thinking: "First.\n", provider_options: { anthropic: { signature: "Eq+/=\n\u0301" } } },
  { type: "redacted_thinking", data: "Zm9v+/=".repeat(800) },
  text("Then this."),
  { type: "thinking", thinking: "", signature: "sig2+/==" },
  { type: "thinking", thinking: "e\u0301 stays unnormalised  " },
  toolCall("call_0", "look"),
];

export const structureCases = [
  conformanceCase("M1 M3 results that were appended survive, and only the unanswered call dangles", async (bench) => {
    await bench.store.append("thread", [calls("a", "b", "c")]);
    await bench.store.append("thread", [result("a")]);
    await bench.store.append("thread", [result("b")]);
    const { messages } = await loaded(await bench.again(), "thread");
    assert.equal(messages.length, 3);
    assert.deepEqual(
      danglingCalls(messages).map((paired) => paired.call.id),
      ["c"],
    );
  }),

  conformanceCase("M2 a tool result without a call is kept where it was appended", (bench) =>
    assertRoundTrip(bench, [result("nobody"), say("hi"), result("nobody"), reply("hello")]),
  ),

  conformanceCase("M5 reused call ids are all kept, and pair with the nearest call", async (bench) => {
    const turns = Array.from({ length: 10 }, (_, i) => [
      assistantMessage([toolCall("call_0", "look", { turn: i })]),
      toolResultMessage({ id: "call_0", name: "look" }, `turn ${i}`),
    ]).flat();
    const messages = await throughStore(bench, turns);
    assert.deepEqual(messages, turns);
    for (const { index, result } of pairToolCalls(messages).calls) assert.equal(result, index + 1);
  }),

  conformanceCase("M7 messages with one id, or a call's id, are messages of their own", (bench) =>
    assertRoundTrip(bench, [
      raw({ ...say("one"), id: "same" }),
      raw({ ...calls("same"), id: "same" }),
      raw({ ...result("same"), id: "same", parent_id: "same" }),
    ]),
  ),

  conformanceCase("M8 blank text is kept as it is", (bench) =>
    assertRoundTrip(bench, [
      assistantMessage([text(""), toolCall("a", "look"), text(" \n"), toolCall("b", "look"), text("")]),
      toolResultMessage({ id: "a", name: "look" }, [text("")]),
      say(" "),
    ]),
  ),

  conformanceCase("M9 a message without content is kept; null or text as content becomes blocks", async (bench) => {
    const empty = assistantMessage([], { stop_reason: "error", error_message: "overloaded" });
    const messages = await throughStore(bench, [
      empty,
      raw({ ...empty, content: null }),
      raw({ role: "user", content: "" }),
      raw({ role: "user", content: "plain" }),
      say("after"),
    ]);
    assert.deepEqual(
      messages.map((message) => message.content),
      [[], [], [], [text("plain")], [text("after")]],
    );
  }),

  conformanceCase("M10 thinking, signatures and redacted data are kept byte for byte, in a fork too", async (bench) => {
    const signed = raw({ ...assistantMessage([]), content: SIGNED, run_id: "run" });
    await bench.store.claimRun("thread", "run");
    await bench.store.append("thread", [signed]);
    await bench.store.markRunComplete("thread", "run");
    await bench.store.fork("thread", "fork", { afterRunId: "run" });
    const later = await bench.again();
    for (const threadId of ["thread", "fork"]) {
      const { messages } = await loaded(later, threadId);
      assert.equal(JSON.stringify(messages), JSON.stringify([signed]));
    }
  }),

  conformanceCase("M12 null, missing and [] stay distinct", (bench) =>
    assertRoundTrip(bench, [
      raw({ role: "assistant", content: [{ type: "reasoning", content: null, summary: [] }] }),
      raw({ role: "assistant", content: [{ type: "reasoning", summary: null }], usage: null, response_id: null }),
      raw({ role: "assistant", content: [{ type: "reasoning", content: [] }], timestamp: null }),
      raw({ role: "tool_result", tool_call_id: "a", tool_name: "look", content: [], details: [] }),
      raw({ role: "tool_result", tool_call_id: "a", tool_name: "look", content: [], details: null }),
      raw({ role: "tool_result", tool_call_id: "a", tool_name: "look", content: [] }),
    ]),
  ),

  conformanceCase("M13 a batch with equal timestamps keeps its order", async (bench) => {
    const turn = (i: number): Message[] =>
      [assistantMessage([thinking(`${i}`)]), reply(`${i}`), calls("call_0"), result("call_0")].map((message) => ({
        ...message,
        timestamp: 1_700_000_000,
        metadata: { i },
      }));
    const batch = Array.from({ length: 200 }, (_, i) => turn(i)).flat();
    assert.deepEqual(await throughStore(bench, batch), batch);
  }),

  conformanceCase("M14 a message of an unknown role or shape is refused with its path", async ({ store }) => {
    const bad: [object, string][] = [
      [{ role: "developer", content: [] }, "messages[1].role"],
      [{ role: "", content: [] }, "messages[1].role"],
      [{ content: [] }, "messages[1].role"],
      [{ role: "user", content: 5 }, "messages[1].content"],
      [{ role: "user" }, "messages[1].content"],
      [{ role: "user", content: [{ type: 5 }] }, "messages[1].content[0].type"],
      [{ role: "user", content: [{ type: "text" }] }, "messages[1].content[0].text"],
      [{ role: "user", content: [], metadata: [] }, "messages[1].metadata"],
      [
        { role: "assistant", content: [{ type: "tool_call", id: "a", name: "look", arguments: [] }] },
        "messages[1].content[0].arguments",
      ],
      [{ role: "tool_result", tool_name: "look", content: [] }, "messages[1].tool_call_id"],
    ];
    for (const [message, path] of bad) {
      await rejectsWith(store.append("thread", [say("first"), raw(message)]), "invalid_message", { path });
    }
    await rejectsWith(store.append("thread", [wrong(null)]), "invalid_message", { path: "messages[0]" });
    await assertAbsent(store, "thread");
  }),

  conformanceCase("M15 unknown blocks and fields are kept through appends, answers and reloads", async (bench) => {
    const newer = raw({
      ...userMessage("look"),
      content: [{ type: "video_v9", foo: 1, parts: [{ deep: null }] }, text("look")],
      field_of_v9: { a: [1] },
    });
    const { store } = bench;
    await store.append("thread", [newer]);
    const { messages, revision } = await loaded(store, "thread");
    await store.append("thread", [reply("ok"), ...messages], { expectedRevision: revision });
    await store.savePendingRequest("thread", request("q"));
    await store.answerPending("thread", { questionId: "q", runId: null, answer: true });
    const later = (await loaded(await bench.again(), "thread")).messages;
    assert.equal(JSON.stringify([later[0], later[2]]), JSON.stringify([newer, newer]));
  }),

  conformanceCase("F9 interleaved and simultaneous appends go to their own threads", async ({ store }) => {
    for (let i = 0; i < 3; i++) {
      await store.append("a", [say(`a${i}`)]);
      await store.append("b", [say(`b${i}`)]);
    }
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => store.append(i % 2 === 0 ? "a" : "b", [say(i % 2 === 0 ? "a" : "b")])),
    );
    assert.deepEqual(await texts(store, "a"), ["a0", "a1", "a2", ...Array<string>(10).fill("a")]);
    assert.deepEqual(await texts(store, "b"), ["b0", "b1", "b2", ...Array<string>(10).fill("b")]);
  }),
];
