/** The tables: the committed description, what our SQL makes, what CubeLoop makes, and every step from version 1. */
import { readFile, writeFile } from "node:fs/promises";
import pg from "pg";
import { afterAll, describe, expect, test } from "vitest";
import {
  archiveSchemaSql,
  createMessagePartitionsSql,
  createRunsPartitionsSql,
  migrate,
  PostgresCheckpointer,
  planMigration,
  schemaSql,
  upgradeSql,
  writeArchiveVersionSql,
  writeSchemaVersionSql,
} from "../../src/checkpoint/postgres/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { catalogOf } from "../support/catalog.ts";
import { makeDatabase, plantRow, sql } from "../support/postgres.ts";
import { pythonWith, runPython } from "../support/python.ts";

const asyncpg = pythonWith("asyncpg");
const DUMP = new URL("./schema.txt", import.meta.url);
const ARCHIVE_DUMP = new URL("./archives.txt", import.meta.url);
const { url, drop } = await makeDatabase({ empty: true });
afterAll(drop);

const fresh = () => sql(url, "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public");
const linesOf = async (file: URL) => (await readFile(file, "utf8")).trimEnd().split("\n");
/** The committed description of CubeLoop's tables. With EVERTHREAD_WRITE_DUMP=1 it is written anew. */
const expected = () => linesOf(DUMP);
/** The same of all tables. Those of search's index are in a database that has the extension for it. */
async function whole({ index = false } = {}): Promise<string[]> {
  const archives = (await linesOf(ARCHIVE_DUMP)).filter((line) => index || !/archive_sources|to_index/.test(line));
  return [...(await expected()), ...archives].sort();
}

/** The tables as version 1 had them: messages and threads, before requests, runs and answers. */
const VERSION_1 = `${schemaSql()}
  DROP TABLE cubepi_hitl_answers, cubepi_runs; ALTER TABLE cubepi_messages DROP COLUMN run_id;
  ALTER TABLE cubepi_threads DROP COLUMN run_id, DROP COLUMN pending_request;
  UPDATE cubepi_schema_version SET version = 1`;
/** Columns in the order of their names: an upgraded table has new ones at its end. */
const version = async () => (await sql(url, "SELECT version FROM cubepi_schema_version")).map((row) => row.version);

describe("schemaSql", () => {
  test("makes the committed schema", async () => {
    await fresh();
    await sql(url, schemaSql());
    const made = await catalogOf(url);
    if (process.env.EVERTHREAD_WRITE_DUMP) await writeFile(DUMP, `${made.join("\n")}\n`);
    expect(made).toEqual(await expected());
    expect(await version()).toEqual([5]);
  });

  test("in another schema, with another prefix, it is the same but for the names", async () => {
    await sql(
      url,
      `DROP SCHEMA IF EXISTS app CASCADE; CREATE SCHEMA app; ${schemaSql({ schema: "app", tablePrefix: "talk_" })}`,
    );
    const made = await catalogOf(url, "app");
    const renamed = made.map((line) => line.replaceAll("app.", "public.").replaceAll("talk_", "cubepi_"));
    // What stands in quotes or on the search_path is written with or without its schema.
    const bare = (lines: string[]) => lines.map((line) => line.replaceAll("public.", "")).sort();
    expect(bare(renamed)).toEqual(bare(await expected()));
    await sql(url, "DROP SCHEMA app CASCADE");
  });

  test("tables by a tool of the host, and the helpers for the rest, make the same", async () => {
    await fresh();
    const withoutPartitions = schemaSql()
      .split("\n")
      .filter((line) => !/PARTITION OF|cubepi_schema_version WHERE|INTO cubepi_schema_version/.test(line));
    await sql(url, withoutPartitions.join("\n"));
    await sql(url, createMessagePartitionsSql());
    await sql(url, createRunsPartitionsSql());
    await sql(url, writeSchemaVersionSql());
    expect(await catalogOf(url)).toEqual(await expected());
    await (await PostgresCheckpointer.open(url)).close();
  });

  test("L13 it works inside a transaction of the host's, and is undone with it", async () => {
    await fresh();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("BEGIN");
    await client.query(schemaSql());
    await client.query("ROLLBACK");
    expect(await catalogOf(url)).toEqual([]);
    await client.query("BEGIN");
    await client.query(schemaSql());
    await client.query("COMMIT");
    await client.end();
    expect(await catalogOf(url)).toEqual(await expected());
  });
});

describe("archiveSchemaSql", () => {
  test("makes the committed tables beside the others, with the index of search where that is asked; again is harmless", async () => {
    await fresh();
    await sql(url, schemaSql() + archiveSchemaSql());
    const plain = await catalogOf(url);
    await sql(url, "CREATE SCHEMA extensions; CREATE EXTENSION pg_trgm SCHEMA extensions");
    for (let i = 0; i < 2; i++) await sql(url, archiveSchemaSql({}, { trigram: true, trigramSchema: "extensions" }));
    const made = await catalogOf(url);
    const own = made.filter((line) => line.startsWith("everthread_"));
    if (process.env.EVERTHREAD_WRITE_DUMP) await writeFile(ARCHIVE_DUMP, `${own.join("\n")}\n`);
    expect(plain).toEqual(await whole());
    expect(made).toEqual(await whole({ index: true }));
    await sql(url, "DROP SCHEMA extensions CASCADE");
  });

  test("in another schema, with another prefix, it is the same but for the names", async () => {
    const names = { schema: "app", tablePrefix: "talk_" };
    await sql(
      url,
      `DROP SCHEMA IF EXISTS app CASCADE; CREATE SCHEMA app; ${schemaSql(names)} ${archiveSchemaSql(names)} ${writeArchiveVersionSql(names)}`,
    );
    const made = (await catalogOf(url, "app")).filter((line) => line.startsWith("talk_archive"));
    const bare = (lines: string[]) => lines.map((line) => line.replace(/\b(?:app|public)\./g, "")).sort();
    const renamed = (await whole())
      .filter((line) => line.startsWith("everthread_"))
      .map((line) => line.replaceAll(/everthread_|cubepi_/g, "talk_"));
    expect(bare(made)).toEqual(bare(renamed));
    await (await PostgresCheckpointer.open(url, names)).close();
    await sql(url, "DROP SCHEMA app CASCADE");
  });
});

