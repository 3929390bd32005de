/**
 * A child that opens a history: argv path [kill]. With `kill` it kills itself before the n-th statement that the migration
 * runs, counted from 1, or while the transaction commits. Prints what it migrated, as JSON.
 */
import { DatabaseSync } from "node:sqlite";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";

const [, , path = "", kill] = process.argv;
if (kill !== undefined) {
  let statements = 0;
  const real = DatabaseSync.prototype.exec;
  DatabaseSync.prototype.exec = function exec(this: DatabaseSync, sql: string): void {
    // From BEGIN IMMEDIATE on everything belongs to the migration.
    if (statements > 0 || sql.startsWith("BEGIN IMMEDIATE")) statements++;
    if (statements === Number(kill)) process.kill(process.pid, "SIGKILL");
    real.call(this, sql);
  };
}
const history = await SqliteMemoryHistory.open(path);
console.log(JSON.stringify(history.migration ?? null));
await history.close();
