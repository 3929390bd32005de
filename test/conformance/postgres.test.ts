/** The Postgres engine under the conformance suite, on a database that each case leaves empty. */
import { afterAll } from "vitest";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { makeDatabase, plantRow, sql } from "../support/postgres.ts";
import { testConformance } from "./suite.ts";

const { url, drop } = await makeDatabase();
afterAll(drop);

await testConformance("postgres", async () => ({
  checkpointer: await PostgresCheckpointer.open(url),
  reopen: () => PostgresCheckpointer.open(url),
  plantRow: (threadId, messageJson) => plantRow(url, threadId, messageJson),
  dispose: async () => {
    await sql(url, "DELETE FROM cubepi_threads");
  },
}));
