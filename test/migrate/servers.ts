/** Both kinds of server as the tests of migrations need them: a database, what is in it, and how it was in version 1. */
import { readFile } from "node:fs/promises";
import { onTestFinished } from "vitest";
import * as mysql from "../../src/checkpoint/mysql/checkpointer.ts";
import * as postgres from "../../src/checkpoint/postgres/checkpointer.ts";
import { catalogOf as mysqlCatalog } from "../mysql/catalog.ts";
import { catalogOf as postgresCatalog } from "../support/catalog.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../support/mysql.ts";
import { makeDatabase, sql } from "../support/postgres.ts";

export interface Database {
  url: string;
  /** Runs statements as the administrator, and gives the rows of the last. */
  run(text: string): Promise<Record<string, unknown>[]>;
  /** What the server's own catalogue says, in sorted lines. */
  catalog(): Promise<string[]>;
}

export interface Server {
  name: string;
  label: string;
  missing: boolean;
  schemaSql(): string;
  /** The tables that CubeLoop knows, without those of archives. */
  sharedSql(): string;
  /** Makes the tables as version 1 had them. */
  version1: string;
  /** Makes an empty database, dropped when the test is over. */
  database(whenFinished?: typeof onTestFinished): Promise<Database>;
  /** What the catalogue is to be. */
  expected(): Promise<string[]>;
}

const linesOf = async (file: string) =>
  (await readFile(new URL(file, import.meta.url), "utf8")).trimEnd().split("\n").sort();
/** A column that an upgrade has added is the last of its table. */
const withoutPlaces = (lines: string[]) => lines.map((line) => line.replace(/: \d\d /, ": ")).sort();

export const servers: Server[] = [
  {
    name: "postgres",
    label: "Postgres",
    missing: false,
    sharedSql: () => postgres.schemaSql(),
    schemaSql: () => postgres.schemaSql() + postgres.archiveSchemaSql(),
    version1: `${postgres.schemaSql()}
      DROP TABLE cubepi_hitl_answers, cubepi_runs; ALTER TABLE cubepi_messages DROP COLUMN run_id;
      ALTER TABLE cubepi_threads DROP COLUMN run_id, DROP COLUMN pending_request;
      UPDATE cubepi_schema_version SET version = 1;`,
    async database(whenFinished = onTestFinished) {
      const { url, drop } = await makeDatabase({ empty: true });
      whenFinished(drop);
      return { url, run: (text) => sql(url, text), catalog: async () => (await postgresCatalog(url)).sort() };
    },
    async expected() {
      const own = (await linesOf("../postgres/archives.txt")).filter((line) => !/archive_sources|to_index/.test(line));
      return [...(await linesOf("../postgres/schema.txt")), ...own].sort();
    },
  },
  {
    name: "mysql",
    label: `MySQL (${mysqlLabel})`,
    missing: !hasMysql,
    sharedSql: () => mysql.schemaSql(),
    schemaSql: () => mysql.schemaSql() + mysql.archiveSchemaSql(),
    version1: `${mysql.schemaSql()}
DROP TABLE cubepi_hitl_answers;
DROP TABLE cubepi_runs;
ALTER TABLE cubepi_messages DROP INDEX ix_cubepi_messages_thread_run, DROP COLUMN run_id;
ALTER TABLE cubepi_threads DROP COLUMN run_id, DROP COLUMN pending_request;
UPDATE cubepi_schema_version SET version = 1;
`,
    async database(whenFinished = onTestFinished) {
      const made = await testDatabase({ tables: false });
      whenFinished(() => made[Symbol.asyncDispose]());
      return {
        url: made.url,
        async run(text) {
          let rows: Record<string, unknown>[] = [];
          for (const statement of text.split(/;\n/)) if (statement.trim() !== "") rows = await made.sql(statement);
          return rows;
        },
        catalog: async () => withoutPlaces(await mysqlCatalog(made)),
      };
    },
    expected: async () =>
      withoutPlaces([...(await linesOf("../mysql/schema.txt")), ...(await linesOf("../mysql/archives.txt"))]),
  },
];
