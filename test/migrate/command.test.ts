/** `everthread migrate` as real processes on real servers: what it prints, what it applies, and what interrupts it. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/checkpoint/errors.ts";
import { migrateStore } from "../../src/open.ts";
import { everthread, outcome, start } from "../cli/support.ts";
import { TcpProxy } from "../support/proxy.ts";
import { tempDir } from "../support/temp.ts";
import { type Database, servers } from "./servers.ts";

const VERSION = "SELECT version FROM cubepi_schema_version";
const versions = async (database: Database) => (await database.run(VERSION)).map((row) => Number(row.version));

/** EVERTHREAD_FULL=1 cuts and kills at every answer. */
const FULL = process.env.EVERTHREAD_FULL === "1";

for (const { label, missing, schemaSql, sharedSql, version1, database, expected, name } of servers) {
  describe.skipIf(missing)(`migrate on ${label}`, () => {
    test("prints the whole schema for an empty database, which makes it when it is run; nothing was run before", async () => {
      const db = await database();
      const printed = await everthread(["migrate", db.url]);
      expect(printed).toMatchObject({ code: 0, stderr: "" });
      expect(printed.stdout).toBe(`-- Everthread's tables, version 5.\n${schemaSql()}`);
      expect(await db.catalog()).toEqual([]);
      await db.run(printed.stdout);
      expect(await db.catalog()).toEqual(await expected());
      const again = await everthread(["migrate", db.url]);
      expect(again).toMatchObject({ code: 0, stdout: "", stderr: "Nothing to do: the tables are of version 5.\n" });
    });

    test("prints the steps from an older version, which bring it up to date", async () => {
      const db = await database();
      await db.run(version1);
      const printed = await everthread(["migrate"], { db: db.url });
      expect(printed.stdout.split("\n")[0]).toBe("-- Everthread's tables, from version 1 to 5.");
      expect(await versions(db)).toEqual([1]);
      await db.run(printed.stdout);
      expect(await db.catalog()).toEqual(await expected());
    });

    test("--check exits with 1 when behind and with 0 when current; --apply brings it there; --json says the same", async () => {
      const db = await database();
      const empty = await everthread(["migrate", db.url, "--check"]);
      expect(empty).toMatchObject({ code: 1, stdout: "There are no tables.\n", stderr: "" });
      await db.run(version1);
      const behind = await everthread(["migrate", db.url, "--check"]);
      expect(behind).toMatchObject({ code: 1, stdout: "The tables are to go from version 1 to 5.\n" });
      const json = await everthread(["migrate", db.url, "--check", "--json"]);
      expect(json.code).toBe(1);
      expect(json.records()).toMatchObject([{ backend: name, from: 1, to: 5, current: false, applied: false }]);
      const applied = await everthread(["migrate", db.url, "--apply"]);
      expect(applied).toMatchObject({ code: 0, stdout: "The tables went from version 1 to 5.\n", stderr: "" });
      expect(await db.catalog()).toEqual(await expected());
      const current = await everthread(["migrate", db.url, "--check"]);
      expect(current).toMatchObject({ code: 0, stdout: "Nothing to do: the tables are of version 5.\n" });
      const record = (await everthread(["migrate", db.url, "--apply", "--json"])).records();
      expect(record).toEqual([{ backend: name, from: 5, to: 5, current: true, applied: false, sql: "" }]);
    });

    test("to tables without those of archives it adds only them, and says so", async () => {
      const db = await database();
      await db.run(sharedSql());
      const behind = await everthread(["migrate", db.url, "--check"]);
      expect(behind).toMatchObject({ code: 1, stdout: "The tables of archives are missing, or their index is.\n" });
      const printed = await everthread(["migrate", db.url]);
      expect(printed.stdout.split("\n")[0]).toBe("-- Everthread's tables, version 5.");
      expect(printed.stdout).not.toMatch(/CREATE TABLE IF NOT EXISTS \S*cubepi_|^(?:ALTER|DROP)/m);
      const applied = await everthread(["migrate", db.url, "--apply"]);
      expect(applied).toMatchObject({ code: 0, stdout: "The tables of archives are made.\n", stderr: "" });
      expect(await db.catalog()).toEqual(await expected());
      expect((await everthread(["migrate", db.url, "--check"])).code).toBe(0);
    });

    test("a newer database is refused and left alone, and so is one whose version is lost", async () => {
      const db = await database();
      await db.run(schemaSql());
      await db.run("UPDATE cubepi_schema_version SET version = 6");
      for (const options of [[], ["--check"], ["--apply"]]) {
        const { code, stdout, stderr } = await everthread(["migrate", db.url, ...options]);
        expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
        expect(stderr).toMatch(/^error: The store has schema version 6; this Everthread understands version 5\..*\n$/);
      }
      expect(await versions(db)).toEqual([6]);
      await db.run("DROP TABLE cubepi_schema_version");
      const { code, stderr } = await everthread(["migrate", db.url, "--apply"]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/no.* cubepi_schema_version|cubepi_schema_version is missing/);
    });

    test.each([
      ["an empty database", ""],
      ["version 1", version1],
    ])("L13 eight at once on %s: one does it, the others wait and find it done", async (_what, before) => {
      const db = await database();
      if (before) await db.run(before);
      const all = await Promise.all(
        Array.from({ length: 8 }, () => everthread(["migrate", db.url, "--apply", "--json"])),
      );
      expect(all.map(({ stderr }) => stderr).join("")).toBe("");
      const records = all.flatMap((one) => one.records());
      expect(records.filter(({ applied }) => applied)).toHaveLength(1);
      expect(records.filter(({ current }) => current)).toHaveLength(8);
      expect(await db.catalog()).toEqual(await expected());
      expect(await versions(db)).toEqual([5]);
    });

    test.each([
      ["G4", "an empty database", ""],
      ["G5", "version 1", version1],
    ])(
      "%s killed at an answer of the server on %s, and restarted, it ends whole",
      { timeout: 120_000 },
      async (_id, _what, before) => {
        const wanted = await expected();
        for (let at = 1, killed = true; killed; at *= FULL ? 2 : 16) {
          const db = await database();
          if (before) await db.run(before);
          await using proxy = await TcpProxy.before(db.url);
          const child = start(["migrate", proxy.url(db.url), "--apply"]);
          killed = false;
          proxy.loseAnswer(at, async () => {
            killed = true;
            child.kill("SIGKILL");
          });
          const first = await outcome(child);
          expect(first.code, first.stderr).toBe(killed ? null : 0);
          const second = await everthread(["migrate", db.url, "--apply"]);
          expect(second, `killed at answer ${at}`).toMatchObject({ code: 0, stderr: "" });
          expect(await db.catalog(), `killed at answer ${at}`).toEqual(wanted);
          expect(await versions(db)).toEqual([5]);
          expect((await everthread(["migrate", db.url, "--check"])).code).toBe(0);
        }
      },
    );

    test.each([
      ["G4", "an empty database", ""],
      ["G5", "version 1", version1],
    ])(
      "%s cut off at answers of the server on %s, and begun again, it ends whole",
      { timeout: 120_000 },
      async (_id, _what, before) => {
        const wanted = await expected();
        for (let at = 1, cut = true; cut; at = FULL ? at + 1 : at * 4) {
          const db = await database();
          if (before) await db.run(before);
          cut = false;
          await using proxy = await TcpProxy.before(db.url);
          proxy.loseAnswer(at, async () => {
            cut = true;
          });
          // Where only a look was cut off, it looks again and goes on.
          await migrateStore(proxy.url(db.url), { apply: true }).catch((error: unknown) =>
            expect(error).toBeInstanceOf(StoreError),
          );
          await migrateStore(db.url, { apply: true });
          expect(await db.catalog(), `cut off at answer ${at}`).toEqual(wanted);
          expect(await versions(db)).toEqual([5]);
        }
      },
    );

    test("what is stored is there after an upgrade, and a command reads it", async () => {
      const db = await database();
      await db.run(version1);
      await db.run("INSERT INTO cubepi_threads (thread_id, extra) VALUES ('from-before', '{\"kept\": 1}')");
      const early = await everthread(["threads"], { db: db.url });
      expect(early.code).toBe(1);
      expect(early.stderr).toBe(
        "error: The store has schema version 1; this Everthread understands version 5. `everthread migrate` prints the SQL that is missing, and runs it with --apply.\n",
      );
      await everthread(["migrate", "--apply"], { db: db.url });
      const { stdout } = await everthread(["threads", "--json"], { db: db.url });
      expect(JSON.parse(stdout)).toMatchObject({ total: 1, threads: [{ thread_id: "from-before" }] });
    });

    test("another prefix, named in the URL", async () => {
      const db = await database();
      const url = `${db.url}?tablePrefix=talk_`;
      expect((await everthread(["migrate", url, "--apply"])).stdout).toBe("The tables are made, version 5.\n");
      expect((await everthread(["migrate", url, "--check"])).code).toBe(0);
      expect((await everthread(["migrate", db.url, "--check"])).code).toBe(1);
      const tables = (await db.catalog()).map((line) => line.replace(/^\d+ x /, ""));
      expect(tables.filter((line) => !line.startsWith("talk_"))).toEqual([]);
    });
  });
}

describe("migrate elsewhere", () => {
  test("a SQLite file needs none, and is not touched", async () => {
    const cwd = tempDir();
    for (const url of ["sqlite:none.db", join(cwd, "none.db")]) {
      for (const options of [["--check"], ["--apply"]]) {
        const { code, stdout } = await everthread(["migrate", url, ...options], { cwd });
        expect({ code, stdout }).toEqual({
          code: 0,
          stdout: "Nothing to do: SQLite files are brought up to date when they are opened.\n",
        });
      }
      expect((await everthread(["migrate", url, "--json"], { cwd })).records()).toEqual([
        { backend: null, from: null, to: null, current: true, applied: false, sql: "" },
      ]);
      expect((await everthread(["threads"], { cwd, db: url })).code).toBe(1);
    }
  });

  test("without a store, or with --apply and --check, it is wrong usage", async () => {
    expect((await everthread(["migrate"])).code).toBe(2);
    expect((await everthread(["migrate", "memory:", "--apply", "--check"])).code).toBe(2);
  });
});
