/** The SQLite history as a file: what is refused, permissions, locks, many writers, kills, the index. */

import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import * as Q from "../../src/history/sqlite/queries.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { ended, killAfter, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { golden, sql } from "./files.ts";

const WRITER = new URL("./writer.ts", import.meta.url);
const HOLDER = new URL("../sqlite/lock-holder.mjs", import.meta.url);
const mode = (path: string) => (fs.statSync(path).mode & 0o777).toString(8);
const added = (new_memory: string) => ({ memory_id: "m", event: "ADD", new_memory });

describe("a file that is something else is refused, in a sentence of its own, and left as it is", () => {
  test.each(["threads", "empty conversation store"])("a conversation store (%s)", async (kind) => {
    const path = join(tempDir(), "a.db");
    const store = await SqliteCheckpointer.open(path);
    if (kind === "threads") await store.append("t", [userMessage("hi")]);
    await store.close();
    const before = fs.readFileSync(path);
    for (const readOnly of [false, true]) {
      await expect(SqliteMemoryHistory.open(path, { readOnly })).rejects.toThrow(
        /is a conversation store of Everthread or CubeLoop, not a memory history; both have a table "messages"/,
      );
    }
    expect(fs.readFileSync(path).equals(before)).toBe(true);
  });

  test("CubeLoop's own file, of every age", async () => {
    const dir = tempDir();
    for (const name of ["cubepi-0.1.0", "cubepi-0.13.6", "runs"]) {
      const path = join(dir, `${name}.db`);
      fs.copyFileSync(new URL(`../golden/${name}.sqlite3`, import.meta.url), path);
      const before = fs.readFileSync(path);
      await expect(SqliteMemoryHistory.open(path)).rejects.toThrow(/conversation store/);
      expect(fs.readFileSync(path).equals(before)).toBe(true);
    }
  });

  test("the reverse: a history is no conversation store", async () => {
    const path = golden(tempDir(), "mem0-2.2.1");
    const before = fs.readFileSync(path);
    await expect(SqliteCheckpointer.open(path)).rejects.toThrow(/table messages has no column thread_id/);
    expect(fs.readFileSync(path).equals(before)).toBe(true);
  });

  test.each([
    ["CREATE TABLE history (url TEXT, visited INTEGER)", /its table history has no column memory_id/],
    ["CREATE TABLE messages (id INTEGER, body TEXT)", /its table messages has no column session_scope, role, content/],
  ])("another program's: %s", async (schema, problem) => {
    const path = join(tempDir(), "a.db");
    sql(path, schema);
    const before = fs.readFileSync(path);
    await expect(SqliteMemoryHistory.open(path)).rejects.toThrow(problem);
    expect(fs.readFileSync(path).equals(before)).toBe(true);
  });

  test("a history of a newer Everthread", async () => {
    const path = join(tempDir(), "a.db");
    await (await SqliteMemoryHistory.open(path)).close();
    sql(path, "UPDATE everthread_history_schema SET version = 99");
    const before = fs.readFileSync(path);
    for (const readOnly of [false, true]) {
      await expect(SqliteMemoryHistory.open(path, { readOnly })).rejects.toMatchObject({
        ...{ code: "schema_mismatch", expected: 1, actual: 99 },
      });
    }
    expect(fs.readFileSync(path).equals(before)).toBe(true);
  });

  test("X4 a path that can't be one, and options that are none", async () => {
    const dir = tempDir();
    await expect(SqliteMemoryHistory.open(dir)).rejects.toThrow(/is a directory/);
    await expect(SqliteMemoryHistory.open(join(dir, "no", "a.db"))).rejects.toThrow(/no directory/);
    await expect(SqliteMemoryHistory.open("")).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(SqliteMemoryHistory.open(join(dir, "a.db"), { readonly: true } as object)).rejects.toThrow(
      /SqliteMemoryHistory has no option readonly/,
    );
    expect(fs.readdirSync(dir)).toEqual([]);
  });
});

test("X11 reading creates nothing, and an empty database is no history", async () => {
  const dir = tempDir();
  await expect(SqliteMemoryHistory.open(join(dir, "a.db"), { readOnly: true })).rejects.toThrow(/reading creates none/);
  expect(fs.readdirSync(dir)).toEqual([]);
  const path = join(dir, "b.db");
  sql(path, "CREATE TABLE other (x)");
  await expect(SqliteMemoryHistory.open(path, { readOnly: true })).rejects.toThrow(/holds no memory history/);
});

