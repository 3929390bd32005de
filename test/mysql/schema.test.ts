/** The tables: verified when a store is opened, made by the host's migrations, the same as CubeLoop's. */
import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  archiveSchemaSql,
  createMessagePartitionsSql,
  createRunsPartitionsSql,
  exactIdsSql,
  MySQLCheckpointer,
  migrate,
  planMigration,
  schemaSql,
  upgradeSql,
  writeArchiveVersionSql,
  writeSchemaVersionSql,
} from "../../src/checkpoint/mysql/checkpointer.ts";
import { statementsOf } from "../../src/checkpoint/mysql/migrate.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { hasMysql, mysqlLabel, type TestDatabase, testDatabase } from "../support/mysql.ts";
import { catalogOf } from "./catalog.ts";
import { cubeloopSchema, hasCubeloop } from "./cubeloop.ts";

const GOLDEN = new URL("./schema.txt", import.meta.url);
const ARCHIVES = new URL("./archives.txt", import.meta.url);

/** A database with the tables that CubeLoop knows. */
async function database(options: Parameters<typeof testDatabase>[0] = {}): Promise<TestDatabase> {
  const made = await testDatabase({ tables: "shared", ...options });
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

/** The tables of version 1: no pending request, no runs, no answers. */
const VERSION_1 = `${schemaSql()
  .replace(/ {2}pending_request JSON NULL,\n/, "")
  .replace(/ {2}run_id VARCHAR\(64\) NULL,\n/, "")
  .replace(/ {2}run_id VARCHAR\(255\) NULL,\n/, "")
  .replace(/,\n {2}KEY ix_cubepi_messages_thread_run \(thread_id, run_id\)/, "")
  .split("\n\n")
  .filter((statement) => !/CREATE TABLE IF NOT EXISTS cubepi_(?:runs|hitl_answers)/.test(statement))
  .join("\n\n")}
DELETE FROM cubepi_schema_version;
INSERT INTO cubepi_schema_version (version) VALUES (1);
`;

describe.skipIf(!hasMysql)(`tables of MySQL (${mysqlLabel})`, () => {
  test("the schema is the dumped one", async () => {
    const { lines } = await freshCatalog();
    expect(`${lines.join("\n")}\n`).toBe(await readFile(GOLDEN, "utf8"));
  });

  test("the tables of archives are the dumped ones, beside the others; again is harmless", async () => {
    const made = await database();
    for (let i = 0; i < 2; i++) await made.script(archiveSchemaSql() + writeArchiveVersionSql());
    const own = (await catalogOf(made)).filter((line) => line.startsWith("everthread_"));
    if (process.env.EVERTHREAD_WRITE_DUMP) await writeFile(ARCHIVES, `${own.join("\n")}\n`);
    expect(`${own.join("\n")}\n`).toBe(await readFile(ARCHIVES, "utf8"));
    expect((await catalogOf(made)).filter((line) => !line.startsWith("everthread_"))).toEqual(
      (await freshCatalog()).lines,
    );
  });

  test("to tables of CubeLoop, migrate adds those of archives, also when it was killed after any statement", async () => {
    const statements = statementsOf(archiveSchemaSql());
    const made = await database();
    const { sql } = await planMigration(made.url);
    expect(sql).toBe(archiveSchemaSql());
    for (let done = 0; done < statements.length; done++) {
      const killed = await database();
      for (const statement of statements.slice(0, done)) await killed.sql(statement);
      await using early = await MySQLCheckpointer.open(killed.url);
      // Once the version is there nothing is missing but that it is the only one.
      expect(early.capabilities.archives === true).toBe(done >= 3);
      const all = await Promise.all(Array.from({ length: 3 }, () => migrate(killed.url)));
      expect(all.filter((one) => one.sql !== "")).toHaveLength(done >= 3 ? 0 : 1);
      expect(await catalogOf(killed)).toEqual(await wholeCatalog());
      await using later = await MySQLCheckpointer.open(killed.url);
      expect(later.capabilities).toMatchObject({ archives: true, search: true });
    }
    await made.script(archiveSchemaSql());
    await made.sql("UPDATE everthread_archive_version SET version = 2");
    expect((await planMigration(made.url)).sql).toBe("");
    await using newer = await MySQLCheckpointer.open(made.url);
    expect(newer.capabilities.archives).toEqual({ reason: expect.stringMatching(/version 2.*Use a newer one/) });
    expect(newer.archives).toBeUndefined();
  });

  test.skipIf(!hasCubeloop)("the schema is what CubeLoop's own metadata makes, but for collations", async () => {
    const theirs = await database({ tables: false });
    for (const statement of await cubeloopSchema()) await theirs.sql(statement);
    const ours = await database();
    const plain = { collations: false };
    expect(await catalogOf(ours, plain)).toEqual(await catalogOf(theirs, plain));
  });

  test.skipIf(!hasCubeloop)(
    "tables that CubeLoop made are taken as they are; an id that they can't tell apart is refused",
    async () => {
      const theirs = await database({ tables: false, create: "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" });
      for (const statement of await cubeloopSchema()) await theirs.sql(statement);
      await using store = await MySQLCheckpointer.open(theirs.url);
      for (const id of ["a", "B", "b", "é", "a\u0001"]) await store.append(id, [userMessage(`in ${id}`)]);
      await expect(store.append("a ", [userMessage("x")])).rejects.toThrow(/can't tell the thread id "a " from "a"/);
      expect(await store.load("a ")).toBeUndefined();
      expect((await store.listMessages("a ")).items).toEqual([]);
      expect(await store.deleteThread("a ")).toBe(false);
      await store.claimRun("a", "Run");
      await expect(store.claimRun("a", "run")).rejects.toThrow(/can't tell the run id "run" from "Run"/);
      await expect(store.markRunComplete("a", "run")).rejects.toMatchObject({ code: "run_not_claimed" });
      await store.markRunComplete("a", "Run");
      await store.append("a", [userMessage("of another run", { run_id: "run" })]);
      expect((await store.snapshot("a", { afterRunId: "Run" })).map(textOf)).toEqual(["in a"]);
      await store.saveHitlAnswer("a", "Q", 1);
      await expect(store.saveHitlAnswer("a", "q", 2)).rejects.toThrow(/can't tell the question id/);
      expect(await store.loadHitlAnswer("a", "q")).toBeUndefined();
      await store.clearHitlAnswers("a", { questionIds: ["q"] });
      expect(await store.loadHitlAnswer("a", "Q")).toBe(1);
      expect((await store.listThreads()).items.map(({ threadId }) => threadId)).toEqual([
        "B",
        "a",
        "a\u0001",
        "b",
        "é",
      ]);
      expect((await store.listThreads({ prefix: "a" })).items).toHaveLength(2);

      await theirs.script(exactIdsSql());
      expect(await catalogOf(theirs)).toEqual((await freshCatalog()).lines);
      await using exact = await MySQLCheckpointer.open(theirs.url);
      await exact.append("a ", [userMessage("apart")]);
      await exact.claimRun("a", "run");
      expect((await exact.load("a"))?.messages.map(textOf)).toEqual(["in a", "of another run"]);
      expect((await exact.load("a "))?.messages.map(textOf)).toEqual(["apart"]);
    },
  );

  test("no tables: SchemaUninitializedError, and nothing is created", async () => {
    const empty = await database({ tables: false });
    await expect(MySQLCheckpointer.open(empty.url)).rejects.toMatchObject({ code: "schema_uninitialized" });
    expect(await catalogOf(empty)).toEqual([]);
  });

  test("half of the tables, or no version: the error says what to do", async () => {
    const half = await database();
    await half.sql("DROP TABLE cubepi_runs");
    await expect(MySQLCheckpointer.open(half.url)).rejects.toThrow(/cubepi_runs is missing .*run its statements again/);
    await half.sql("DELETE FROM cubepi_schema_version");
    await expect(MySQLCheckpointer.open(half.url)).rejects.toMatchObject({ code: "schema_uninitialized" });
    await half.sql("DROP TABLE cubepi_schema_version");
    await expect(MySQLCheckpointer.open(half.url)).rejects.toMatchObject({ code: "schema_mismatch", actual: 0 });
    await expect(migrate(half.url)).rejects.toMatchObject({ code: "schema_mismatch", actual: 0 });
  });

  test("another version: SchemaMismatchError whose hint names the step", async () => {
    const other = await database();
    await other.sql("UPDATE cubepi_schema_version SET version = 3");
    const older = {
      code: "schema_mismatch",
      expected: 5,
      actual: 3,
      hint: expect.stringContaining("upgradeSql(3, 5)"),
    };
    await expect(MySQLCheckpointer.open(other.url)).rejects.toMatchObject(older);
    await other.sql("UPDATE cubepi_schema_version SET version = 6");
    await expect(MySQLCheckpointer.open(other.url)).rejects.toMatchObject({ actual: 6, hint: /newer Everthread/ });
    await expect(migrate(other.url)).rejects.toMatchObject({ code: "schema_mismatch", actual: 6 });
    await other.sql("INSERT INTO cubepi_schema_version (version) VALUES (4)");
    await expect(MySQLCheckpointer.open(other.url)).rejects.toMatchObject({ actual: 4 });
  });

  test("two prefixes in one database are two stores", async () => {
    const both = await database();
    await both.script(schemaSql({ tablePrefix: "other_" }));
    await using first = await MySQLCheckpointer.open(both.url);
    await using second = await MySQLCheckpointer.open(both.url, { tablePrefix: "other_" });
    await first.append("t", [userMessage("first")]);
    await second.append("t", [userMessage("second")]);
    expect((await first.load("t"))?.messages.map(textOf)).toEqual(["first"]);
    expect((await second.load("t"))?.messages.map(textOf)).toEqual(["second"]);
    await expect(MySQLCheckpointer.open(both.url, { tablePrefix: "third_" })).rejects.toThrow(/no table third_threads/);
  });

  test("writeSchemaVersionSql may run again and leaves one row", async () => {
    const made = await database();
    await made.sql("UPDATE cubepi_schema_version SET version = 2");
    for (let i = 0; i < 2; i++) {
      await made.script(writeSchemaVersionSql());
      expect(await made.sql("SELECT version FROM cubepi_schema_version")).toEqual([{ version: 5 }]);
    }
  });

  test("partitions can be made after the tables, also again", async () => {
    const made = await database({ tables: false });
    await made.script(schemaSql().replaceAll("\nPARTITION BY KEY (thread_id) PARTITIONS 64", ""));
    const fresh = (await freshCatalog()).lines;
    expect(await catalogOf(made)).not.toEqual(fresh);
    for (let i = 0; i < 2; i++) {
      await made.script(createMessagePartitionsSql() + createRunsPartitionsSql());
      expect(await catalogOf(made)).toEqual(fresh);
    }
  });

  test("every step from version 1 on gives the schema, and what was stored is there", async () => {
    const old = await database({ tables: false });
    await old.script(VERSION_1);
    await old.sql("INSERT INTO cubepi_threads (thread_id, extra) VALUES ('t', '{\"kept\": true}')");
    for (let version = 1; version < 5; version++) {
      await expect(MySQLCheckpointer.open(old.url)).rejects.toMatchObject({ actual: version });
      await old.script(upgradeSql(version, version + 1));
    }
    expect(await places(old)).toEqual(await places(await database()));
    await using store = await MySQLCheckpointer.open(old.url);
    expect((await store.load("t"))?.extra).toEqual({ kept: true });
  });

  test.each([
    [0, 5],
    [1, 6],
    [3, 2],
    [1.5, 3],
  ])("there is no upgrade from %s to %s", (from, to) => {
    expect(() => upgradeSql(from, to)).toThrow(/version/);
  });

  test("G4 an upgrade that was killed after any statement is finished by running it again", async () => {
    const statements = statementsOf(upgradeSql(1, 5));
    const expected = await places(await database({ tables: true }));
    const old = await database({ tables: false });
    for (let done = 1; done < statements.length; done += 3) {
      await old.sql("SET foreign_key_checks = 0");
      for (const table of ["threads", "messages", "runs", "hitl_answers", "schema_version"]) {
        await old.sql(`DROP TABLE IF EXISTS cubepi_${table}`);
      }
      await old.sql("DROP TABLE IF EXISTS everthread_archives, everthread_archive_version");
      await old.script(VERSION_1);
      for (const statement of statements.slice(0, done)) await old.sql(statement);
      await expect(MySQLCheckpointer.open(old.url)).rejects.toMatchObject({ code: "schema_mismatch" });
      await migrate(old.url);
      expect(await places(old), `after ${done} statements`).toEqual(expected);
    }
  }, 60_000);

  test("G4 a first migration that was killed after any statement is finished by running it again", async () => {
    const statements = statementsOf(schemaSql());
    const lines = await wholeCatalog();
    for (let done = 1; done < statements.length; done += 2) {
      const made = await database({ tables: false });
      for (const statement of statements.slice(0, done)) await made.sql(statement);
      await expect(MySQLCheckpointer.open(made.url)).rejects.toMatchObject({ code: "schema_uninitialized" });
      expect((await planMigration(made.url)).from).toBe(0);
      await migrate(made.url);
      expect(await catalogOf(made), `after ${done} statements`).toEqual(lines);
    }
  });

  test("L13 of several that migrate at once one does it, and the others find it done", async () => {
    const empty = await database({ tables: false });
    const done = await Promise.all(Array.from({ length: 4 }, () => migrate(empty.url)));
    expect(done.filter(({ sql }) => sql !== "")).toHaveLength(1);
    expect(await planMigration(empty.url)).toEqual({ from: 5, to: 5, sql: "" });
    expect(await catalogOf(empty)).toEqual(await wholeCatalog());
    expect(await empty.sql("SELECT version FROM cubepi_schema_version")).toEqual([{ version: 5 }]);
  });

  test("Y3 the lock of a migration is of its database, with a name of 64 characters, and is waited for", async () => {
    const name = `everthread_${"x".repeat(53)}`;
    expect(name).toHaveLength(64);
    const long = await database({ tables: false, name });
    const other = await database({ tables: false });
    const tablePrefix = `${"p".repeat(41)}_`;
    let held: string | undefined;
    await using holder = await holdLock(long, tablePrefix, (key) => {
      held = key;
    });
    expect(held).toMatch(/^[0-9a-f]{64}$/);
    await migrate(other.url, { tablePrefix, lockTimeoutMs: 1000 });
    const tooLate = migrate(long.url, { tablePrefix, lockTimeoutMs: 1000 });
    await expect(tooLate).rejects.toMatchObject({ code: "lock_timeout", message: /lockTimeoutMs/ });
    await holder.release();
    await migrate(long.url, { tablePrefix, lockTimeoutMs: 1000 });
    await using store = await MySQLCheckpointer.open(long.url, { tablePrefix });
    const threadId = "t".repeat(200);
    await store.append(threadId, [userMessage("hi")]);
    expect((await store.load(threadId))?.messages).toHaveLength(1);
    expect(await long.sql("SELECT IS_FREE_LOCK(?) AS free", [held])).toEqual([{ free: 1 }]);
  });

  test("a table without transactions, or of another character set, is refused", async () => {
    const made = await database();
    await made.sql("ALTER TABLE cubepi_schema_version ENGINE=MyISAM");
    await expect(MySQLCheckpointer.open(made.url)).rejects.toThrow(/no transactions/);
    const latin = await database();
    await latin.sql("ALTER TABLE cubepi_runs MODIFY run_id VARCHAR(255) CHARACTER SET latin1 NOT NULL");
    await expect(MySQLCheckpointer.open(latin.url)).rejects.toThrow(/cubepi_runs.run_id is in latin1/);
  });
});

let fresh: Promise<{ lines: string[] }> | undefined;

/** The catalogue of a database that schemaSql made. */
function freshCatalog(): Promise<{ lines: string[] }> {
  fresh ??= (async () => {
    await using made = await testDatabase({ tables: "shared" });
    return { lines: await catalogOf(made) };
  })();
  return fresh;
}

/** The same with the tables of archives. */
async function wholeCatalog(): Promise<string[]> {
  const own = (await readFile(ARCHIVES, "utf8")).trimEnd().split("\n");
  return [...(await freshCatalog()).lines, ...own].sort();
}

/** The catalogue without the places of columns: those that were added later stand last. */
async function places(made: TestDatabase): Promise<string[]> {
  return (await catalogOf(made)).map((line) => line.replace(/: \d\d /, ": ")).sort();
}

/** Holds the lock that a migration would take, from another connection. */
async function holdLock(made: TestDatabase, tablePrefix: string, taken: (key: string) => void) {
  const { createHash } = await import("node:crypto");
  const key = createHash("sha256").update(`${made.name}\0everthread ${tablePrefix}`).digest("hex");
  await made.sql("SELECT GET_LOCK(?, 0)", [key]);
  taken(key);
  const release = async () => {
    await made.sql("SELECT RELEASE_LOCK(?)", [key]);
  };
  return { release, [Symbol.asyncDispose]: release };
}
