/** The rebuilding of older history tables: nothing is lost, whatever they hold, and whenever the program is killed. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { columnsOf, golden, sql } from "./files.ts";

const OPENER = new URL("./opener.ts", import.meta.url);
const OLD = `CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, prev_value TEXT, new_value TEXT, event TEXT,
  timestamp DATETIME, is_deleted INTEGER)`;
const WITH_CONVERSATIONS = `CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT,
  event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, "conversation ""id""" TEXT, score REAL)`;
const CURRENT = `CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT,
  event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)`;

const inLeftover = (table: string) => (text: string) => text.replace("CREATE TABLE history", `CREATE TABLE ${table}`);
const extras = (path: string) =>
  sql(path, "SELECT history_id, column_name, value FROM everthread_history_extra ORDER BY history_id, column_name");
const tables = (path: string) =>
  sql(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").map(({ name }) => name);
const OURS = ["everthread_history_schema", "history", "messages"];

function file(...statements: string[]): string {
  const path = join(tempDir(), "history.db");
  sql(path, statements.join(";\n"));
  return path;
}

async function valuesOf(history: SqliteMemoryHistory): Promise<(string | null)[]> {
  return (await history.list({ limit: 10_000 })).items.map((record) => record.new_memory);
}

describe("what only the old table has", () => {
  test("columns that Mem0 renamed are taken over, and their values are kept once", async () => {
    const path = file(
      OLD,
      "INSERT INTO history VALUES ('1', 'm', NULL, 'a', 'ADD', '2024-07-22 10:00:00.5', 0), ('2', 'm', 'a', NULL, 'DELETE', NULL, 1)",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(history.migration).toEqual({ records: 2, keptColumns: [] });
    expect(await history.get("m")).toMatchObject([
      {
        id: "1",
        old_memory: null,
        new_memory: "a",
        event: "ADD",
        created_at: "2024-07-22 10:00:00.5",
        is_deleted: false,
      },
      { id: "2", old_memory: "a", new_memory: null, event: "DELETE", created_at: null, is_deleted: true },
    ]);
    expect(await history.restoreAt("m", "2024-07-22T10:00:01Z")).toBeUndefined();
    expect(tables(path)).toEqual(OURS);
  });

  test("other columns are kept aside, whatever they are called and hold, and are reported", async () => {
    const path = file(
      WITH_CONVERSATIONS,
      "INSERT INTO history VALUES ('1', 'm', NULL, 'a', 'ADD', NULL, NULL, 0, 'c 1', 0.5), ('2', 'm', 'a', 'b', 'UPDATE', NULL, NULL, NULL, NULL, x'00ff')",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(history.migration).toEqual({ records: 2, keptColumns: ['conversation "id"', "score"] });
    expect(await valuesOf(history)).toEqual(["a", "b"]);
    expect(extras(path)).toEqual([
      { history_id: "1", column_name: 'conversation "id"', value: "c 1" },
      { history_id: "1", column_name: "score", value: 0.5 },
      { history_id: "2", column_name: "score", value: new Uint8Array([0, 0xff]) },
    ]);
    await history.close();
    await using again = await SqliteMemoryHistory.open(path);
    expect(again.migration).toBeUndefined();
    expect(extras(path)).toHaveLength(3);
    await again.reset();
    expect(tables(path)).toEqual(OURS);
  });

  test("a new_value beside new_memory is kept where the two differ", async () => {
    const path = file(
      CURRENT.replace("old_memory TEXT", "old_memory TEXT, new_value TEXT"),
      "INSERT INTO history (id, memory_id, new_memory, new_value, event) VALUES ('1', 'm', 'a', 'a', 'ADD'), ('2', 'm', 'b', 'other', 'ADD'), ('3', 'm', NULL, 'only', 'ADD')",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(history.migration?.keptColumns).toEqual(["new_value"]);
    expect(await valuesOf(history)).toEqual(["a", "b", null]);
    expect(extras(path).map(({ history_id, value }) => [history_id, value])).toEqual([
      ["2", "other"],
      ["3", "only"],
    ]);
  });

  test("rows without an id, or with one that another row has, are all kept, in their order", async () => {
    const path = file(
      "CREATE TABLE history (id TEXT, memory_id TEXT, new_memory TEXT, event TEXT)",
      "INSERT INTO history VALUES ('same', 'm', 'a', 'ADD'), (NULL, 'm', 'b', 'ADD'), ('same', 'm', 'c', 'ADD'), ('same', 'm', 'c', 'ADD'), (NULL, NULL, 'd', NULL)",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(history.migration).toEqual({ records: 5, keptColumns: ["id"] });
    const { items } = await history.list();
    expect(items.map((record) => record.new_memory)).toEqual(["a", "b", "c", "c", "d"]);
    expect(items[0]?.id).toBe("same");
    expect(new Set(items.map((record) => record.id)).size).toBe(5);
    for (const { id } of items.slice(1))
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(extras(path).map(({ value }) => value)).toEqual(["same", "same"]);
    expect(await history.get("m")).toHaveLength(4);
  });

  test("a table whose rows Mem0 migrated without ids is read as it is", async () => {
    const path = file(
      CURRENT,
      "INSERT INTO history (memory_id, new_memory, event) VALUES ('m', 'a', 'ADD'), ('m', 'b', 'ADD')",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(history.migration).toBeUndefined();
    expect((await history.get("m")).map(({ id, new_memory }) => [id, new_memory])).toEqual([
      ["row 1", "a"],
      ["row 2", "b"],
    ]);
  });
});

describe.each(["history_old", "old_history"])("a table %s that an interrupted migration of Mem0's left", (table) => {
  const leftover = inLeftover(table);
  const oldRows = `INSERT INTO ${table} VALUES ('1', 'm', NULL, 'a', 'ADD', '2024-07-22', 0), ('2', 'm', 'a', 'b', 'UPDATE', '2024-07-23', 0)`;

  test("is put back when it is all there is", async () => {
    await using history = await SqliteMemoryHistory.open(file(leftover(OLD), oldRows));
    expect(await valuesOf(history)).toEqual(["a", "b"]);
    expect(history.migration).toEqual({ records: 2, keptColumns: [] });
  });

  test("is put back before what was written since", async () => {
    const path = file(
      leftover(OLD),
      oldRows,
      CURRENT,
      "INSERT INTO history (id, memory_id, new_memory) VALUES ('3', 'm', 'c')",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(await valuesOf(history)).toEqual(["a", "b", "c"]);
    expect(tables(path)).toEqual(OURS);
  });

  test("is not doubled where its rows were copied already, also in part", async () => {
    const copied = `INSERT INTO history VALUES ('1', 'm', NULL, 'a', 'ADD', '2024-07-22', '2024-07-22', 0, NULL, NULL)`;
    const path = file(leftover(OLD), oldRows, CURRENT, copied);
    await using history = await SqliteMemoryHistory.open(path);
    expect(await valuesOf(history)).toEqual(["a", "b"]);
  });

  test("is kept beside a row of the same id that says something else", async () => {
    const path = file(
      leftover(OLD),
      oldRows,
      CURRENT,
      "INSERT INTO history (id, memory_id, new_memory) VALUES ('1', 'm', 'new')",
    );
    await using history = await SqliteMemoryHistory.open(path);
    expect(await valuesOf(history)).toEqual(["a", "b", "new"]);
    expect(extras(path)).toMatchObject([{ column_name: "id", value: "1" }]);
  });

  test("is not hidden from a read-only open", async () => {
    const path = file(leftover(OLD), oldRows, CURRENT);
    const before = readFileSync(path);
    await expect(SqliteMemoryHistory.open(path, { readOnly: true })).rejects.toThrow(
      /left unfinished. Open it once for writing/,
    );
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("of another program is left alone", async () => {
    const path = file(`CREATE TABLE ${table} (url TEXT)`, `INSERT INTO ${table} VALUES ('x')`);
    await using history = await SqliteMemoryHistory.open(path);
    expect(await valuesOf(history)).toEqual([]);
    expect(sql(path, `SELECT * FROM ${table}`)).toEqual([{ url: "x" }]);
  });
});

test("a migration that fails leaves the file as it was", async () => {
  const path = file(
    OLD,
    "INSERT INTO history VALUES ('1', 'm', NULL, 'a', 'ADD', NULL, 0)",
    "CREATE VIEW everthread_history_source AS SELECT 1",
  );
  const before = readFileSync(path);
  await expect(SqliteMemoryHistory.open(path)).rejects.toMatchObject({ code: "store_error" });
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("D9 killed at every step of a migration, the file is the old one or the new one, and nothing is lost", async () => {
  const source = golden(tempDir(), "mem0-0.1.40");
  sql(
    source,
    `CREATE TABLE history_old (id TEXT PRIMARY KEY, memory_id TEXT, prev_value TEXT, new_value TEXT, odd TEXT);
    INSERT INTO history_old VALUES ('left', 'm-0', NULL, 'left behind', 'kept')`,
  );
  const original = readFileSync(source);
  const names = columnsOf(source, "history");
  const dir = tempDir();
  const outcomes: string[] = [];
  for (let step = 1; outcomes.at(-1) !== "done"; step++) {
    const path = join(dir, `${step}.db`);
    writeFileSync(path, original);
    const { code, signal } = await ended(startChild(OPENER, [path, `${step}`]));
    const done = code === 0;
    expect(done || signal === "SIGKILL").toBe(true);
    // Reading rolls a hot journal back.
    const changed = columnsOf(path, "history").length !== names.length;
    expect(changed).toBe(done);
    await using history = await SqliteMemoryHistory.open(path);
    expect((await history.list()).items.length).toBe(11);
    expect((await history.list()).items[0]).toMatchObject({ id: "left", new_memory: "left behind" });
    expect(extras(path)).toEqual([{ history_id: "left", column_name: "odd", value: "kept" }]);
    expect(await history.checkIntegrity()).toEqual([]);
    outcomes.push(done ? "done" : "killed");
  }
  expect(outcomes.length).toBeGreaterThan(10);
}, 120_000);

test("C1 eight processes open one old file at once: one migrates it, and all go on", async () => {
  const path = golden(tempDir(), "mem0-0.0.9");
  const children = await Promise.all(Array.from({ length: 8 }, () => ended(startChild(OPENER, [path]))));
  for (const child of children) expect(child).toMatchObject({ code: 0, stderr: "" });
  const reports = children.map(({ lines }) => JSON.parse(lines[0] ?? "") as unknown);
  expect(reports.filter((report) => report !== null)).toEqual([{ records: 10, keptColumns: [] }]);
  await using history = await SqliteMemoryHistory.open(path);
  expect((await history.list()).items).toHaveLength(10);
});
