/** A child among many: argv URL, thread, name, count. Appends `count` messages, one by one, whatever others append meanwhile. */
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";

const [, , url = "", thread = "", name = "", count = "0"] = process.argv;
const checkpointer = await MySQLCheckpointer.open(url, { maxPoolSize: 2 });
for (let i = 0; i < Number(count); i++) await checkpointer.append(thread, [userMessage(`${name} ${i}`)]);
await checkpointer.close();
