/**
 * A child that does one action to a file's archives and kills itself before the n-th statement that writes, or never (0). It
 * says how many there were.
 *
 * argv: action, database, n
 */
import { DatabaseSync, StatementSync } from "node:sqlite";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { ACTIONS } from "./archive-actions.ts";

const [, , action = "", database = "", n = "0"] = process.argv;
const act = ACTIONS[action]?.act;
let writes = 0;
let counting = !act;
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
await act?.(store);
counting = false;
await store.close();
console.log(writes);
