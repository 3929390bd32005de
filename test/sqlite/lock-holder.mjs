// A child that holds the write lock: argv database, milliseconds. Says "held" once it has it.
import { DatabaseSync } from "node:sqlite";

const [, , database, ms] = process.argv;
const db = new DatabaseSync(database);
db.exec("BEGIN IMMEDIATE");
console.log("held");
setTimeout(() => {
  db.exec("COMMIT");
  db.close();
}, Number(ms));
