/**
 * A process with an agent of its own that prompts one thread a number of times, compacts it as it grows, and tries again
 * after a conflict. It reports each run that was completed, and at the end how many compactions it made.
 *
 * argv: database, name, number of prompts
 */
import { Agent } from "../../src/agent/agent.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";

const [, , database = "", name = "", count = "0"] = process.argv;
const checkpointer = await SqliteCheckpointer.open(database, { durability: "off", busyTimeoutMs: 30_000 });
const answers = (said: string) => new ScriptedModel(Array.from({ length: 10_000 }, () => said));
let compactions = 0;
const agent = new Agent({
  model: answers(`to ${name}`),
  compaction: { triggerTokens: 120, keepTokens: 20, keepArchives: 0, model: answers(`a summary by ${name}`) },
  checkpointer,
  threadId: "t",
  onEvent: ({ type }) => {
    if (type === "compaction_end") compactions++;
  },
});
for (let done = 0; done < Number(count); ) {
  try {
    const { runId } = await agent.prompt(`${name} ${done}`);
    console.log(JSON.stringify({ runId }));
    done++;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "thread_conflict") throw error;
  }
}
console.log(JSON.stringify({ compactions }));
await checkpointer.close();
