// Asks on the side, and leaves no trace.   node aside.mjs FILE THREAD TEXT AFTER_RUN
import { openThread, sayEvent } from "./agent.mjs";

const [file, threadId, text, afterRunId] = process.argv.slice(2);
const { agent, checkpointer } = await openThread(file, threadId);

await agent.forkOnce(text, { afterRunId, onEvent: sayEvent });
await checkpointer.close();
