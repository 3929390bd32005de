// Writes the golden file of Mem0's TypeScript package: node scripts/golden/mem0_npm.mjs DIRECTORY [TARGET]
// DIRECTORY has mem0ai and better-sqlite3 in its node_modules.
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [, , directory = ".", target = "test/golden/mem0"] = process.argv;
const { HistoryManagerFactory } = createRequire(resolve(directory, "package.json"))("mem0ai/oss");
const file = resolve(target, "mem0-npm.sqlite3");
rmSync(file, { force: true });

const manager = HistoryManagerFactory.create("sqlite", { provider: "sqlite", config: { historyDbPath: file } });
const times = ["2025-06-15T15:06:40.123Z", "2025-06-15T15:06:41.000Z"];
await manager.addHistory("m-1", null, "Likes tea", "ADD", times[0]);
await manager.addHistory("m-1", "Likes tea", "Likes coffee 🧵", "UPDATE", times[0], times[1]);
await manager.addHistory("m-1", "Likes coffee 🧵", null, "DELETE", undefined, undefined, 1);
await manager.batchAddHistory(
  Array.from({ length: 20 }, (_, i) => ({
    memoryId: "batch",
    previousValue: null,
    newValue: `value ${i}`,
    action: "ADD",
  })),
);
const histories = { "m-1": await manager.getHistory("m-1"), batch: await manager.getHistory("batch") };
const said = Array.from({ length: 7 }, (_, i) => ({
  role: "user",
  content: `message ${i}`,
  name: i === 6 ? "ada" : undefined,
}));
await manager.saveMessages(said, "userId=ada");
// Their times are of the moment, so what is compared leaves them out.
const windows = { "userId=ada": (await manager.getLastMessages("userId=ada")).map(({ createdAt, ...rest }) => rest) };
manager.close();
writeFileSync(file.replace(/sqlite3$/, "json"), `${JSON.stringify({ histories, windows }, null, 1)}\n`);
