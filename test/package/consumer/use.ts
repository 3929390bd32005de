// What a user of the package might write. It is type-checked against the installed types, then run with the path of a
// new SQLite file, and prints what it saw as JSON.
import {
  Agent,
  type ScriptedAnswer as Answer,
  defineTool,
  type Message,
  openCheckpointer,
  ScriptedModel,
  textOf,
} from "everthread";
import { type AiSdkModelOptions, aiSdkModel } from "everthread/ai-sdk";
import { conformanceCases, type MakeStore } from "everthread/conformance";
import { MemoryCheckpointer } from "everthread/memory";
import schema from "everthread/message.schema.json" with { type: "json" };
import manifest from "everthread/package.json" with { type: "json" };
import { SqliteCheckpointer, type SqliteOptions } from "everthread/sqlite";

const path = process.argv[2] ?? ":memory:";

const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: ({ city }, { extra }) => {
    extra.asked = city ?? null;
    return `Sunny in ${String(city)}.`;
  },
});

async function prompt(words: string, answers: Answer[]): Promise<string> {
  const options: SqliteOptions = { durability: "full" };
  await using checkpointer = await SqliteCheckpointer.open(path, options);
  const agent = new Agent({ model: new ScriptedModel(answers), tools: [weather], checkpointer, threadId: "trip" });
  const result = await agent.prompt(words);
  return `${result.status}: ${result.messages.map(textOf).join(" | ")}`;
}

const first = await prompt("How is Lisbon?", [
  [{ type: "tool_call", id: "call_1", name: "weather", arguments: { city: "Lisbon" } }],
  "It is sunny.",
]);
const second = await prompt("Thanks", ["You are welcome."]);

await using store = await openCheckpointer(`sqlite:${path}`, { readOnly: true });
const thread = await store.load("trip");
const messages: Message[] = thread?.messages ?? [];

const make: MakeStore = async () => ({ checkpointer: new MemoryCheckpointer() });
for (const item of conformanceCases.slice(0, 3)) await item.run(make);
const settings: AiSdkModelOptions = { maxOutputTokens: 100 };

// @ts-expect-error A role that no message has.
const wrong: Message = { role: "system", content: [] };

console.log(
  JSON.stringify({
    first,
    second,
    roles: messages.map(({ role }) => role),
    extra: thread?.extra,
    version: manifest.version,
    schema: schema.title,
    others: [typeof aiSdkModel, settings.maxOutputTokens, wrong.role],
  }),
);
