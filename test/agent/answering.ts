/**
 * Another process's part in an approval.
 *
 * argv: database, "ask" — suspends a run on thread "t" with two gates, says so, and waits to be killed;
 * argv: database, "answer", question id — answers it with "approve", and reports what the tools did and what came of it.
 */
import { Agent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";

const [, , database = "", part = "", questionId = ""] = process.argv;
const ran: string[] = [];
const agent = new Agent({
  model: new ScriptedModel(
    part === "ask" ? [[toolCall("a", "change", { to: "{{ref}}" }), toolCall("b", "change", { to: "2" })]] : ["done"],
  ),
  tools: [
    defineTool({
      name: "change",
      description: "Changes something.",
      parameters: { type: "object" },
      execute: (args, { toolCallId }) => {
        ran.push(`${toolCallId} ${JSON.stringify(args)}`);
        return "changed";
      },
    }),
  ],
  approve: () => "ask",
  checkpointer: await SqliteCheckpointer.open(database),
  threadId: "t",
});
if (part === "ask") {
  const { status } = await agent.prompt("change both", { runId: "r" });
  console.log(status);
  setInterval(() => {}, 60_000);
} else {
  const outcome = await agent.respond(questionId, { decision: "approve" }).then(
    ({ status, pending }) => ({ status, next: pending?.question_id }),
    (error: { code: string }) => ({ code: error.code }),
  );
  console.log(JSON.stringify({ ...outcome, ran }));
}
