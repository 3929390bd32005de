/**
 * `npm run soak -- --rounds 1000`: kills writers on every backend so many times, and says what came of it. It exits with 1 at
 * the first violation, whose store and script it keeps.
 *
 * --rounds N   kills of each backend (Default: 100)
 * --seed N     begins the random numbers (Default: another each time); when a process is killed is never the same twice
 * --jobs N     stories that run side by side (Default: 2)
 * --only TEXT  backends whose name holds this (Default: all)
 * --power N    recorded writers of each local store from which the power is taken after every change (Default: none)
 */
import { parseArgs } from "node:util";
import setupMysql from "../../setup/mysql.ts";
import setupPostgres from "../../setup/postgres.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../../support/mysql.ts";
import { makeDatabase, sql } from "../../support/postgres.ts";
import { type Backend, localBackends, mysqlBackend, postgresBackend } from "./backends.ts";
import { Violation } from "./observe.ts";
import { losePower, powerStores } from "./power.ts";
import { Random } from "./random.ts";
import { SoakFailure, type SoakTotals, soak } from "./soak.ts";
import { noStrace } from "./trace.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "100" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
    jobs: { type: "string", default: "2" },
    only: { type: "string", default: "" },
    power: { type: "string", default: "0" },
  },
});
const [rounds, seed, jobs] = [values.rounds, values.seed, values.jobs].map(Number) as [number, number, number];

const backends: Backend[] = [...localBackends, postgresBackend(makeDatabase, sql)];
if (hasMysql) backends.push(mysqlBackend(testDatabase));
else console.log(`mysql: ${mysqlLabel}`);

const teardown = [await setupPostgres(), setupMysql()];
let exitCode = 0;
const table: (SoakTotals & { backend: string; seconds: number })[] = [];
console.log(`seed ${seed}`);
try {
  for (const backend of rounds > 0 ? backends.filter(({ name }) => name.includes(values.only)) : []) {
    const start = performance.now();
    const seconds = () => Math.round((performance.now() - start) / 1000);
    const totals = await soak(backend, { rounds, seed, jobs, onRound: (sofar) => showProgress(backend.name, sofar) });
    table.push({ backend: backend.name, ...totals, seconds: seconds() });
  }
  await takePower(Number(values.power));
} catch (error) {
  if (!(error instanceof SoakFailure || error instanceof Violation)) throw error;
  console.error(error.message);
  exitCode = 1;
} finally {
  for (const end of teardown) await end();
}
if (table.length > 0) console.table(table);
// What starts Postgres for the tests ends the process itself, and always well.
process.exit(exitCode);

async function takePower(recordings: number): Promise<void> {
  if (recordings > 0 && noStrace) throw new Error(`There is no loss of power: ${noStrace}.`);
  const random = new Random(seed);
  for (const { name, at } of recordings > 0 ? powerStores.filter((store) => store.name.includes(values.only)) : []) {
    const sum = { states: 0, acknowledged: 0, changes: 0 };
    for (let i = 0; i < recordings; i++) {
      const report = await losePower({ at, seed: random.seed(), operations: 25, every: 1 });
      for (const key of ["states", "acknowledged", "changes"] as const) sum[key] += report[key];
    }
    console.log(`${name}: ${recordings} recordings, ${sum.changes} changes, ${sum.states} states of the disk opened`);
  }
}

function showProgress(name: string, { rounds: done, acknowledged }: SoakTotals): void {
  const line = `${name}: ${done} of ${rounds} rounds, ${acknowledged} acknowledged`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}${done === rounds ? "\n" : ""}`);
  else if (done % 100 === 0 || done === rounds) console.log(line);
}
