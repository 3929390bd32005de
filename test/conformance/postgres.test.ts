/** The Postgres engine under the conformance suite, on databases that each case leaves empty: search scans in one, and has an index in the other. */
import { afterAll } from "vitest";
import { migrate, PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { makeDatabase, plantRow, sql } from "../support/postgres.ts";
import { testConformance } from "./suite.ts";

const { url, drop } = await makeDatabase();
afterAll(drop);
const withIndex = await makeDatabase();
afterAll(withIndex.drop);
await sql(withIndex.url, "CREATE EXTENSION pg_trgm");
await migrate(withIndex.url);

for (const [name, database] of Object.entries({ postgres: url, "postgres with pg_trgm": withIndex.url })) {
  await testConformance(name, async () => ({
    checkpointer: await PostgresCheckpointer.open(database),
    reopen: () => PostgresCheckpointer.open(database),
    plantRow: (threadId, messageJson) => plantRow(database, threadId, messageJson),
    dispose: async () => {
      await sql(database, "DELETE FROM cubepi_threads");
    },
  }));
}
