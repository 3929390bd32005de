/** A child that opens a store of version 1 and tells how far its index has come. argv: database, kill at the n-th telling (0: never) */
import { writeSync } from "node:fs";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";

const [, , database = "", kill = "0"] = process.argv;
let told = 0;
const store = await SqliteCheckpointer.open(database, {
  onUpgrade(done, total) {
    writeSync(1, `${done} of ${total}\n`);
    if (++told === Number(kill)) process.kill(process.pid, "SIGKILL");
  },
});
await store.close();