describe("upgradeSql", () => {
  test.each([1, 2, 3, 4])(
    "from version %i: the tables are those of version 5, and what was stored is there",
    async (from) => {
      await fresh();
      await sql(url, VERSION_1);
      if (from > 1) await sql(url, upgradeSql(1, from));
      expect(await version()).toEqual([from]);
      await sql(url, "INSERT INTO cubepi_threads (thread_id, extra) VALUES ('t', '{\"a\": 1}')");
      const payload = '{"role":"user","content":"from before"}';
      if (from > 3) await plantRow(url, "t", payload);
      await expect(PostgresCheckpointer.open(url)).rejects.toMatchObject({ code: "schema_mismatch", actual: from });
      await sql(url, upgradeSql(from, 5));
      await sql(url, upgradeSql(from, 5));
      expect(await catalogOf(url)).toEqual(await expected());
      expect(await version()).toEqual([5]);
      await using store = await PostgresCheckpointer.open(url);
      const loaded = await store.load("t");
      expect(loaded?.extra).toEqual({ a: 1 });
      expect(loaded?.messages.map(textOf)).toEqual(from > 3 ? ["from before"] : []);
    },
  );

  test("is refused where there is no such step", () => {
    expect(() => upgradeSql(5, 4)).toThrow(/no step back/);
    for (const bad of [0, 6, 1.5, Number.NaN]) expect(() => upgradeSql(bad)).toThrow(/schema version/);
    expect(upgradeSql(5)).toBe(writeSchemaVersionSql());
  });
});

describe("migrate", () => {
  test("C2 L13 ten at once on an empty database: one does it, the others find it done, all are ready", async () => {
    await fresh();
    expect(await planMigration(url)).toMatchObject({ from: 0, to: 5 });
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        await migrate(url);
        await (await PostgresCheckpointer.open(url)).close();
      }),
    );
    expect(await catalogOf(url)).toEqual(await whole());
    expect(await planMigration(url)).toEqual({ from: 5, to: 5, sql: "" });
  });

  test("four at once from an older version", async () => {
    await fresh();
    await sql(url, VERSION_1);
    expect(await planMigration(url)).toMatchObject({ from: 1, to: 5 });
    await Promise.all(Array.from({ length: 4 }, () => migrate(url)));
    expect(await catalogOf(url)).toEqual(await whole());
  });

  test("to tables of CubeLoop it adds those of archives, and the index once the extension is there; ten at once", async () => {
    await fresh();
    await sql(url, schemaSql());
    const planned = await planMigration(url);
    expect(planned).toEqual({ from: 5, to: 5, sql: archiveSchemaSql({ schema: "public" }) });
    const tenAtOnce = () => Promise.all(Array.from({ length: 10 }, () => migrate(url)));
    expect((await tenAtOnce()).filter((done) => done.sql !== "")).toEqual([planned]);
    expect(await catalogOf(url)).toEqual(await whole());
    await sql(url, "CREATE EXTENSION pg_trgm");
    expect((await tenAtOnce()).filter((done) => done.sql !== "")).toHaveLength(1);
    expect((await catalogOf(url)).filter((line) => !line.includes("trgm"))).toEqual(
      (await whole({ index: true })).filter((line) => !line.includes("trgm")),
    );
    expect(await planMigration(url)).toEqual({ from: 5, to: 5, sql: "" });
    await sql(url, "DROP EXTENSION pg_trgm CASCADE");
  });

  test("tables of archives of a newer version are left alone, and archives are not to be had", async () => {
    await sql(url, "UPDATE everthread_archive_version SET version = 2");
    expect(await planMigration(url)).toEqual({ from: 5, to: 5, sql: "" });
    await using store = await PostgresCheckpointer.open(url);
    expect(store.capabilities.archives).toEqual({ reason: expect.stringMatching(/version 2.*Use a newer one/) });
    expect(store.archives).toBeUndefined();
    await sql(url, writeArchiveVersionSql());
  });

  test("tables that are newer, or not whole, are left alone", async () => {
    await sql(url, "UPDATE cubepi_schema_version SET version = 6");
    await expect(migrate(url)).rejects.toMatchObject({ code: "schema_mismatch", actual: 6 });
    await sql(url, "DROP TABLE cubepi_schema_version");
    await expect(migrate(url)).rejects.toMatchObject({ code: "schema_mismatch", actual: 0 });
  });
});

describe.skipIf(!asyncpg.found)(`beside Python (${asyncpg.label})`, () => {
  test("CubeLoop's own metadata and helpers make the same tables, and its steps the same as ours", async () => {
    const ddl = (await runPython("postgres_ddl.py")) as { create: string[]; upgrade: string[] };
    await fresh();
    for (const statement of ddl.create) await sql(url, statement);
    expect(await catalogOf(url)).toEqual(await expected());
    await (await PostgresCheckpointer.open(url)).close();
    await fresh();
    await sql(url, VERSION_1);
    for (const statement of ddl.upgrade) await sql(url, statement);
    expect(await catalogOf(url)).toEqual(await expected());
  });
});
