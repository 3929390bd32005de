// One prompt in a process of its own.   node prompt.mjs FILE THREAD TEXT [RUN]
import { openThread, say, sayEvent } from "./agent.mjs";

const [file, threadId, text, runId] = process.argv.slice(2);
const { agent, checkpointer } = await openThread(file, threadId);

if ((await agent.state()) === "awaiting_results") say("thread", "a tool call was interrupted");
await agent.prompt(text, { runId, onEvent: sayEvent });
await checkpointer.close();
