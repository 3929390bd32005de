/** The ask_user tool: what is asked, which answers are taken, and what the model reads of them. */
import { describe, expect, test } from "vitest";
import { askUserTool } from "../../src/agent/ask-user.ts";
import { textOf, toolCall } from "../../src/messages/construct.ts";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import type { ScriptedAnswer } from "../../src/model/scripted.ts";
import { failureOf, lines, notingTool, TestFile } from "./support.ts";

const COLOUR: JsonObject = {
  key: "colour",
  prompt: "Which colour?",
  options: [
    { label: "Teal", value: "teal", description: "like the sea" },
    { label: "Red", value: "red" },
  ],
};
const SIZES: JsonObject = { ...COLOUR, key: "sizes", multi_select: true };
const OTHER: JsonObject = {
  key: "other",
  prompt: "Or?",
  options: [
    { label: "Yes", value: "yes" },
    { label: "Something else", value: "else", allow_input: true },
  ],
};
const FREE: JsonObject = { key: "name", prompt: "Your name?" };
const OPTIONAL: JsonObject = { key: "note", prompt: "Anything else?", required: false };
const INHERITED: JsonObject = { key: "constructor", prompt: "Who built it?", required: false };

function setup(...questions: JsonObject[]) {
  const file = new TestFile();
  const change = notingTool("change");
  const open = (...answers: ScriptedAnswer[]) => file.agent(answers, { tools: [askUserTool, change] });
  const ask = [toolCall("q", "ask_user", { questions })];
  return { file, open, ask, change };
}

test("the model is given a schema that describes the questions", async () => {
  const { open } = setup();
  const agent = await open((request) => JSON.stringify(request.tools[0]));
  const { text } = await agent.prompt("?");
  expect(JSON.parse(text)).toMatchObject({
    name: "ask_user",
    inputSchema: { required: ["questions"], properties: { questions: { type: "array", minItems: 1 } } },
  });
});

test("a question suspends the run, is durable, and its answer reaches the model", async () => {
  const { file, open, ask } = setup(COLOUR, OPTIONAL);
  const { status, pending } = await (await open(ask)).prompt("paint it", { runId: "r" });
  expect(status).toBe("suspended");
  expect(pending?.payload).toMatchObject({
    kind: "ask",
    questions: [
      { key: "colour", prompt: "Which colour?", multi_select: false, required: true },
      { key: "note", options: null, required: false },
    ],
  });
  const result = await (await open("painted")).respond(String(pending?.question_id), { colour: "teal" });
  expect(result).toMatchObject({ status: "completed", runId: "r", text: "painted" });
  const [, , answered] = file.messages();
  expect(answered).toMatchObject({
    role: "tool_result",
    tool_call_id: "q",
    is_error: false,
    details: { hitl: { kind: "ask", answers: { colour: "teal" } } },
  });
  expect(textOf(answered ?? { content: [] })).toContain('"colour": "teal"');
});