test("X6 the file, its WAL and its backup are for the owner only", async () => {
  const dir = tempDir();
  const umask = process.umask(0o022);
  try {
    await using history = await SqliteMemoryHistory.open(join(dir, "a.db"), { journalMode: "wal" });
    await history.add(added("x"));
    await history.backup(join(dir, "b.db"));
    for (const name of ["a.db", "a.db-wal", "a.db-shm", "b.db"]) expect(mode(join(dir, name))).toBe("600");
    await using copy = await SqliteMemoryHistory.open(join(dir, "b.db"), { readOnly: true });
    expect(await copy.get("m")).toEqual(await history.get("m"));
    await expect(copy.reset()).rejects.toMatchObject({ code: "store_read_only" });
  } finally {
    process.umask(umask);
  }
});

test("a new file is in WAL mode unless told otherwise, and one that is there keeps its mode", async () => {
  const dir = tempDir();
  const modeOf = (path: string) => sql(path, "PRAGMA journal_mode")[0]?.journal_mode;
  await (await SqliteMemoryHistory.open(join(dir, "new.db"))).close();
  await (await SqliteMemoryHistory.open(join(dir, "told.db"), { journalMode: "delete" })).close();
  const old = golden(dir, "mem0-2.2.1");
  await (await SqliteMemoryHistory.open(old)).close();
  expect([join(dir, "new.db"), join(dir, "told.db"), old].map(modeOf)).toEqual(["wal", "delete", "delete"]);
  // Closed, a file is whole without any other.
  expect(fs.readdirSync(dir).sort()).toEqual(["mem0-2.2.1.sqlite3", "new.db", "told.db"]);
});

test("a column that holds bytes which are no text is damage, named, and other memories are unaffected", async () => {
  const path = join(tempDir(), "a.db");
  await using history = await SqliteMemoryHistory.open(path);
  await history.add({ memory_id: "other", event: "ADD" });
  sql(path, "INSERT INTO history (id, memory_id, new_memory) VALUES ('bad', 'm', x'ff00fe')");
  await expect(history.get("m")).rejects.toThrow(/row history\.rowid=2 is damaged/);
  expect(await history.get("other")).toHaveLength(1);
});

test("W3 W2 a listing and a window are the same after VACUUM and updates between two pages", async () => {
  const path = join(tempDir(), "a.db");
  await using history = await SqliteMemoryHistory.open(path);
  await history.addBatch(Array.from({ length: 205 }, (_, i) => added(`${i}`)));
  for (let i = 0; i < 30; i++) await history.saveMessages("s", [{ role: "user", content: `${i}` }]);
  const first = await history.list();
  const window = await history.recentMessages("s");
  sql(path, "UPDATE history SET role = 'changed' WHERE rowid % 7 = 0");
  sql(path, "VACUUM");
  expect(first.next).not.toBeNull();
  const second = await history.list({ after: first.next ?? 0, limit: 200 });
  const values = [...first.items, ...second.items].map((record) => record.new_memory);
  expect(values).toEqual(Array.from({ length: 205 }, (_, i) => `${i}`));
  expect(await history.recentMessages("s")).toEqual(window);
});

test("a listing that finds little in a long log finds it all, and lets others have their turn", async () => {
  await using history = await SqliteMemoryHistory.open(":memory:");
  const rare = new Set([3, 4999, 5000, 5001, 17_500, 22_999]);
  await history.addBatch(
    Array.from({ length: 23_000 }, (_, i) => ({
      ...added(`${i}`),
      memory_id: `m${i % 2}`,
      event: rare.has(i) ? "RARE" : "ADD",
    })),
  );
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const { items, next } = await history.list({ event: "RARE" });
  clearInterval(timer);
  expect(items.map((record) => Number(record.new_memory))).toEqual([...rare]);
  expect(next).toBeNull();
  expect(turns).toBeGreaterThan(1);
  const ofOne = await history.list({ memoryId: "m1", event: "RARE", limit: 2 });
  expect(ofOne.items.map((record) => record.new_memory)).toEqual(["3", "4999"]);
  expect((await history.list({ memoryId: "m1", event: "RARE", after: ofOne.next ?? 0 })).items).toHaveLength(2);
});

