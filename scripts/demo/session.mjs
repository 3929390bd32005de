// Prompts in a session of its own directory, which compacts early.   node session.mjs DIRECTORY [--slowly] TEXT...
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, OfflineModel } from "everthread";
import { openSession } from "everthread/session";
import { say, sayEvent } from "./agent.mjs";

/** Takes its time for a summary, as a language model does. */
class SlowModel extends OfflineModel {
  async *stream(request) {
    await sleep(20_000);
    yield* super.stream(request);
  }
}

const [directory, ...rest] = process.argv.slice(2);
const texts = rest.filter((word) => word !== "--slowly");
const summaries = rest.includes("--slowly") ? { model: new SlowModel() } : {};
const session = await openSession({ directory });
const agent = new Agent({
  model: new OfflineModel(),
  ...session.agentOptions(),
  // So small that the tour stays short; the offline model counts words.
  compaction: { triggerTokens: 200, keepTokens: 40, ...summaries },
});

for (const text of texts) await agent.prompt(text, { onEvent: sayWork });
await session.close();

function sayWork(event) {
  // Results are long; what comes of them is what the agent says.
  if (!(event.type === "message" && event.message.role === "tool_result")) sayEvent(event);
  if (event.type === "tool_start") say("calls", `${event.toolName} ${JSON.stringify(event.arguments)}`);
  if (event.type === "compaction_start") say("full", `${event.messageCount} messages are to be set aside`);
  if (event.type === "compaction_end") say("kept", `${event.messageCount} messages in archive ${event.archiveId}`);
}
