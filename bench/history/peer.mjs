// Mem0's TypeScript store under the measure: node peer.mjs PACKAGES FILE LARGE. Does what each line of stdin names, and prints how
// many milliseconds it took.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ADDS, BATCH, MEMORIES, SAVES, SCANS, VALUE } from "./work.ts";

const [, , packages, file, large] = process.argv;
const { HistoryManagerFactory } = createRequire(join(packages, "package.json"))("mem0ai/oss");
const open = (historyDbPath) =>
  HistoryManagerFactory.create("sqlite", { provider: "sqlite", config: { historyDbPath } });
const manager = open(file);
const million = open(large);
const createdAt = "2026-05-07T10:00:00.000Z";
const said = [
  { role: "user", content: VALUE },
  { role: "assistant", content: VALUE },
];
const records = (start) =>
  Array.from({ length: BATCH }, (_, i) => ({
    memoryId: `memory-${start + i}`,
    previousValue: null,
    newValue: VALUE,
    action: "ADD",
    createdAt,
  }));
let number = 0;

const work = {
  async add() {
    for (let n = 0; n < ADDS; n++) await manager.addHistory(`memory-${number++}`, null, VALUE, "ADD", createdAt);
  },
  async batch() {
    number += BATCH;
    await manager.batchAddHistory(records(number));
  },
  async save() {
    for (let n = 0; n < SAVES; n++) await manager.saveMessages(said, "user_id=ada");
  },
  async get() {
    for (let n = 0; n < SCANS; n++) await million.getHistory(`memory-${(number++ * 7) % MEMORIES}`);
  },
};

for await (const name of createInterface({ input: process.stdin })) {
  const start = performance.now();
  await work[name]();
  console.log(performance.now() - start);
}
