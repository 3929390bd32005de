/** Stores of version 1: archives without an index. Readable as they are; the next opening to write makes the index. */
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { found, hasFts5, makeVersion1, OpenDatabase } from "./archive-files.ts";

const CHILD = new URL("./upgrade.ts", import.meta.url);
const THREADS = {
  alice: [
    ["Needle one", "hay"],
    ["needle two", "x"],
  ],
  bob: [["NEEDLE three"]],
};
const many = (count: number, more = "") => ({
  many: [Array.from({ length: count }, (_, i) => `needle number ${i} in the hay${more}`), ["the last needle"]],
});

const version = (path: string): unknown[] => {
  using db = new OpenDatabase(path);
  const indexed = db.archiveTables().includes("everthread_archive_index");
  return [
    db.value("SELECT version FROM everthread_schema"),
    indexed,
    indexed ? db.value("SELECT count(*) FROM everthread_archive_index_docsize") : 0,
  ];
};

test("G2 X11 a reader lists, reads, searches and fetches, and changes nothing", async () => {
  const path = join(tempDir(), "v1.db");
  await makeVersion1(path, THREADS);
  const before = readFileSync(path);
  await using reader = await SqliteCheckpointer.open(path, { readOnly: true });
  expect(await reader.load("alice")).toMatchObject({ summary: "2 texts", kept: 0, revision: 5 });
  expect((await reader.archives.list("alice")).items.map(({ archiveId }) => archiveId)).toEqual(["a1", "a2"]);
  const { messages } = await reader.archives.read("alice", "a1");
  expect(messages.map(({ message }) => message && textOf(message))).toEqual(["Needle one", "hay"]);
  expect(await found(reader, "needle")).toEqual(["NEEDLE three", "needle two", "Needle one"]);
  expect(await found(reader, "Ne", "alice")).toEqual(["Needle one"]);
  const { hits } = await reader.archives.search("needle", { threadId: "alice", limit: 1 });
  const [hit] = hits;
  const page = await reader.archives.fetch("alice", { archiveId: "a2", sourceId: hit?.source_id ?? "" });
  expect(page.text).toBe("needle two");
  expect(readFileSync(path)).toEqual(before);
  expect(version(path)).toEqual([1, false, 0]);
});

test.skipIf(!hasFts5)(
  "the next opening to write makes the index, tells how far it is, and gives the event loop its turns",
  async () => {
    const path = join(tempDir(), "v1.db");
    await makeVersion1(path, { ...THREADS, ...many(3000, " and more hay".repeat(30)) });
    const told: [number, number][] = [];
    let turns = 0;
    let open = false;
    const opening = SqliteCheckpointer.open(path, { onUpgrade: (done, total) => told.push([done, total]) }).finally(
      () => {
        open = true;
      },
    );
    for (; !open; turns++) await nextTurn();
    await using store = await opening;
    // A slice is 8 ms, and this takes some hundred.
    expect(turns).toBeGreaterThan(5);
    expect(told.length).toBeGreaterThan(5);
    expect(told.at(-1)).toEqual([3006, 3006]);
    expect(told.map(([done]) => done)).toEqual(told.map(([done]) => done).toSorted((a, b) => a - b));
    expect(version(path)).toEqual([2, true, 3006]);
    expect(await found(store, "needle", "alice")).toEqual(["needle two", "Needle one"]);
    expect((await found(store, "number 2999 ")).join()).toMatch(/^needle number 2999 in the hay/);
    expect(await store.checkIntegrity()).toEqual([]);
    await store.close();
    const again: unknown[] = [];
    await (await SqliteCheckpointer.open(path, { onUpgrade: (...args) => again.push(args) })).close();
    expect(again).toEqual([]);
  },
);

test.skipIf(!hasFts5)("what a compaction of a store that was open before makes is the same", async () => {
  const path = join(tempDir(), "v1.db");
  await makeVersion1(path, THREADS);
  const backup = `${path}.v1`;
  copyFileSync(path, backup);
  await using store = await SqliteCheckpointer.open(path);
  // As where another program brought the older tables back.
  using db = new OpenDatabase(path);
  db.exec("DROP TABLE everthread_archive_index; UPDATE everthread_schema SET version = 1");
  const { upTo } = await store.archives.compact("bob", { upTo: 7, summary: "all" });
  expect(upTo).toBe(7);
  expect(version(path)).toEqual([2, true, 6]);
  expect(await found(store, "needle")).toEqual(["NEEDLE three", "needle two", "Needle one"]);
  expect(await found(store, "the active one of bob")).toEqual(["the active one of bob"]);
});

test.skipIf(!hasFts5)(
  "G3 two processes open it at once: one makes the index, the other waits, and both go on",
  async () => {
    const path = join(tempDir(), "v1.db");
    await makeVersion1(path, many(4000));
    const children = [startChild(CHILD, [path]), startChild(CHILD, [path])].map(ended);
    const ends = await Promise.all(children);
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ]);
    expect(ends.map(({ lines }) => lines.at(-1)).sort()).toEqual(["4001 of 4001", undefined]);
    expect(version(path)).toEqual([2, true, 4001]);
  },
);

test.skipIf(!hasFts5).each([1, 7])(
  "D13 killed at telling %i of the upgrade: the store is as it was, and the next opening makes it",
  async (n) => {
    const path = join(tempDir(), "v1.db");
    await makeVersion1(path, many(2000));
    const { signal, lines } = await ended(startChild(CHILD, [path, String(n)]));
    expect([signal, lines.length]).toEqual(["SIGKILL", n]);
    await using reader = await SqliteCheckpointer.open(path, { readOnly: true });
    expect(await found(reader, "number 7 ")).toEqual(["needle number 7 in the hay"]);
    expect(version(path)).toEqual([1, false, 0]);
    await using store = await SqliteCheckpointer.open(path);
    expect(version(path)).toEqual([2, true, 2001]);
    expect(await found(store, "number 7 ")).toEqual(["needle number 7 in the hay"]);
    expect((await store.archives.read("many", "a1")).messages).toHaveLength(2000);
  },
);
