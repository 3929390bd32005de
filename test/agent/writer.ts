/**
 * A process with an agent of its own that prompts one thread a number of times, and tries again after a conflict. It
 * reports each prompt that was completed, and how many conflicts it met.
 *
 * argv: database, name, number of prompts
 */
import { Agent } from "../../src/agent/agent.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";

const [, , database = "", name = "", count = "0"] = process.argv;
const checkpointer = await SqliteCheckpointer.open(database, { durability: "off", busyTimeoutMs: 30_000 });
const answers = Array.from({ length: 10_000 }, () => `to ${name}`);
const agent = new Agent({ model: new ScriptedModel(answers), checkpointer, threadId: "t" });
let conflicts = 0;
for (let done = 0; done < Number(count); ) {
  try {
    const { runId } = await agent.prompt(`${name} ${done}`);
    console.log(JSON.stringify({ said: `${name} ${done}`, runId }));
    done++;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "thread_conflict") throw error;
    conflicts++;
  }
}
console.log(JSON.stringify({ conflicts }));
await checkpointer.close();
