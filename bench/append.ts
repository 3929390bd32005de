/** One durable append against a bare prepared INSERT in a transaction of its own: same file layout, same settings, by turns. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { benchDir, messageOf, ratios, repeat, report, time } from "./measure.ts";

const APPENDS = 300;
const dir = benchDir();

// Everthread makes both files, so that the bare INSERT fills the same tables and indexes.
await (await SqliteCheckpointer.open(join(dir, "bare.db"))).close();
const db = new DatabaseSync(join(dir, "bare.db"));
// What Everthread's durability "full" sets.
db.exec("PRAGMA synchronous = EXTRA");
const insert = db.prepare("INSERT INTO messages (thread_id, message_json, run_id) VALUES (?, ?, ?)");
const store = await SqliteCheckpointer.open(join(dir, "everthread.db"));

let number = 0;
const { ours, bare } = await repeat(async () => {
  const sums = { ours: 0, bare: 0 };
  for (let i = 0; i < APPENDS; i++) {
    const message = messageOf(500, number++);
    const json = JSON.stringify(message);
    sums.bare += await time(() => insert.run("thread", json, null));
    sums.ours += await time(() => store.append("thread", [message]));
  }
  return sums;
});
await store.close();
db.close();

report([
  { what: "one durable append", unit: "µs", values: ours.map((ms) => (ms / APPENDS) * 1000) },
  { what: "one bare INSERT, same settings", unit: "µs", values: bare.map((ms) => (ms / APPENDS) * 1000) },
  { what: "append / bare INSERT", unit: "×", values: ratios(ours, bare), target: { most: 1.2 } },
]);
