/** A child that appends to one thread until it is killed: argv database, journal mode. Each acknowledgement is a line. */
import { writeSync } from "node:fs";
import { SqliteCheckpointer, type SqliteOptions } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";

const [, , database = "", journalMode] = process.argv;
const checkpointer = await SqliteCheckpointer.open(database, {
  journalMode: journalMode as SqliteOptions["journalMode"],
});
for (let i = 0; ; i++) {
  await checkpointer.append("t", [userMessage(`message ${i}`)]);
  writeSync(1, `${i}\n`);
}
