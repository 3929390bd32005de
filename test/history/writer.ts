/** A child that logs changes until it is killed, or `count` of them: argv path, name, count. Each acknowledgement is a line. */
import { writeSync } from "node:fs";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";

const [, , path = "", name = "", count = "Infinity"] = process.argv;
const history = await SqliteMemoryHistory.open(path, { busyTimeoutMs: 30_000 });
for (let i = 0; i < Number(count); i++) {
  const value = `${name} ${i}`;
  await Promise.all([
    history.addBatch([
      { memory_id: "m", event: "ADD", new_memory: value },
      { memory_id: "m", event: "UPDATE", old_memory: value, new_memory: value },
    ]),
    history.saveMessages(name, [{ role: "user", content: value }]),
  ]);
  writeSync(1, `${i}\n`);
}
await history.close();
