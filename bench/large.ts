/** Loading a thread of 100 messages out of a file with 1,000,000, against the same thread alone in a file. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { benchDir, messageOf, ratios, repeat, report, time } from "./measure.ts";

const THREADS = 10_000;
const LENGTH = 100;
const LOADS = 100;
const dir = benchDir();

/** The messages of all threads take turns, so that each row of a thread is far from its next. */
async function fill(path: string, threads: number): Promise<void> {
  await (await SqliteCheckpointer.open(path)).close();
  const db = new DatabaseSync(path);
  db.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA cache_size = -500000; BEGIN");
  const insert = db.prepare("INSERT INTO messages (thread_id, message_json) VALUES (?, ?)");
  for (let i = 0; i < LENGTH; i++) {
    const json = JSON.stringify(messageOf(250, i));
    for (let thread = 0; thread < threads; thread++) insert.run(`thread-${thread}`, json);
  }
  db.exec("COMMIT; PRAGMA journal_mode = DELETE");
  db.close();
}

const fillTime = await time(() => fill(join(dir, "large.db"), THREADS));
await fill(join(dir, "small.db"), 1);
const large = await SqliteCheckpointer.open(join(dir, "large.db"));
const small = await SqliteCheckpointer.open(join(dir, "small.db"));

let next = 0;
const { inLarge, alone, anyInLarge } = await repeat(async () => {
  const sums = { inLarge: 0, alone: 0, anyInLarge: 0 };
  for (let i = 0; i < LOADS; i++) {
    sums.inLarge += await time(() => large.load("thread-0"));
    sums.alone += await time(() => small.load("thread-0"));
  }
  // Threads that were not read before by this program: their pages come from the operating system's cache.
  for (let i = 0; i < LOADS; i++) {
    next = (next + 997) % THREADS;
    sums.anyInLarge += await time(() => large.load(`thread-${next}`));
  }
  return sums;
});
await large.close();
await small.close();

const each = (times: number[]) => times.map((ms) => (ms / LOADS) * 1000);
report([
  { what: "filling the file of 1,000,000 messages", unit: "ms", values: [fillTime] },
  { what: "load of 100 messages out of 1,000,000", unit: "µs", values: each(inLarge) },
  { what: "load of the same thread alone in a file", unit: "µs", values: each(alone) },
  { what: "out of 1,000,000 / alone", unit: "×", values: ratios(inLarge, alone), target: { most: 2 } },
  { what: "another thread each time, out of 1,000,000 / alone", unit: "×", values: ratios(anyInLarge, alone) },
]);
