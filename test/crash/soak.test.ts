/** Kills writers at random moments, on every backend: see soak/story.ts. `npm run soak` does the same for longer. */
import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { hasMysql, mysqlLabel, testDatabase } from "../support/mysql.ts";
import { makeDatabase, sql } from "../support/postgres.ts";
import { type Backend, localBackends, mysqlBackend, postgresBackend } from "./soak/backends.ts";
import { SoakFailure, soak } from "./soak/soak.ts";

const ROUNDS = 20;

async function checkRounds(backend: Backend): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const totals = await soak(backend, { rounds: ROUNDS, seed, jobs: 1 });
  expect(totals.rounds).toBe(ROUNDS);
  // Some come to their end before they are killed. Were it most, little would be tested.
  expect(totals.kills).toBeGreaterThan(ROUNDS / 2);
  expect(totals.acknowledged).toBeGreaterThan(ROUNDS);
}

// The long run has several writers in WAL mode too.
for (const backend of localBackends.filter(({ name }) => name !== "sqlite wal, 3 writers")) {
  test.concurrent(`L25 ${ROUNDS} kills at random moments (${backend.name}): nothing acknowledged is lost or doubled`, async () => {
    await checkRounds(backend);
  }, 300_000);
}

test.concurrent(`L25 ${ROUNDS} kills at random moments (postgres): nothing acknowledged is lost or doubled`, async () => {
  await checkRounds(postgresBackend(makeDatabase, sql));
}, 300_000);

test.skipIf(!hasMysql)(
  `L25 ${ROUNDS} kills at random moments (mysql, ${mysqlLabel}): nothing acknowledged is lost or doubled`,
  async () => {
    await checkRounds(mysqlBackend(testDatabase));
  },
  300_000,
);

test.concurrent("a writer that acknowledges what is not done yet is found out", async () => {
  for (const backend of localBackends.filter(({ name }) => name === "sqlite delete" || name === "json session")) {
    const failure = await soak(backend, { rounds: 200, seed: 1, jobs: 1, lie: true }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SoakFailure);
    if (failure instanceof SoakFailure) rmSync(failure.directory, { recursive: true });
  }
}, 300_000);
