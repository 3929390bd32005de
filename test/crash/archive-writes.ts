/**
 * A child that compacts, prunes or upgrades a file and kills itself before the n-th statement that writes, or never (0). It
 * says how many there were.
 *
 * argv: "compact" | "prune" | "upgrade", database, n
 */
import { DatabaseSync, StatementSync } from "node:sqlite";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";

const [, , action = "", database = "", n = "0"] = process.argv;
let writes = 0;
let counting = action === "upgrade";
const count = (): void => {
  if (counting && ++writes === Number(n)) process.kill(process.pid, "SIGKILL");
};
const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  count();
  exec.call(this, sql);
};
const { run } = StatementSync.prototype;
StatementSync.prototype.run = function (this: StatementSync, ...parameters: Parameters<typeof run>) {
  count();
  return run.apply(this, parameters);
} as typeof run;

const store = await SqliteCheckpointer.open(database);
counting = true;
if (action === "compact") await store.archives.compact("t", { upTo: 3, summary: "the first three" });
if (action === "prune") await store.archives.prune("t", { keep: 1 });
counting = false;
await store.close();
console.log(writes);
