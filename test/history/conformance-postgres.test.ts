/** The Postgres engine of the memory history under its conformance suite, on tables that each case leaves empty. */
import { afterAll, describe, test } from "vitest";
import { historyCases, type MakeHistory } from "../../src/conformance/history.ts";
import { historySchemaSql, PostgresMemoryHistory } from "../../src/history/postgres/history.ts";
import { makeDatabase, sql } from "../support/postgres.ts";

const { url, drop } = await makeDatabase({ empty: true });
afterAll(drop);
await sql(url, historySchemaSql());

const make: MakeHistory = async () => ({
  history: await PostgresMemoryHistory.open(url),
  reopen: () => PostgresMemoryHistory.open(url),
  dispose: async () => {
    await sql(url, "TRUNCATE everthread_history, everthread_history_messages RESTART IDENTITY");
  },
});

// It can do all that a case may need, so none is skipped.
describe("conformance of the history in postgres", () => {
  for (const historyCase of historyCases) test(historyCase.name, () => historyCase.run(make), 20_000);
});
