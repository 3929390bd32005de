/**
 * A conversation that outlives the program: run it, and run it again.   node examples/basic.ts
 *
 * The file is agent.db in the current directory. OfflineModel needs no key; see docs/models.md for a real one.
 */
import { Agent, OfflineModel } from "everthread";
import { SqliteCheckpointer } from "everthread/sqlite";

const checkpointer = await SqliteCheckpointer.open("agent.db");
const agent = new Agent({ model: new OfflineModel(), checkpointer, threadId: "user-42" });

const { messages } = (await checkpointer.load("user-42")) ?? { messages: [] };
console.log(`The thread holds ${messages.length} messages.`);

await agent.prompt("Remember: my favourite colour is teal.");

// Restart the program later: the file persists.
const { text } = await agent.prompt("What did I say my favourite colour was?");
console.log(text); // → You said teal.

await checkpointer.close();
