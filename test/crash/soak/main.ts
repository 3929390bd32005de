/**
 * `npm run soak -- --rounds 1000`: kills writers on every backend so many times, and says what came of it. It exits with 1 at
 * the first violation, whose store and script it keeps.
 *
 * --rounds N   kills of each backend (Default: 100)
 * --seed N     begins the random numbers (Default: another each time); when a process is killed is never the same twice
 * --jobs N     stories that run side by side (Default: 2)
 * --only TEXT  backends whose name holds this (Default: all)
 */
import { parseArgs } from "node:util";
import setupMysql from "../../setup/mysql.ts";
import setupPostgres from "../../setup/postgres.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../../support/mysql.ts";
import { makeDatabase, sql } from "../../support/postgres.ts";
import { type Backend, localBackends, mysqlBackend, postgresBackend } from "./backends.ts";
import { SoakFailure, type SoakTotals, soak } from "./soak.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "100" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
    jobs: { type: "string", default: "2" },
    only: { type: "string", default: "" },
  },
});
const [rounds, seed, jobs] = [values.rounds, values.seed, values.jobs].map(Number) as [number, number, number];

const backends: Backend[] = [...localBackends, postgresBackend(makeDatabase, sql)];
if (hasMysql) backends.push(mysqlBackend(testDatabase));
else console.log(`mysql: ${mysqlLabel}`);

const teardown = [await setupPostgres(), setupMysql()];
const table: (SoakTotals & { backend: string; seconds: number })[] = [];
console.log(`seed ${seed}`);
try {
  for (const backend of backends.filter(({ name }) => name.includes(values.only))) {
    const start = performance.now();
    const seconds = () => Math.round((performance.now() - start) / 1000);
    const totals = await soak(backend, { rounds, seed, jobs, onRound: (sofar) => showProgress(backend.name, sofar) });
    table.push({ backend: backend.name, ...totals, seconds: seconds() });
  }
} catch (error) {
  if (!(error instanceof SoakFailure)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  for (const end of teardown) await end();
}
console.table(table);

function showProgress(name: string, { rounds: done, acknowledged }: SoakTotals): void {
  const line = `${name}: ${done} of ${rounds} rounds, ${acknowledged} acknowledged`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}${done === rounds ? "\n" : ""}`);
  else if (done % 100 === 0 || done === rounds) console.log(line);
}
