/**
 * A chat whose facts are remembered, and the story of each: run it, and run it again.   node examples/remember.ts
 *
 * The conversation is in agent.db and what was learnt in memory.db, both in the current directory. OfflineModel needs no
 * key; a real extractor asks a model, where this one has a single rule.
 */
import { Agent, OfflineModel, remember } from "everthread";
import { SqliteMemoryHistory } from "everthread/history";
import { SqliteCheckpointer } from "everthread/sqlite";

const checkpointer = await SqliteCheckpointer.open("agent.db");
const history = await SqliteMemoryHistory.open("memory.db");

const agent = new Agent({
  model: new OfflineModel(),
  checkpointer,
  threadId: "ada-1",
  middleware: [
    remember({
      history,
      scope: "user_id=ada",
      extract: ({ messages, added }) =>
        messages.slice(-added).flatMap(({ role, content }) => {
          const [, subject, value] = /\bmy ([\w ]+?) is (?:now )?([\w ]+)/i.exec(content ?? "") ?? [];
          return role === "user" && subject && value ? [{ memory_id: `ada/${subject}`, value, actor_id: "ada" }] : [];
        }),
    }),
  ],
});

const start = new Date();
await agent.prompt("Hello! My favourite colour is teal.");
const between = new Date();
await agent.prompt("I changed my mind: my favourite colour is now green.");

for (const { event, old_memory, new_memory } of (await history.get("ada/favourite colour")).slice(-2)) {
  console.log(`${event}: ${old_memory ?? "nothing"} → ${new_memory}`);
}
console.log(`Before: ${await history.restoreAt("ada/favourite colour", start)}`);
console.log(`In between: ${await history.restoreAt("ada/favourite colour", between)}`);
console.log(`Now: ${await history.restoreAt("ada/favourite colour", new Date())}`);
console.log(`The window holds ${(await history.recentMessages("user_id=ada")).length} messages.`);

await history.close();
await checkpointer.close();
