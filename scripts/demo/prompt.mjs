// One prompt in a process of its own.   node prompt.mjs FILE THREAD TEXT [RUN]
import { openThread, say, sayEvent, sayMessage } from "./agent.mjs";

const [file, threadId, text, runId] = process.argv.slice(2);
const { agent, checkpointer } = await openThread(file, threadId);

if ((await agent.state()) === "awaiting_results") say("thread", "a tool call was interrupted");
const known = agent.messages.length;
await agent.prompt(text, {
  runId,
  onEvent(event) {
    // Interrupted calls are answered before the run starts.
    if (event.type === "run_start") agent.messages.slice(known).forEach(sayMessage);
    sayEvent(event);
  },
});
await checkpointer.close();
