// A child among many: argv database, name, count. Opens the store, appends `count` messages to thread "t", one by one.
import { userMessage } from "everthread";
import { SqliteCheckpointer } from "everthread/sqlite";

const [, , database, name, count] = process.argv;
const checkpointer = await SqliteCheckpointer.open(database);
for (let i = 0; i < Number(count); i++) await checkpointer.append("t", [userMessage(`${name} ${i}`)]);
await checkpointer.close();
