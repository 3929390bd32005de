/** Opening: what is verified, how each thing that is wrong is said, and that nothing is created. */
import { createServer } from "node:net";
import { inspect } from "node:util";
import pg from "pg";
import { afterAll, describe, expect, test } from "vitest";
import { PostgresCheckpointer, schemaSql, writeSchemaVersionSql } from "../../src/checkpoint/postgres/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { databaseUrl, makeDatabase, sql } from "../support/postgres.ts";

const whole = await makeDatabase();
const scratch = await makeDatabase({ empty: true });
afterAll(() => Promise.all([whole.drop(), scratch.drop()]));

/** Opens, which fails; gives the error, in which no secret may be. */
async function refused(...args: Parameters<typeof PostgresCheckpointer.open>): Promise<Error & { code?: string }> {
  const error: unknown = await PostgresCheckpointer.open(...args).then(
    (store) => store.close(),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error("It was opened.");
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("secret");
  return error;
}

/** The scratch database as it is after these statements, in a schema that is begun anew. */
async function having(statements: string): Promise<void> {
  await sql(scratch.url, `DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public; ${statements}`);
}

const tables = () =>
  sql(
    scratch.url,
    "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public'",
  );

describe("the tables", () => {
  test("none at all: SchemaUninitializedError, and none is created", async () => {
    await having("");
    const error = await refused(scratch.url);
    expect(error).toMatchObject({ code: "schema_uninitialized", name: "SchemaUninitializedError" });
    expect(error.message).toContain("schemaSql()");
    expect(await tables()).toEqual([]);
  });

  test("half of them: the missing ones are named", async () => {
    await having(`${schemaSql()}; DROP TABLE cubepi_hitl_answers; DROP TABLE cubepi_runs`);
    const error = await refused(scratch.url);
    expect(error.code).toBe("schema_uninitialized");
    expect(error.message).toContain("cubepi_runs, cubepi_hitl_answers");
  });

  test("an older or newer version: SchemaMismatchError, whose hint names the step", async () => {
    await having(`${schemaSql()}; UPDATE cubepi_schema_version SET version = 3`);
    const older = await refused(scratch.url);
    expect(older).toMatchObject({ code: "schema_mismatch", expected: 5, actual: 3 });
    expect((older as unknown as { hint: string }).hint).toContain("upgradeSql(3, 5)");
    await sql(scratch.url, "UPDATE cubepi_schema_version SET version = 6");
    expect(await refused(scratch.url)).toMatchObject({ code: "schema_mismatch", expected: 5, actual: 6 });
  });

  test("no version, or an empty one", async () => {
    await having(`${schemaSql()}; DELETE FROM cubepi_schema_version`);
    expect((await refused(scratch.url)).message).toContain("writeSchemaVersionSql()");
    await sql(scratch.url, "DROP TABLE cubepi_schema_version");
    expect(await refused(scratch.url)).toMatchObject({ code: "schema_mismatch", actual: 0 });
  });

  test("two schemas in one database are two stores; without the option the search_path decides, once", async () => {
    await having(`CREATE SCHEMA my_app; ${schemaSql({ schema: "my_app" })}; ${schemaSql()}`);
    await using app = await PostgresCheckpointer.open(scratch.url, { schema: "my_app" });
    await using plain = await PostgresCheckpointer.open(scratch.url);
    await app.append("t", [userMessage("in the app")]);
    expect(await plain.load("t")).toBeUndefined();
    expect([app.schema, plain.schema]).toEqual(["my_app", "public"]);
    const path = encodeURIComponent("-c search_path=my_app");
    await using found = await PostgresCheckpointer.open(`${scratch.url}?options=${path}`);
    expect((await found.load("t"))?.messages).toHaveLength(1);
    await sql(scratch.url, "DROP SCHEMA my_app CASCADE");
  });

  test("a table prefix of its own", async () => {
    await having(schemaSql({ tablePrefix: "talk_" }));
    expect((await refused(scratch.url)).code).toBe("schema_uninitialized");
    await using store = await PostgresCheckpointer.open(scratch.url, { tablePrefix: "talk_" });
    await store.append("t", [userMessage("hi")]);
    expect((await store.listMessages("t")).items[0]?.rowRef).toBe('talk_messages(thread_id="t", seq=1)');
    expect((await tables()).filter(({ relname }) => !/^(ix_)?talk_/.test(String(relname)))).toEqual([]);
  });

  test("a role that may only read and write rows is enough, whatever its search_path", async () => {
    await having(schemaSql());
    await sql(scratch.url, "DROP ROLE IF EXISTS everthread_test_writer").catch(() => {});
    await sql(
      scratch.url,
      `CREATE ROLE everthread_test_writer LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA public TO everthread_test_writer;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO everthread_test_writer;
      ALTER ROLE everthread_test_writer SET search_path = 'nowhere';
      ALTER ROLE everthread_test_writer SET default_transaction_isolation = 'serializable';
      ALTER ROLE everthread_test_writer SET bytea_output = 'escape';
      ALTER ROLE everthread_test_writer SET timezone = 'Asia/Kathmandu'`,
    );
    const url = new URL(scratch.url);
    url.username = "everthread_test_writer";
    url.password = "secret";
    await using store = await PostgresCheckpointer.open(url.href, { schema: "public" });
    const revision = await store.append("t", [userMessage("hi", { run_id: "r" })]);
    await store.claimRun("t", "r");
    await store.markRunComplete("t", "r");
    await store.fork("t", "fork", { afterRunId: "r" });
    expect((await store.load("t"))?.revision).toBe(revision);
    expect(Math.abs(Date.now() - Number((await store.listMessages("t")).items[0]?.createdAt))).toBeLessThan(60_000);
    expect(await store.deleteThread("t")).toBe(true);
    await store.close();
    await sql(scratch.url, "DROP OWNED BY everthread_test_writer; DROP ROLE everthread_test_writer");
  });

  test("two versions written: the newest counts, and writeSchemaVersionSql leaves one row", async () => {
    await having(`${schemaSql()}; INSERT INTO cubepi_schema_version VALUES (4)`);
    await using store = await PostgresCheckpointer.open(scratch.url);
    await sql(scratch.url, writeSchemaVersionSql() + writeSchemaVersionSql());
    expect(await sql(scratch.url, "SELECT version FROM cubepi_schema_version")).toEqual([{ version: 5 }]);
    expect(store.schema).toBe("public");
  });
});

describe("the server", () => {
  const changed = (change: (url: URL) => void): string => {
    const url = new URL(whole.url);
    change(url);
    return url.href;
  };

  test("a wrong password", async () => {
    const error = await refused(changed((url) => Object.assign(url, { password: "secret-but-wrong" })));
    expect(error).toMatchObject({ code: "store_open_failed" });
    expect(error.message).toMatch(/password authentication failed.*Check the credentials/);
  });

  test("an unknown host, a port where nothing listens, a database that is not there", async () => {
    const host = await refused(changed((url) => Object.assign(url, { hostname: "no-such-host.invalid" })));
    expect(host.message).toMatch(/host name is unknown/);
    const port = await refused(changed((url) => Object.assign(url, { port: "1" })));
    expect(port.message).toMatch(/nothing listens there/);
    const database = await refused(databaseUrl(whole.url, "everthread_no_such_database"));
    expect(database.message).toMatch(/Create the database/);
    for (const error of [host, port, database]) expect(error.code).toBe("store_open_failed");
  });

  test("a server that accepts and says nothing: an error after the stated time", async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { port: number };
    const error = await refused(
      changed((url) => Object.assign(url, { port: String(port) })),
      { connectTimeoutMs: 150 },
    );
    expect(error).toMatchObject({ code: "store_open_failed" });
    expect(error.message).toContain("150 ms");
    silent.close();
  });

  test("what is no URL: said without what it holds", async () => {
    const error = await refused("postgres://user:secret@host:port-is-no-number/db");
    expect(error).toMatchObject({ code: "store_open_failed" });
  });
});

