/** The text of a source: what people and tools said, and nothing else of a message. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { admitMessage } from "../../src/messages/admit.ts";
import { messageFromJson, messageToJson } from "../../src/messages/codec.ts";
import {
  assistantMessage,
  image,
  text,
  thinking,
  toolCall,
  toolResultMessage,
  userMessage,
} from "../../src/messages/construct.ts";
import type { JsonObject } from "../../src/messages/json.ts";
import type { Message } from "../../src/messages/schema.ts";
import { sourceText } from "../../src/messages/source-text.ts";

const assistant = (...content: object[]) => ({ ...assistantMessage([]), content }) as Message;

test("S15 text blocks, one a line, as they stand", () => {
  expect(sourceText(userMessage("hello"))).toBe("hello");
  expect(sourceText(userMessage([text("one\ntwo "), text(""), text("nul \0 e\u0301")]))).toBe(
    "one\ntwo \n\nnul \0 e\u0301",
  );
  expect(sourceText(toolResultMessage({ id: "c", name: "look" }, "seen", { details: { a: "hidden" } }))).toBe("seen");
});

test("S15 a message that says nothing has no text", () => {
  expect(sourceText(userMessage([]))).toBe("");
  expect(sourceText(userMessage([image("aGk=", "image/png")]))).toBe("");
  expect(
    sourceText(
      assistant(thinking("hidden"), { type: "redacted_thinking", data: "hidden" }, { type: "x", text: "hidden" }),
    ),
  ).toBe("");
});

test("S15 a tool call is its name and its arguments, a value a line", () => {
  const args: JsonObject = {
    path: "/tmp/a b.txt",
    deep: { list: ["x", 1, false, null, ["y"], { z: "multi\nline" }], empty: {}, none: [] },
    'odd "key"': 'say "hi" \\ {no: json}',
  };
  expect(sourceText(assistant(text("Let me see."), toolCall("id", "read_file", args), thinking("hm")))).toBe(
    [
      "Let me see.",
      "read_file",
      "path: /tmp/a b.txt",
      "deep:",
      "  list:",
      "    - x",
      "    - 1",
      "    - false",
      "    - null",
      "    -",
      "      - y",
      "    -",
      "      z: multi",
      "line",
      "  empty:",
      "  none:",
      'odd "key": say "hi" \\ {no: json}',
    ].join("\n"),
  );
});

test("S15 a call without arguments is its name, and one that was no JSON is what the model wrote", () => {
  expect(sourceText(assistant(toolCall("id", "list")))).toBe("list");
  const broken = { ...toolCall("id", "list"), invalid_arguments: '{"path": "/tm' };
  expect(sourceText(assistant(broken))).toBe('list\n{"path": "/tm');
});

test("S15 a call that the provider ran is a call too", () => {
  const call = { ...toolCall("id", "web_search", { query: "tides" }), type: "provider_tool_call" };
  expect(sourceText(assistant(call))).toBe("web_search\nquery: tides");
  expect(sourceText(assistant({ type: "provider_tool_call" }))).toBe("");
});

test("every text within the arguments is found as it is, and the text survives storing", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.string({ unit: "binary" }), (value, needle) => {
      const args = { value, deep: [{ [needle]: [needle] }] } as JsonObject;
      const message = admitMessage(assistant(toolCall("id", "look", args)));
      const said = sourceText(message);
      const key = needle.toWellFormed();
      expect(said).toContain(`    ${key}:\n      - ${key}`);
      expect(sourceText(messageFromJson(messageToJson(message)))).toBe(said);
    }),
    { numRuns: 300 },
  );
});

test("arguments as deep and as many as a message may hold", () => {
  const deep = JSON.parse(`${"[".repeat(400)}"needle"${"]".repeat(400)}`);
  const many = Array.from({ length: 200_000 }, (_, i) => i);
  const said = sourceText(admitMessage(assistant(toolCall("id", "look", { deep, many }))));
  expect(said).toContain("- needle");
  expect(said.endsWith("- 199999")).toBe(true);
});