describe("answers", () => {
  test.each<[string, JsonObject[], JsonValue]>([
    ["an option", [COLOUR], { colour: "red" }],
    ["several options", [SIZES], { sizes: ["teal", "red"] }],
    ["one option where several may be taken", [SIZES], { sizes: "teal" }],
    ["free input beside options", [OTHER], { other: "whatever I like" }],
    ["free text", [FREE], { name: "Ada" }],
    ["empty free text", [FREE], { name: "" }],
    ["nothing where nothing is required", [OPTIONAL], {}],
    ["null where nothing is required", [OPTIONAL], { note: null }],
    ["a key that every object inherits, left out", [INHERITED], {}],
    ["a key that every object inherits", [INHERITED], { constructor: "Ada" }],
    ["several questions", [COLOUR, FREE], { colour: "teal", name: "Ada \u0000 🧵" }],
  ])("taken: %s", async (_what, questions, answer) => {
    const { file, open, ask } = setup(...questions);
    const agent = await open(ask, "thanks");
    const { pending } = await agent.prompt("go");
    expect(await agent.respond(String(pending?.question_id), answer)).toMatchObject({ status: "completed" });
    expect(file.messages()[2]).toMatchObject({ details: { hitl: { answers: answer } } });
  });

  test.each<[string, JsonObject[], JsonValue, RegExp]>([
    ["no object", [COLOUR], "teal", /an object from each question's key/],
    ["null", [COLOUR], null, /an object/],
    ["a list", [COLOUR], ["teal"], /an object/],
    ["an option that there isn't", [COLOUR], { colour: "blue" }, /"colour" takes one of "teal", "red", not "blue"/],
    ["a label for a value", [COLOUR], { colour: "Teal" }, /takes one of/],
    ["several where one is asked for", [COLOUR], { colour: ["teal", "red"] }, /takes one answer/],
    ["one of several that there isn't", [SIZES], { sizes: ["teal", "blue"] }, /"blue"/],
    ["none of several", [SIZES], { sizes: [] }, /must be answered/],
    ["nothing", [COLOUR], {}, /"colour" must be answered/],
    ["null for a required one", [FREE], { name: null }, /"name" must be answered/],
    ["a number", [FREE], { name: 5 }, /takes text, not 5/],
    ["false", [FREE], { name: false }, /takes text, not false/],
    ["another question's key", [COLOUR], { colour: "teal", size: "L" }, /No question is called "size"/],
  ])("refused with nothing written: %s", async (_what, questions, answer, problem) => {
    const { file, open, ask } = setup(...questions);
    const agent = await open(ask, "thanks");
    const { pending } = await agent.prompt("go");
    const error = await failureOf(agent.respond(String(pending?.question_id), answer));
    expect(error).toMatchObject({ code: "hitl_invalid_answer", message: expect.stringMatching(problem) });
    expect(file.query("SELECT * FROM thread_hitl_answers")).toEqual([]);
    expect(file.messages()).toHaveLength(2);
    expect(await agent.pending()).toMatchObject({ request: pending });
  });
});

test.each<[string, JsonObject]>([
  ["no questions", {}],
  ["an empty list", { questions: [] }],
  ["a question without a prompt", { questions: [{ key: "a" }] }],
  ["options without values", { questions: [{ key: "a", prompt: "?", options: [{ label: "x" }] }] }],
])("a call with %s is told to the model and asks nobody", async (_what, args) => {
  const { file, open } = setup();
  const agent = await open([toolCall("q", "ask_user", args)], "sorry");
  expect(await agent.prompt("go")).toMatchObject({ status: "completed", text: "sorry" });
  expect(file.messages()[2]).toMatchObject({ is_error: true });
});

test("a question beside another call: the call runs when the question is answered", async () => {
  const { file, open, ask, change } = setup(FREE);
  const { pending } = await (await open([...ask, toolCall("c", "change")])).prompt("go");
  expect(change.ran).toEqual([]);
  await (await open("done")).respond(String(pending?.question_id), { name: "Ada" });
  expect(change.ran).toHaveLength(1);
  expect(lines(file.messages()).at(-1)).toBe("assistant done");
});

test("two calls that ask the same in one batch are answered one after the other", async () => {
  const { file, open } = setup();
  const twice = ["p", "q"].map((id) => toolCall(id, "ask_user", { questions: [FREE] }));
  const first = await (await open(twice)).prompt("go");
  const second = await (await open()).respond(String(first.pending?.question_id), { name: "Ada" });
  expect(second.pending?.question_id).not.toBe(first.pending?.question_id);
  const done = await (await open("thanks")).respond(String(second.pending?.question_id), { name: "Bob" });
  expect(done.status).toBe("completed");
  const answers = file.messages().flatMap((message) => (message.role === "tool_result" ? [message] : []));
  const byCall = Object.fromEntries(answers.map((message) => [message.tool_call_id, message.details]));
  expect(byCall).toMatchObject({
    p: { hitl: { answers: { name: "Ada" } } },
    q: { hitl: { answers: { name: "Bob" } } },
  });
});

test("H7 questions that were changed before the answer are refused", async () => {
  const { file, open, ask } = setup(COLOUR);
  const { pending } = await (await open(ask)).prompt("go");
  file.query("UPDATE thread_pending_request SET request_json = replace(request_json, 'Which colour?', 'Delete all?')");
  const answer = (await open("x")).respond(String(pending?.question_id), { colour: "teal" });
  expect(await failureOf(answer)).toMatchObject({ code: "hitl_mismatch" });
});
