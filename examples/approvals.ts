/**
 * A tool call that waits for a person, in two processes: the first asks and ends, the second answers, and runs the tool.
 *
 *   node examples/approvals.ts                     asks, and ends
 *   node examples/approvals.ts approve             answers: the tool runs here
 *   node examples/approvals.ts deny "not today"    or: the model is told why not
 */
import { Agent, defineTool, OfflineModel } from "everthread";
import { SqliteCheckpointer } from "everthread/sqlite";
import * as z from "zod";

const deleteFiles = defineTool({
  name: "delete_files",
  description: "Deletes the files under a path",
  parameters: z.object({ path: z.string() }),
  execute: ({ path }) => {
    console.log(`(delete_files runs: ${path})`);
    return `deleted ${path}`;
  },
});

const checkpointer = await SqliteCheckpointer.open("agent.db");
const agent = new Agent({
  model: new OfflineModel(),
  tools: [deleteFiles],
  approve: ({ toolName }) => (toolName === "delete_files" ? "ask" : "allow"),
  checkpointer,
  threadId: "cleaning",
});

const [decision, reason = null] = process.argv.slice(2);
const pending = await agent.pending();
if (!pending) {
  const result = await agent.prompt('call delete_files {"path":"./tmp"}');
  console.log(`${result.status}: ${JSON.stringify(result.pending?.payload)}`);
} else if (decision === "approve" || decision === "deny") {
  const result = await agent.respond(pending.request.question_id, { decision, reason });
  console.log(`${result.status}: ${result.text}`);
} else {
  console.log(`The thread waits for an answer: ${JSON.stringify(pending.request.payload)}`);
  console.log("Run this again with approve, or with deny and a reason.");
}
await checkpointer.close();
