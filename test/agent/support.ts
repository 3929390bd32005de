/** What the agent's tests share: a store in a file, a second pair of eyes on it, tools that note what they did. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import { Agent, type AgentOptions } from "../../src/agent/agent.ts";
import type { AgentEvent, AgentResult } from "../../src/agent/events.ts";
import type { AgentStream } from "../../src/agent/stream.ts";
import { defineTool, type Tool, type ToolContext, type ToolOutput } from "../../src/agent/tools.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import type { JsonObject } from "../../src/messages/json.ts";
import type { Message } from "../../src/messages/schema.ts";
import type { Model } from "../../src/model/model.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../src/model/scripted.ts";
import { tempDir } from "../support/temp.ts";

export const THREAD = "t";

export class TestFile {
  readonly path = join(tempDir(), "threads.db");

  /** Another store on the file, as another process has it. No test here is about power loss, so nothing waits for the disk. */
  async open(): Promise<SqliteCheckpointer> {
    const checkpointer = await SqliteCheckpointer.open(this.path, { durability: "off" });
    onTestFinished(() => checkpointer.close());
    return checkpointer;
  }

  /** An agent with a store of its own. */
  async agent(answers: ScriptedAnswer[], options: Partial<AgentOptions> = {}): Promise<Agent> {
    return new Agent({
      model: new ScriptedModel(answers),
      checkpointer: await this.open(),
      threadId: THREAD,
      ...options,
    });
  }

  /** What is committed, read by a connection of its own with plain SQL. */
  messages(threadId = THREAD): Message[] {
    return this.query("SELECT message_json FROM messages WHERE thread_id = ? ORDER BY id", threadId).map((row) =>
      JSON.parse(String(row.message_json)),
    );
  }

  query(sql: string, ...parameters: (string | number | null)[]): Record<string, unknown>[] {
    const db = new DatabaseSync(this.path);
    try {
      return db.prepare(sql).all(...parameters);
    } finally {
      db.close();
    }
  }
}

/** A message in one line: its role and what it says. */
export function line(message: Message): string {
  const calls = message.content.flatMap((block) => ("id" in block ? `${block.name}(${block.id})` : []));
  const about = message.role === "tool_result" ? [message.tool_call_id, ...(message.is_error ? ["error"] : [])] : calls;
  return [message.role, ...about, ...(textOf(message) === "" ? [] : [textOf(message)])].join(" ");
}

export const lines = (messages: readonly Message[]): string[] => messages.map(line);

/** A tool of any arguments. */
export const tool = (
  name: string,
  execute: (args: JsonObject, context: ToolContext) => ToolOutput | Promise<ToolOutput>,
): Tool => defineTool({ name, description: name, parameters: { type: "object" }, execute });

/** A tool that notes each call with its arguments, and says "<name> did <call's id>". */
export function notingTool(name: string): Tool & { ran: { id: string; args: JsonObject }[] } {
  const ran: { id: string; args: JsonObject }[] = [];
  return Object.assign(
    tool(name, (args, { toolCallId }) => {
      ran.push({ id: toolCallId, args });
      return `${name} did ${toolCallId}`;
    }),
    { ran },
  );
}

export async function collect(stream: AgentStream): Promise<{ events: AgentEvent[]; result: AgentResult }> {
  const events: AgentEvent[] = [];
  for await (const event of stream) events.push(event);
  return { events, result: await stream.result };
}

export const types = (events: readonly AgentEvent[]): string[] => events.map(({ type }) => type);

/** Says "word " for ever, and listens to no signal. */
export const endlessModel: Model = {
  providerId: "test",
  modelId: "endless",
  async *stream() {
    for (;;) {
      yield { type: "text_delta", delta: "word " };
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
};

/** A store whose calls pass through `before`, which may throw, and are noted with their arguments. */
export function watched(
  checkpointer: Checkpointer,
  before: (method: string, args: unknown[]) => void | Promise<void> = () => {},
): { checkpointer: Checkpointer; calls: { method: string; args: unknown[]; result: unknown }[] } {
  const calls: { method: string; args: unknown[]; result: unknown }[] = [];
  const proxy = new Proxy(checkpointer, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== "function") return method;
      return async (...args: unknown[]) => {
        await before(String(name), args);
        const result: unknown = await method.apply(target, args);
        calls.push({ method: String(name), args, result });
        return result;
      };
    },
  });
  return { checkpointer: proxy, calls };
}

/** What a promise fails with. @throws when it does not fail */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("error" in outcome) return outcome.error;
  throw new Error(`It should have failed, and gave ${JSON.stringify(outcome.value)}.`);
}
