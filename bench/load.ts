/** Loading a thread of 10,000 messages against a bare SELECT with JSON.parse. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, toolResultMessage, userMessage } from "../src/messages/construct.ts";
import type { Message } from "../src/messages/schema.ts";
import { newId } from "../src/util/ids.ts";
import { benchDir, messageOf, ratios, repeat, report, time } from "./measure.ts";

const MESSAGES = 10_000;
const dir = benchDir();
const lines = 'export function line(n: number): string { return "line " + n; }\n';

/** What a coding agent leaves: a question, a tool call after some thinking, its result, an answer. */
function turn(i: number): Message[] {
  const run_id = newId();
  const id = newId();
  const of = { provider_id: "anthropic", model_id: "claude-sonnet-4-6", run_id };
  const usage = { input_tokens: 1000 + i, output_tokens: 120, cache_read_tokens: 900, cache_write_tokens: 50 };
  const thinking = { type: "thinking", thinking: `Look at file ${i} first. `.repeat(8) } as const;
  const call = {
    type: "tool_call",
    id,
    name: "read_file",
    arguments: { path: `src/file-${i}.ts`, from: 1, to: 40 },
  } as const;
  return [
    userMessage(`What does file ${i} do? `.repeat(4), { run_id }),
    assistantMessage([{ ...thinking, provider_options: { signature: "c2ln".repeat(20) } }, call], {
      ...of,
      usage,
      stop_reason: "tool_use",
    }),
    toolResultMessage(call, lines.repeat(12), { run_id }),
    assistantMessage(`It gives line ${i} of a text. `.repeat(8), { ...of, usage, stop_reason: "stop" }),
  ];
}

const threads: Record<string, Message[]> = {
  agent: Array.from({ length: MESSAGES / 4 }, (_, i) => turn(i)).flat(),
  short: Array.from({ length: MESSAGES }, (_, i) => messageOf(500, i)),
};
const path = join(dir, "load.db");
const store = await SqliteCheckpointer.open(path);
for (const [threadId, messages] of Object.entries(threads)) await store.append(threadId, messages);

const db = new DatabaseSync(path);
const select = db.prepare("SELECT message_json FROM messages WHERE thread_id = ? ORDER BY id");
const bareLoad = (threadId: string) =>
  select.all(threadId).map((row) => JSON.parse(String(row.message_json)) as unknown);

/** By turns, and each first as often as second: what one leaves to the garbage collector falls on the other. */
async function compare(threadId: string) {
  return await repeat(async (repetition) => {
    const sums = { ours: 0, bare: 0 };
    const measure = {
      ours: async () => {
        sums.ours += await time(() => store.load(threadId));
      },
      bare: async () => {
        sums.bare += await time(() => bareLoad(threadId));
      },
    };
    for (let i = 0; i < 4; i++) {
      const oursFirst = (i + repetition) % 2 === 0;
      globalThis.gc?.();
      await (oursFirst ? measure.ours() : measure.bare());
      globalThis.gc?.();
      await (oursFirst ? measure.bare() : measure.ours());
    }
    return { ours: sums.ours / 4, bare: sums.bare / 4 };
  });
}

const agent = await compare("agent");
const short = await compare("short");
await store.close();
db.close();

report([
  { what: "load of 10,000 messages of an agent", unit: "ms", values: agent.ours },
  { what: "bare SELECT + JSON.parse of them", unit: "ms", values: agent.bare },
  { what: "load / bare", unit: "×", values: ratios(agent.ours, agent.bare), target: { most: 1.5 } },
  {
    what: "load / bare, 10,000 user messages of 500 bytes",
    unit: "×",
    values: ratios(short.ours, short.bare),
    target: { most: 1.5 },
  },
]);
