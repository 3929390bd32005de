import { describe, expect, test } from "vitest";
import { assistantMessage, text, textOf, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { Message, ToolCallBlock } from "../../src/messages/schema.ts";
import type { ToolSpec } from "../../src/model/model.ts";
import { OfflineModel } from "../../src/model/offline.ts";
import { ask, failure, streamedText } from "../support/turns.ts";

const tool = (name: string): ToolSpec => ({ name, description: name, inputSchema: { type: "object" } });
const tools = [tool("get_weather"), tool("delete-files")];

/** Says one thing after another, each to a model of its own, and gives the last answer. */
async function talk(...said: string[]): Promise<string> {
  const messages: Message[] = [];
  for (const line of said) {
    messages.push(userMessage(line));
    messages.push((await ask(new OfflineModel(), messages)).message);
  }
  return textOf(messages.at(-1) ?? userMessage(""));
}

async function calls(said: string): Promise<ToolCallBlock[]> {
  const { finish } = await ask(new OfflineModel(), [userMessage(said)], { tools });
  expect(finish.stop_reason).toBe("tool_use");
  return finish.content.filter((block) => block.type === "tool_call");
}

describe("what it remembers", () => {
  test("the demo's two sentences", async () => {
    const remember = "Remember: my favourite colour is teal.";
    expect(await talk(remember)).toBe("I will remember that your favourite colour is teal.");
    expect(await talk(remember, "What did I say my favourite colour was?")).toBe("You said teal.");
    expect(await talk(remember, "What is my favourite colour?")).toBe("You said teal.");
  });

  test.each([
    ["My favorite color is dark green!", "what's my favourite colour", "dark green"],
    ["my favourite colour is grey", "Do you remember my favorite color?", "grey"],
    ["Hello. My name is Ada and my city centre is Arnhem.", "Tell me my city center", "Arnhem"],
    ["Hello. My name is Ada and my city centre is Arnhem.", "Do you know what my name is?", "Ada"],
    ["Can you remember that my site is example.com?", "What is my site, please?", "example.com"],
    ["my cats are Mia and Tom", "Who are my cats?", "Mia and Tom"],
  ])("%s - %s", async (said, asked, value) => {
    expect(await talk(said, asked)).toBe(`You said ${value}.`);
  });

  test("the latest fact wins, and an unknown one is not made up", async () => {
    expect(await talk("my code is 1", "My code is now 2.", "What is my code?")).toBe("You said 2.");
    expect(await talk("my code is 1", "What is my age?")).toBe(
      "I don't know your age: nobody has said it in this thread.",
    );
  });

  test("facts in tool results and in a summary count, the model's own words don't", async () => {
    const call = { id: "c", name: "profile" };
    const known = [
      userMessage("Summary of the conversation so far: the user's favourite colour is teal."),
      assistantMessage([text("Your name is Bob.")]),
      toolResultMessage(call, "Your plan is gold.\nother lines"),
    ];
    const answer = async (asked: string) =>
      textOf((await ask(new OfflineModel(), [...known, userMessage(asked)])).message);
    expect(await answer("What is my favorite color?")).toBe("You said teal.");
    expect(await answer("What is my plan?")).toBe("You said gold.");
    expect(await answer("What is my name?")).toContain("I don't know your name");
  });

  test("long text without sentences does not hold it up", async () => {
    const long = "my ".repeat(200_000);
    const started = performance.now();
    await talk(long, "What is my name?");
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe("tools", () => {
  test("calls with and without arguments, several in one turn with ids of their own", async () => {
    const made = await calls(
      'call get_weather {"city":"Oslo","note":"say \\"call x {}\\""} and use delete-files with {"a":{"b":[1]}}\nuse get_weather',
    );
    expect(made.map(({ name, arguments: args }) => [name, args])).toEqual([
      ["get_weather", { city: "Oslo", note: 'say "call x {}"' }],
      ["delete-files", { a: { b: [1] } }],
      ["get_weather", {}],
    ]);
    expect(new Set(made.map(({ id }) => id)).size).toBe(3);
    const again = await calls("call get_weather {}");
    expect(made.map(({ id }) => id)).not.toContain(again[0]?.id);
  });

  test("a tool that is not offered is not called: it names those that are", async () => {
    const { finish } = await ask(new OfflineModel(), [userMessage("call launch {} and call get_weather {}")], {
      tools,
    });
    expect(finish.stop_reason).toBe("stop");
    expect(textOf(finish)).toBe("I have no tool called launch. The tools here: get_weather, delete-files.");
    const none = await ask(new OfflineModel(), [userMessage("call launch")]);
    expect(textOf(none.finish)).toBe("I have no tool called launch. There are no tools here.");
  });

  test("arguments that are no JSON are said to be so", async () => {
    const { finish } = await ask(new OfflineModel(), [userMessage("call get_weather {city: Oslo}")], { tools });
    expect(textOf(finish)).toMatch(/^I can't read the arguments of get_weather: /);
  });

  test("ordinary sentences with call and use are none", async () => {
    const { finish } = await ask(new OfflineModel(), [userMessage("Do call me when you use it.")], { tools });
    expect(textOf(finish)).toMatch(/^I have no rule for that\./);
  });

  test("says what the tools of the last turn said", async () => {
    const messages = [
      userMessage("call get_weather {}"),
      toolResultMessage({ id: "0", name: "get_weather" }, "old"),
      assistantMessage([{ type: "tool_call", id: "1", name: "get_weather", arguments: {} }]),
      toolResultMessage({ id: "1", name: "get_weather" }, "rain, 4 °C"),
      toolResultMessage({ id: "2", name: "delete-files" }, "denied", { is_error: true }),
      toolResultMessage({ id: "3", name: "delete-files" }, []),
    ];
    const { message } = await ask(new OfflineModel(), messages, { tools });
    expect(textOf(message)).toBe(
      "get_weather said: rain, 4 °C\ndelete-files failed: denied\ndelete-files said: (nothing)",
    );
  });
});

test("says what it is when it has no rule", async () => {
  const { message } = await ask(new OfflineModel(), [userMessage("Write a poem")], { tools });
  expect(textOf(message)).toContain("a few rules, not a language model");
  expect(textOf(message)).toContain("The tools here: get_weather, delete-files.");
});

test("streams word by word what it finishes with, and counts words", async () => {
  const { events, finish } = await ask(new OfflineModel(), [userMessage("my name is Ada")], { system: "Be kind." });
  expect(events.filter((event) => event.type === "text_delta").length).toBe(8);
  expect(streamedText(events)).toBe(textOf(finish));
  expect(finish.usage).toEqual({ input_tokens: 6, output_tokens: 8, cache_read_tokens: 0, cache_write_tokens: 0 });
});

test("stops with the reason of the signal, between words and while it waits", async () => {
  const reason = new Error("enough");
  const controller = new AbortController();
  const read = async () => {
    for await (const _ of new OfflineModel().stream({
      messages: [userMessage("my name is Ada")],
      tools: [],
      signal: controller.signal,
    })) {
      controller.abort(reason);
    }
  };
  expect(await failure(read())).toBe(reason);

  const waiting = new AbortController();
  const answer = ask(new OfflineModel(), [userMessage("wait 20000 ms")], { signal: waiting.signal });
  setImmediate(() => waiting.abort(reason));
  expect(await failure(answer)).toBe(reason);
  expect(await talk("wait 1 ms")).toBe("I waited 1 ms.");
});

describe("looking up what it no longer sees", () => {
  const memory = [tool("memory_search"), tool("memory_fetch")];
  const asked = userMessage("What is my favourite colour?");

  async function next(...results: { name: string; result: unknown; failed?: true }[]) {
    const messages: Message[] = [asked];
    for (const { name, result, failed } of results) {
      const call = { id: name, name };
      messages.push(assistantMessage([{ type: "tool_call", ...call, arguments: {} }]));
      messages.push(toolResultMessage(call, JSON.stringify(result), failed ? { is_error: true } : {}));
    }
    const { message } = await ask(new OfflineModel(), messages, { tools: memory });
    return message.content.map((block) =>
      block.type === "tool_call" ? [block.name, block.arguments] : textOf(message),
    );
  }

  test("it searches, fetches the hit that tells it, and answers", async () => {
    expect(await next()).toEqual([["memory_search", { query: "favourite colour" }]]);
    const hits = [
      { archive_id: "a2", source_id: "9", role: "assistant", preview: "I know your favourite colour." },
      { archive_id: "a1", source_id: "3", role: "user", preview: "Well. My favorite color is teal." },
    ];
    const search = { name: "memory_search", result: { hits, has_more: false } };
    expect(await next(search)).toEqual([["memory_fetch", { archive_id: "a1", source_id: "3" }]]);
    const fetched = { name: "memory_fetch", result: { text: "Well. My favorite color is teal.", has_more: false } };
    expect(await next(search, fetched)).toEqual(["I looked it up: you said teal."]);
  });

  test("it says when nothing is found, when it was not said there, and what failed", async () => {
    expect(await next({ name: "memory_search", result: { hits: [] } })).toEqual([
      "I looked, and found nothing about your favourite colour.",
    ]);
    expect(await next({ name: "memory_fetch", result: { text: "Hello" } })).toEqual([
      "I looked, and your favourite colour was not said there.",
    ]);
    const failed = await next({ name: "memory_search", result: "out of time", failed: true });
    expect(failed).toEqual(['memory_search failed: "out of time"']);
  });

  test("what it sees it does not look up, and without the tools it says that it does not know", async () => {
    const messages = [userMessage("My favourite colour is teal."), asked];
    expect(textOf((await ask(new OfflineModel(), messages, { tools: memory })).message)).toBe("You said teal.");
    expect(textOf((await ask(new OfflineModel(), [asked], { tools })).message)).toContain("I don't know");
  });
});
