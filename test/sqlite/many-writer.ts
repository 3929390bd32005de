/** A child among many: argv database, name, count. Opens the store, appends `count` messages to thread "t", one by one. */
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";

const [, , database = "", name = "", count = "0"] = process.argv;
const checkpointer = await SqliteCheckpointer.open(database);
for (let i = 0; i < Number(count); i++) await checkpointer.append("t", [userMessage(`${name} ${i}`)]);
await checkpointer.close();
