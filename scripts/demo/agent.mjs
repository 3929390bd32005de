// The agent of the tour: one thread in one SQLite file, the offline model, two tools. Each process makes its own.
import { appendFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, defineTool, OfflineModel, textOf } from "everthread";
import { SqliteCheckpointer } from "everthread/sqlite";

/** Prints a line at once, also when the process is killed right after. */
export function say(who, what) {
  writeSync(1, `${who.padEnd(6)} ${what}\n`);
}

/** Prints a message that is stored. */
export function sayMessage(message) {
  const said = textOf(message);
  if (message.role === "tool_result") say("result", message.is_error ? `error: ${said}` : said);
  else if (said !== "") say(message.role === "user" ? "you" : "agent", said);
}

/** Prints what a run does, as it happens. */
export function sayEvent(event) {
  if (event.type === "message") sayMessage(event.message);
  if (event.type === "pending") {
    const { tool_name, args } = event.request.payload;
    say("waits", `may I run ${tool_name} ${JSON.stringify(args)}?`);
  }
}

export async function openThread(file, threadId) {
  const checkpointer = await SqliteCheckpointer.open(file);
  const ran = (what) => appendFileSync(join(dirname(file), "effects.log"), `${process.pid} ${what}\n`);

  const deploy = defineTool({
    name: "deploy",
    description: "Deploys a service; takes its time",
    parameters: { type: "object", properties: { service: { type: "string" } }, required: ["service"] },
    async execute({ service }) {
      ran(`deploy ${service}`);
      say("tool", `deploy ${service} began`);
      await sleep(20_000);
      return `deployed ${service}`;
    },
  });
  const deleteFiles = defineTool({
    name: "delete_files",
    description: "Deletes files; a person must agree",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    execute({ path }) {
      ran(`delete_files ${path}`);
      say("tool", `delete_files ${path} runs`);
      return `deleted ${path}`;
    },
  });

  const agent = new Agent({
    model: new OfflineModel(),
    tools: [deploy, deleteFiles],
    approve: ({ toolName }) => (toolName === "delete_files" ? "ask" : "allow"),
    checkpointer,
    threadId,
  });
  return { agent, checkpointer };
}
