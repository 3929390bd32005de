// A child that appends to one thread until it is killed: argv database, journal mode. Each acknowledgement is a line. It
// runs what is built, since it is started a hundred times.
import { writeSync } from "node:fs";
import { userMessage } from "everthread";
import { SqliteCheckpointer } from "everthread/sqlite";

const [, , database, journalMode] = process.argv;
const checkpointer = await SqliteCheckpointer.open(database, { journalMode });
for (let i = 0; ; i++) {
  await checkpointer.append("t", [userMessage(`message ${i}`)]);
  writeSync(1, `${i}\n`);
}