test("every look-up goes by an index", async () => {
  const path = join(tempDir(), "a.db");
  await (await SqliteMemoryHistory.open(path)).close();
  const db = new DatabaseSync(path);
  const details = (query: string, ...values: [string] | [Record<string, string | number>]) =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${query}`)
      .all(...(values as [string]))
      .map((row) => String(row.detail))
      .join("; ");
  expect(details(Q.RECORDS_OF_MEMORY, { memory: "m", exact: 1 })).toBe(
    "SEARCH history USING INDEX everthread_history_memory (memory_id=?)",
  );
  expect(details(Q.RECENT_MESSAGES, { scope: "s", limit: 1, exact: 1 })).toBe(
    "SEARCH messages USING INDEX everthread_messages_scope (session_scope=?)",
  );
  expect(details(Q.NEXT_SCOPE, "s")).toMatch(/^SEARCH messages USING COVERING INDEX everthread_messages_scope/);
  db.close();
});

test("C1 C4 eight processes open one new file at once and write: every change is there, in each writer's order", async () => {
  const path = join(tempDir(), "new.db");
  const children = Array.from({ length: 8 }, (_, i) => ended(startChild(WRITER, [path, `w${i}`, "25"])));
  for (const child of await Promise.all(children)) expect(child).toMatchObject({ code: 0, stderr: "" });
  await using history = await SqliteMemoryHistory.open(path);
  const log = await history.get("m");
  expect(log).toHaveLength(400);
  for (let w = 0; w < 8; w++) {
    const own = log.filter((record) => record.new_memory?.startsWith(`w${w} `));
    expect(own.map((record) => `${record.event} ${record.new_memory}`)).toEqual(
      Array.from({ length: 25 }, (_, i) => [`ADD w${w} ${i}`, `UPDATE w${w} ${i}`]).flat(),
    );
    const window = (await history.recentMessages(`w${w}`)).map((message) => message.content);
    expect(window).toEqual(Array.from({ length: 10 }, (_, i) => `w${w} ${15 + i}`));
  }
}, 60_000);

test("D9 writers killed at once after an acknowledgement: what was acknowledged is there, and batches are whole", async () => {
  const dir = tempDir();
  await Promise.all(
    Array.from({ length: 12 }, async (_, round) => {
      const path = join(dir, `${round}.db`);
      const acknowledged = await killAfter(startChild(WRITER, [path, "w"]), round * 3);
      await using history = await SqliteMemoryHistory.open(path);
      const values = (await history.get("m")).map((record) => record.new_memory);
      expect(values).toEqual(values.map((_, i) => `w ${Math.floor(i / 2)}`));
      expect(values.length % 2).toBe(0);
      expect(values.length).toBeGreaterThanOrEqual(acknowledged * 2);
      const window = await history.recentMessages("w");
      expect(window.length).toBeGreaterThanOrEqual(Math.min(10, acknowledged));
      expect(window.length).toBeLessThanOrEqual(10);
      expect(await history.checkIntegrity()).toEqual([]);
    }),
  );
}, 60_000);

test("L9 a write waits for another program's lock while timers go on, and past the wait it is a LockTimeoutError", async () => {
  const path = join(tempDir(), "a.db");
  await using history = await SqliteMemoryHistory.open(path);
  await using hasty = await SqliteMemoryHistory.open(path, { busyTimeoutMs: 50 });
  const holder = startChild(HOLDER, [path, "1000"]);
  await once(holder.stdout ?? holder, "data");
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  const late = history.add(added("late"));
  await expect(hasty.add(added("lost"))).rejects.toMatchObject({ code: "lock_timeout" });
  await late;
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(10);
  expect((await history.get("m")).map((record) => record.new_memory)).toEqual(["late"]);
});

test("writes of one moment share a commit, and one that is refused takes no other with it", async () => {
  const path = join(tempDir(), "a.db");
  await using history = await SqliteMemoryHistory.open(path);
  await history.add({ ...added("x"), id: "taken" });
  const db = new DatabaseSync(path, { readOnly: true });
  const version = () => Number(db.prepare("PRAGMA data_version").get()?.data_version);
  const before = version();
  const results = await Promise.allSettled([
    history.add(added("1")),
    history.addBatch([added("no"), { ...added("no"), id: "taken" }]),
    history.saveMessages("s", [{ role: "user", content: "hi" }]),
    history.add(added("2")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  expect(version() - before).toBe(1);
  db.close();
  expect((await history.get("m")).map((record) => record.new_memory)).toEqual(["x", "1", "2"]);
});
