/** The memory history on Postgres: its tables, what opening finds wrong, several processes at once, what is in the columns. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { historySchemaSql, PostgresMemoryHistory } from "../../src/history/postgres/history.ts";
import { openMemoryHistory } from "../../src/open.ts";
import { everthread } from "../cli/support.ts";
import { programsOf } from "../docs/blocks.ts";
import { ended, startChild } from "../support/child.ts";
import { makeDatabase, sql } from "../support/postgres.ts";
import { tempDir } from "../support/temp.ts";

const WRITER = new URL("./postgres-writer.ts", import.meta.url);
const { url, drop } = await makeDatabase({ empty: true });
afterAll(drop);
beforeEach(() => sql(url, historySchemaSql()));
afterEach(() => sql(url, "DROP SCHEMA IF EXISTS app CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public"));

const WAITING = `SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
  WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`;
const tables = async () =>
  (await sql(url, "SELECT relname FROM pg_class WHERE relname LIKE 'everthread%' ORDER BY relname")).length;
const change = (new_memory: string, more = {}) => ({ memory_id: "m", event: "ADD", new_memory, ...more });

describe("opening", () => {
  test("an empty database is refused, and nothing is created", async () => {
    await sql(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    await expect(PostgresMemoryHistory.open(url)).rejects.toMatchObject({
      code: "schema_uninitialized",
      hint: expect.stringContaining("historySchemaSql()"),
    });
    expect(await tables()).toBe(0);
  });

  test("a lost table, a lost version and another version are each named", async () => {
    await sql(url, "DROP TABLE everthread_history_messages");
    const lost = { code: "schema_uninitialized", message: expect.stringContaining("no everthread_history_messages.") };
    await expect(PostgresMemoryHistory.open(url)).rejects.toMatchObject(lost);
    await sql(url, historySchemaSql());
    await sql(url, "DELETE FROM everthread_history_schema");
    const empty = {
      code: "schema_uninitialized",
      message: expect.stringContaining("everthread_history_schema is empty"),
    };
    await expect(PostgresMemoryHistory.open(url)).rejects.toMatchObject(empty);
    await sql(url, "INSERT INTO everthread_history_schema VALUES (2)");
    const newer = { code: "schema_mismatch", expected: 1, actual: 2 };
    await expect(PostgresMemoryHistory.open(url)).rejects.toMatchObject(newer);
  });

  test("L13 everthread migrate --history prints the SQL, says what is missing, and of six at once one makes the tables", async () => {
    await sql(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE SCHEMA app");
    const named = `${url}?schema=app`;
    const run = async (...args: string[]) => await everthread(["migrate", named, "--history", ...args]);
    expect((await run()).stdout).toContain(historySchemaSql({ schema: "app" }));
    expect(await run("--check")).toMatchObject({ code: 1 });
    expect(await tables()).toBe(0);
    const done = await Promise.all(Array.from({ length: 6 }, () => run("--apply", "--json")));
    expect(done.map(({ code }) => code)).toEqual(Array(6).fill(0));
    expect(await run("--check")).toMatchObject({ code: 0, stdout: "Nothing to do: the tables are of version 1.\n" });
    await using history = await openMemoryHistory(named);
    await history.add(change("there"));
    await sql(url, "UPDATE app.everthread_history_schema SET version = 2");
    expect(await run("--apply")).toMatchObject({ code: 1, stderr: expect.stringContaining("schema version 2") });
  });

  test("the SQL may run again, and what is stored stays", async () => {
    await using history = await PostgresMemoryHistory.open(url);
    await history.add(change("kept"));
    await sql(url, historySchemaSql());
    expect(await history.get("m")).toHaveLength(1);
    expect(await sql(url, "SELECT version FROM everthread_history_schema")).toEqual([{ version: 1 }]);
  });

  test("two schemas of one database are two histories", async () => {
    await sql(url, `CREATE SCHEMA app; ${historySchemaSql({ schema: "app" })}`);
    await using here = await PostgresMemoryHistory.open(url);
    await using there = await PostgresMemoryHistory.open(url, { schema: "app" });
    expect([here.schema, there.schema]).toEqual(["public", "app"]);
    await there.add(change("there"));
    await there.saveMessages("s", [{ role: "user", content: "there" }]);
    expect([(await here.list()).items.length, (await there.list()).items.length]).toEqual([0, 1]);
    expect([await here.recentMessages("s"), (await there.recentMessages("s")).length]).toEqual([[], 1]);
  });

  test("options that it has not, or of the wrong kind, are named", async () => {
    for (const [option, value] of Object.entries({
      tablePrefix: "x_",
      schema: "",
      maxPoolSize: 0,
      lockTimeoutMs: -1,
    })) {
      const open = PostgresMemoryHistory.open(url, { [option]: value });
      await expect(open).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(option) });
    }
  });

  test("by its URL, and read-only: every write is refused", async () => {
    await using history = await openMemoryHistory(url, { readOnly: true });
    expect(history.capabilities.backend).toBe("postgres");
    const writes = [
      history.add(change("x")),
      history.saveMessages("s", [{ role: "user", content: "x" }]),
      history.reset(),
    ];
    for (const result of await Promise.allSettled(writes)) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "store_read_only" } });
    }
    expect(await history.list()).toEqual({ items: [], next: null });
  });
});

test("the command line takes its URL", async () => {
  const lines = ["1", "2"].map((new_memory) => JSON.stringify({ record: change(new_memory) }));
  const file = join(tempDir(), "lines.jsonl");
  writeFileSync(file, `${lines.join("\n")}\n`);
  expect(await everthread(["history", url, "import", file, "--json"])).toMatchObject({ code: 0 });
  const { stdout } = await everthread(["history", url, "list", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ changes: [{ new_memory: "1" }, { new_memory: "2" }], total: 2 });
});

test("docs/history.md: its program runs on an empty database and prints what the page says", async () => {
  await sql(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  const found = programsOf("docs/history.md").find(({ code }) => code.includes("everthread/history/postgres"));
  const { code = "" } = found ?? {};
  const dir = tempDir();
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(resolve("."), join(dir, "node_modules/everthread"));
  symlinkSync(resolve("node_modules/pg"), join(dir, "node_modules/pg"));
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
  writeFileSync(join(dir, "program.ts"), code);
  const child = ended(startChild(pathToFileURL(join(dir, "program.ts")), [], { DATABASE_URL: url }));
  expect(await child).toMatchObject({ code: 0, lines: ["[ 'Likes tea' ]"] });
});

describe("several processes", () => {
  test("C4 on one scope and one log: the window has its newest, and the log every change in its writer's order", async () => {
    const names = ["a", "b", "c", "d"];
    const children = names.map((name) => ended(startChild(WRITER, [url, name, "40"])));
    for (const { code, stderr } of await Promise.all(children)) expect([code, stderr]).toEqual([0, ""]);
    await using history = await PostgresMemoryHistory.open(url);
    const written = (await history.get("m")).map((record) => record.new_memory ?? "");
    expect(written).toHaveLength(160);
    for (const name of names) {
      const own = written.filter((value) => value.startsWith(`${name} `));
      expect(own).toEqual(Array.from({ length: 40 }, (_, i) => `${name} ${i}`));
    }
    const rows = await sql(url, "SELECT position::int, content FROM everthread_history_messages ORDER BY position");
    expect(rows.map((row) => row.position)).toEqual([154, 155, 156, 157, 158, 159, 160]);
    const window = (await history.recentMessages("shared")).map((message) => message.content);
    expect(window).toEqual(rows.map((row) => row.content));
  }, 30_000);

  test.each([
    ["changes", "everthread_history", "new_memory"],
    ["messages", "everthread_history_messages", "content"],
  ] as const)(
    "W3 %s of a writer that is slow to commit come before those of a later one",
    async (kind, table, column) => {
      // At its commit the slow one waits for the gate.
      await sql(
        url,
        `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON ${table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.${column} = 'slow') EXECUTE FUNCTION wait()`,
      );
      await using first = await PostgresMemoryHistory.open(url);
      await using second = await PostgresMemoryHistory.open(url);
      const write = (history: PostgresMemoryHistory, text: string) =>
        kind === "changes"
          ? history.add(change(text))
          : history.saveMessages("s", [{ role: "user", content: text }], { keep: 1 });
      const gate = new pg.Client({ connectionString: url });
      await gate.connect();
      await gate.query("SELECT pg_advisory_lock(42)");
      const waiting = async (count: number) => {
        const { rows } = await gate.query(WAITING);
        return rows.length === count;
      };
      const slow = write(first, "slow");
      while (!(await waiting(1)));
      let early = false;
      const quick = write(second, "quick").then(() => {
        early = true;
      });
      while (!early && !(await waiting(2)));
      const wasEarly = early;
      const seen = [await second.list(), await second.recentMessages("s")];
      await gate.end();
      await Promise.all([slow, quick]);
      expect([wasEarly, ...seen]).toEqual([false, { items: [], next: null }, []]);
      const stored = await sql(url, `SELECT ${column} AS text FROM ${table} ORDER BY position`);
      expect(stored.map(({ text }) => text)).toEqual(kind === "changes" ? ["slow", "quick"] : ["quick"]);
    },
  );

  test("writers of different scopes, and a log beside them, don't wait for each other", async () => {
    await using history = await PostgresMemoryHistory.open(url, { lockTimeoutMs: 100 });
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("BEGIN");
    await other.query("SELECT pg_advisory_xact_lock(hashtext($1))", ['everthread history "public" scope a']);
    const message = { role: "user", content: "x" };
    await expect(history.saveMessages("a", [message])).rejects.toMatchObject({ code: "lock_timeout" });
    await history.saveMessages("b", [message]);
    await history.add(change("x"));
    await other.end();
    await history.saveMessages("a", [message]);
    expect((await history.listScopes()).items.map(({ scope }) => scope)).toEqual(["a", "b"]);
  });
});

test("D14 close waits for all that was asked for before, also for what it finds out about an error", async () => {
  const history = await PostgresMemoryHistory.open(url, { maxPoolSize: 1 });
  await history.add(change("first", { id: "taken" }));
  const works = Array.from({ length: 20 }, (_, i) => history.add(change(`${i}`)));
  const refused = history.add(change("again", { id: "taken" }));
  const closed = history.close();
  await expect(history.add(change("late"))).rejects.toMatchObject({ code: "store_closed" });
  await expect(refused).rejects.toMatchObject({ code: "duplicate_record", id: "taken" });
  await Promise.all([...works, closed]);
  const [row] = await sql(url, "SELECT count(*)::int FROM everthread_history");
  expect(row).toEqual({ count: 21 });
});

describe("what is stored", () => {
  test("E1 plain texts stand as they are, U+0000 and the mark itself come back exactly", async () => {
    await using history = await PostgresMemoryHistory.open(url);
    const texts = ["plain \\0 text", "a\0b\\", "everthread-nul:", "everthread-nul:\\0", "\0"];
    await history.addBatch(texts.map((text) => change(text, { event: text, actor_id: text, role: text })));
    await history.saveMessages(
      "s",
      texts.map((text) => ({ role: text, content: text, name: text })),
    );
    for (const record of await history.get("m")) {
      const { new_memory, event, actor_id, role } = record;
      expect([event, actor_id, role]).toEqual([new_memory, new_memory, new_memory]);
    }
    expect((await history.get("m")).map((record) => record.new_memory)).toEqual(texts);
    expect((await history.recentMessages("s")).map(({ role, content, name }) => [role, content, name])).toEqual(
      texts.map((text) => [text, text, text]),
    );
    for (const text of texts) {
      const { items } = await history.list({ event: text, actorId: text });
      expect(items.map((item) => item.new_memory)).toEqual([text]);
    }
    const [plain, nul] = await sql(url, "SELECT new_memory FROM everthread_history ORDER BY position");
    expect([plain, nul]).toEqual([{ new_memory: "plain \\0 text" }, { new_memory: "everthread-nul:a\\0b\\\\" }]);
  });

  test("times are times, also in a database of another time zone and date style", async () => {
    const name = new URL(url).pathname.slice(1);
    await sql(
      url,
      `ALTER DATABASE ${name} SET TimeZone = 'Asia/Kolkata'; ALTER DATABASE ${name} SET DateStyle = 'SQL, DMY'`,
    );
    await using history = await PostgresMemoryHistory.open(url);
    const times = ["0001-01-01T00:00:00+00:00", "2026-05-07T10:00:00.000001+00:00", "9999-12-31T23:59:59.999999+00:00"];
    for (const created_at of times) await history.add(change("x", { created_at }));
    expect((await history.get("m")).map((record) => record.created_at)).toEqual(times);
    expect((await history.list({ since: times[1], until: times[2] })).items).toHaveLength(1);
  });

  test("a scope of 1,024 characters outside the BMP has its window, and is listed in its place", async () => {
    await using history = await PostgresMemoryHistory.open(url);
    // Not compressible, and alike in all that the index holds.
    const noise = Array.from({ length: 1023 }, (_, i) => String.fromCodePoint(0x10000 + ((i * 7919) % 60_000))).join(
      "",
    );
    for (const end of ["b", "a"]) await history.saveMessages(noise + end, [{ role: "user", content: end }]);
    expect((await history.recentMessages(`${noise}a`)).map(({ content }) => content)).toEqual(["a"]);
    const first = await history.listScopes({ limit: 1 });
    expect(first).toEqual({ items: [{ scope: `${noise}a`, messageCount: 1 }], next: `${noise}a` });
    const second = await history.listScopes({ after: first.next ?? "", limit: 1 });
    expect(second).toEqual({ items: [{ scope: `${noise}b`, messageCount: 1 }], next: null });
  });

  test("a batch of several pieces with a taken id at its end leaves nothing", async () => {
    await using history = await PostgresMemoryHistory.open(url);
    await history.add(change("first", { id: "taken" }));
    const large = "x".repeat(3_000_000);
    const batch = [change(large), change(large), change(large), change("again", { id: "taken" })];
    await expect(history.addBatch(batch)).rejects.toMatchObject({ code: "duplicate_record", id: "taken" });
    expect((await history.get("m")).map((record) => record.new_memory)).toEqual(["first"]);
    await history.addBatch(batch.slice(0, -1));
    expect(await history.get("m")).toHaveLength(4);
  });

  test("a value that no parameter can hold is refused before anything is sent", async () => {
    await using history = await PostgresMemoryHistory.open(url);
    const batch = [change("fine"), change("x".repeat(2 ** 26 + 1))];
    const refused = { code: "value_too_large", message: expect.stringContaining("records[1]") };
    await expect(history.addBatch(batch)).rejects.toMatchObject(refused);
    expect(await history.list()).toEqual({ items: [], next: null });
  });
});
