// A child that appends to the session's thread of a JSON store: argv state, memory, its name, how many messages. Each
// acknowledgement is a line.
import { writeSync } from "node:fs";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";

const [, , state = "", memory = "", name = "", count = "0"] = process.argv;
const store = await JsonCheckpointer.open({ state, memory, busyTimeoutMs: 20_000 });
for (let i = 0; i < Number(count); i++) {
  await store.append("session", [userMessage(`${name}: ${i}`)]);
  writeSync(1, `${i}\n`);
}
await store.close();