describe("options", () => {
  test.each([
    [{ maxPoolsize: 3 }, /no option maxPoolsize/],
    [{ maxPoolSize: 0 }, /maxPoolSize/],
    [{ minPoolSize: 11 }, /minPoolSize/],
    [{ connectTimeoutMs: -1 }, /connectTimeoutMs/],
    [{ lockTimeoutMs: 1.5 }, /lockTimeoutMs/],
    [{ tablePrefix: 'x"; DROP' }, /tablePrefix/],
    [{ schema: "" }, /schema/],
  ])("%o is refused", async (options, problem) => {
    const error = await refused(whole.url, options as never);
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toMatch(problem);
  });

  test("a configuration, and a pool of the host, which stays open", async () => {
    const { hostname: host, port, username: user, password, pathname } = new URL(whole.url);
    const config = { host, port: Number(port), user, password, database: pathname.slice(1) };
    await using store = await PostgresCheckpointer.open(config, { maxPoolSize: 2 });
    await store.append("config", [userMessage("hi")]);
    const pool = new pg.Pool(config);
    const hosted = await PostgresCheckpointer.open({ pool });
    expect((await hosted.load("config"))?.messages).toHaveLength(1);
    await hosted.close();
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
    await expect(hosted.load("config")).rejects.toMatchObject({ code: "store_closed" });
  });

  test("a pool that pg pipelines by itself is refused, with the reason", async () => {
    const pool = new pg.Pool({ connectionString: whole.url, pipeline: true } as pg.PoolConfig);
    expect((await refused({ pool })).message).toContain("pipeline");
    await pool.end();
  });
});
