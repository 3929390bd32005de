/**
 * A child that lives through a story on one thread and kills itself at one of its write points: before the n-th write is
 * asked for, or right after it was acknowledged. Every acknowledged message is reported on stdout first.
 *
 * argv: database, n, "before" | "after"
 */
import { appendFileSync, writeSync } from "node:fs";
import { Agent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";

const WRITES = new Set([
  "claimRun",
  "append",
  "saveExtra",
  "savePendingRequest",
  "answerPending",
  "clearHitlAnswers",
  "markRunComplete",
]);

export const THREAD = "story";

/** The agent of the story; what its tools did is in `<database>.effects`. */
export function storyAgent(
  checkpointer: Checkpointer,
  database: string,
  answers: ConstructorParameters<typeof ScriptedModel>[0],
): Agent {
  const tool = (name: string) =>
    defineTool({
      name,
      description: name,
      parameters: { type: "object" },
      execute: (_args, { toolCallId, extra }) => {
        appendFileSync(`${database}.effects`, `${toolCallId}\n`);
        extra[name] = toolCallId;
        return `${name} did ${toolCallId}`;
      },
    });
  return new Agent({
    model: new ScriptedModel(answers),
    tools: [tool("look"), tool("change")],
    approve: ({ toolName }) => (toolName === "change" ? "ask" : "allow"),
    checkpointer,
    threadId: THREAD,
  });
}

function killAt(checkpointer: Checkpointer, n: number, when: string): Checkpointer {
  let writes = 0;
  return new Proxy(checkpointer, {
    get(target, name, receiver) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== "function") return Reflect.get(target, name, receiver);
      if (!WRITES.has(String(name))) return method.bind(target);
      return async (...args: unknown[]) => {
        const write = ++writes;
        if (write === n && when === "before") process.kill(process.pid, "SIGKILL");
        const result: unknown = await method.apply(target, args);
        // Synchronous, so that it is out before a kill.
        if (name === "append") for (const message of args[1] as unknown[]) writeSync(1, `${JSON.stringify(message)}\n`);
        if (write === n && when === "after") process.kill(process.pid, "SIGKILL");
        return result;
      };
    },
  });
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [, , database = "", n = "0", when = ""] = process.argv;
  const checkpointer = killAt(await SqliteCheckpointer.open(database), Number(n), when);
  const both = [toolCall("c1", "look"), toolCall("c2", "change"), toolCall("c3", "change")];
  const agent = storyAgent(checkpointer, database, [[toolCall("c0", "look")], both, "done"]);
  await agent.prompt("go", { runId: "run-1" });
  await agent.respond("c2", { decision: "approve" });
  await agent.respond("c3", { decision: "deny", reason: "no" });
  await checkpointer.close();
}
