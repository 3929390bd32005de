/** A child that logs changes and fills one window until it has written `count` of each: argv URL, name, count. */
import { PostgresMemoryHistory } from "../../src/history/postgres/history.ts";

const [, , url = "", name = "", count = "0"] = process.argv;
const history = await PostgresMemoryHistory.open(url, { maxPoolSize: 2 });
for (let i = 0; i < Number(count); i++) {
  await Promise.all([
    history.add({ memory_id: "m", event: "ADD", new_memory: `${name} ${i}` }),
    history.saveMessages("shared", [{ role: "user", content: `${name} ${i}` }], { keep: 7 }),
  ]);
}
await history.close();
