// Answers what a thread waits on, whoever asked.   node answer.mjs FILE THREAD ANSWER_JSON
import { openThread, say, sayEvent } from "./agent.mjs";

const [file, threadId, answer] = process.argv.slice(2);
const { agent, checkpointer } = await openThread(file, threadId);

const { request } = await agent.pending();
say("person", answer);
await agent.respond(request.question_id, JSON.parse(answer), { onEvent: sayEvent });
await checkpointer.close();
