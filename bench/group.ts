/** 64 agents of one process that append at once to one file, against one transaction an append. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { benchDir, messageOf, ratios, repeat, report, time } from "./measure.ts";

const AGENTS = 64;
const TURNS = 10;
const dir = benchDir();

await (await SqliteCheckpointer.open(join(dir, "bare.db"))).close();
const db = new DatabaseSync(join(dir, "bare.db"));
db.exec("PRAGMA synchronous = EXTRA");
const insert = db.prepare("INSERT INTO messages (thread_id, message_json, run_id) VALUES (?, ?, ?)");
const store = await SqliteCheckpointer.open(join(dir, "everthread.db"));
const message = messageOf(500, 1);
const json = JSON.stringify(message);

const revisions = new Map<string, number>();

/** An agent's writes: each waits for the one before to be durable, and expects the thread as it left it. */
async function agent(threadId: string): Promise<void> {
  let expectedRevision = revisions.get(threadId) ?? 0;
  for (let i = 0; i < TURNS; i++) expectedRevision = await store.append(threadId, [message], { expectedRevision });
  revisions.set(threadId, expectedRevision);
}

const each = (run: (threadId: string) => unknown) => Array.from({ length: AGENTS }, (_, i) => run(`thread-${i}`));
const { together, bare, oneByOne } = await repeat(async () => ({
  together: await time(() => Promise.all(each(agent))),
  bare: await time(() => {
    for (let i = 0; i < TURNS; i++) each((threadId) => insert.run(threadId, json, null));
  }),
  oneByOne: await time(async () => {
    for (let i = 0; i < AGENTS; i++) await agent(`thread-${i}`);
  }),
}));
await store.close();
db.close();

const perSecond = (times: number[]) => times.map((ms) => (AGENTS * TURNS * 1000) / ms);
report([
  { what: "64 agents at once", unit: "appends/s", values: perSecond(together) },
  { what: "one agent after another", unit: "appends/s", values: perSecond(oneByOne) },
  { what: "bare INSERTs, one transaction each", unit: "appends/s", values: perSecond(bare) },
  { what: "64 at once / bare INSERTs", unit: "×", values: ratios(bare, together), target: { least: 15 } },
]);
