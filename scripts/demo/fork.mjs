// Makes a new thread of one's completed runs.   node fork.mjs FILE THREAD NEW_THREAD AFTER_RUN
import { openThread, say } from "./agent.mjs";

const [file, threadId, newThreadId, afterRunId] = process.argv.slice(2);
const { agent, checkpointer } = await openThread(file, threadId);

await agent.fork(newThreadId, { afterRunId });
const { messages, parentThreadId } = await checkpointer.load(newThreadId);
say("thread", `${newThreadId} begins with ${messages.length} messages of ${parentThreadId}`);
await checkpointer.close();
