/** Archives in a SQLite file: when their tables come, what is left after removals, and what other programs do to them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { archiveTexts, found, hasFts5, OpenDatabase } from "./archive-files.ts";

const file = () => join(tempDir(), "threads.db");

test.skipIf(!hasFts5)(
  "a file has none of the archives' tables until its first compaction, which is all or nothing",
  async () => {
    const path = file();
    await using store = await SqliteCheckpointer.open(path);
    const revision = await store.append("t", [userMessage("one"), userMessage("two")]);
    await store.archives.prune("t", { keep: 1 });
    await expect(store.archives.compact("t", { upTo: revision + 1, summary: "no" })).rejects.toThrow("none stands at");
    await store.importThread("other", { messages: [], archives: [] });
    using db = new OpenDatabase(path);
    expect([db.archiveTables(), db.value("SELECT version FROM everthread_schema")]).toEqual([[], 1]);
    await store.archives.compact("t", { upTo: revision - 1, summary: "yes" });
    expect(db.archiveTables()).toContain("everthread_archive_index");
    expect(db.value("SELECT version FROM everthread_schema")).toBe(2);
  },
);

test("stores that were open before, readers too, see a compaction and what retention removed", async () => {
  const path = file();
  await using writer = await SqliteCheckpointer.open(path, { journalMode: "wal" });
  await writer.append("t", [userMessage("one"), userMessage("two"), userMessage("three")]);
  await using reader = await SqliteCheckpointer.open(path, { readOnly: true });
  await using other = await SqliteCheckpointer.open(path);
  expect((await reader.load("t"))?.messages).toHaveLength(3);
  expect(await found(other, "one")).toEqual([]);
  for (const upTo of [1, 2]) await writer.archives.compact("t", { upTo, summary: `up to ${upTo}` });
  await writer.archives.prune("t", { keep: 1 });
  for (const store of [reader, other]) {
    const loaded = await store.load("t");
    expect([loaded?.summary, loaded?.messages.map(textOf)]).toEqual(["up to 2", ["three"]]);
    expect([await found(store, "two"), await found(store, "one")]).toEqual([["two"], []]);
  }
  expect((await other.archives.compact("t", { upTo: 3, summary: "all" })).archiveId).toBe("a3");
});

test.skipIf(!hasFts5)(
  "S12 S14 what is removed leaves nothing behind: no row, no entry of the index, and the index is sound",
  async () => {
    const path = file();
    await using store = await SqliteCheckpointer.open(path);
    using db = new OpenDatabase(path);
    const entries = () => db.value("SELECT count(*) FROM everthread_archive_index_docsize");
    for (let round = 1; round <= 3; round++) {
      for (const text of ["apple", "berry", "cherry"]) await archiveTexts(store, "t", [`${text} ${round}`, "and more"]);
      await archiveTexts(store, "kept", [`kept ${round}`]);
      expect(entries()).toBe(6 + round);
      await store.archives.prune("t", { keep: 1 });
      expect(entries()).toBe(2 + round);
      expect(await found(store, "and more", "t")).toEqual(["and more"]);
      await store.deleteThread("t");
      expect(await store.deleteThread("t")).toBe(false);
      expect(entries()).toBe(round);
      expect(await found(store, "cherry")).toEqual([]);
      expect(await store.checkIntegrity()).toEqual([]);
    }
    await store.deleteThread("kept");
    expect(entries()).toBe(0);
    expect(db.value("SELECT count(*) FROM everthread_archives")).toBe(0);
  },
);

test.skipIf(!hasFts5)("checkIntegrity finds damage in the index", async () => {
  const path = file();
  await using store = await SqliteCheckpointer.open(path);
  await archiveTexts(
    store,
    "t",
    Array.from({ length: 50 }, (_, i) => `text number ${i}`),
  );
  expect(await store.checkIntegrity()).toEqual([]);
  using db = new OpenDatabase(path);
  // Newer versions of Node keep an index's own tables from being written to.
  db.enableDefensive?.(false);
  db.exec("UPDATE everthread_archive_index_data SET block = zeroblob(length(block)) WHERE id > 1000");
  expect((await store.checkIntegrity()).join()).toMatch(/everthread_archive_index/);
  // Messages are not damaged, and their thread goes on.
  expect((await store.load("t"))?.summary).toBe("50 texts");
});

test("VACUUM and backups keep positions, archives and what is found", async () => {
  const path = file();
  await using store = await SqliteCheckpointer.open(path);
  await store.append("before", [userMessage("gone")]);
  await archiveTexts(store, "t", ["needle one", "needle two"]);
  await store.deleteThread("before");
  const before = [await store.archives.list("t"), await store.archives.search("needle"), await store.load("t")];
  using db = new OpenDatabase(path);
  db.exec("VACUUM");
  const state = async (of: SqliteCheckpointer) => [
    await of.archives.list("t"),
    await of.archives.search("needle"),
    await of.load("t"),
  ];
  expect(await state(store)).toEqual(before);
  await store.backup(`${path}.bak`);
  await using copy = await SqliteCheckpointer.open(`${path}.bak`);
  expect(await state(copy)).toEqual(before);
  expect(await copy.checkIntegrity()).toEqual([]);
});

test("G12 a thread that plain SQL deleted leaves no summary to one that is begun anew, and is found no more", async () => {
  const path = file();
  await using store = await SqliteCheckpointer.open(path);
  await archiveTexts(store, "t", ["ghost one", "ghost two"]);
  await archiveTexts(store, "other", ["ghost of another"]);
  await store.saveExtra("t", { kept: true });
  using db = new OpenDatabase(path);
  db.exec("DELETE FROM messages WHERE thread_id = 't'");
  expect(await store.load("t")).toMatchObject({ messages: [], revision: 0, extra: { kept: true } });
  expect((await store.load("t"))?.summary).toBeUndefined();
  for (const query of ["ghost", "gh"]) expect(await found(store, query)).toEqual(["ghost of another"]);
  const upTo = await store.append("t", [userMessage("anew"), userMessage("and on")], { expectedRevision: 0 });
  expect((await store.load("t"))?.messages.map(textOf)).toEqual(["anew", "and on"]);
  const archive = await store.archives.compact("t", { upTo, summary: "new" });
  expect([archive.archiveId, archive.messageCount]).toEqual(["a1", 2]);
  expect(await found(store, "anew")).toEqual(["anew"]);
  expect(await found(store, "ghost")).toEqual(["ghost of another"]);
  expect(await store.checkIntegrity()).toEqual([]);
});

test("G12 a thread of which plain SQL removed some messages keeps its summary", async () => {
  const path = file();
  await using store = await SqliteCheckpointer.open(path);
  await archiveTexts(store, "t", ["one", "two"]);
  await store.append("t", [userMessage("three")]);
  using db = new OpenDatabase(path);
  db.exec("DELETE FROM messages WHERE thread_id = 't' AND id = 2");
  expect(await store.load("t")).toMatchObject({ summary: "2 texts", compactedUpTo: 2, revision: 3 });
  expect(await found(store, "one")).toEqual(["one"]);
});

test.each(["sqlite", "memory"])(
  "retention may remove all that a thread has; its summary stays (%s)",
  async (engine) => {
    await using store = engine === "memory" ? new MemoryCheckpointer() : await SqliteCheckpointer.open(file());
    const createdAt = new Date(0);
    const archive = { createdAt, system: null, extra: {}, prunedAt: null };
    const revision = await store.importThread("t", {
      messages: [{ message: userMessage("one"), createdAt }],
      archives: [
        { ...archive, archiveId: "a1", messageCount: 1, summary: "first" },
        { ...archive, archiveId: "a2", messageCount: 0, summary: "second" },
      ],
    });
    expect(await store.archives.prune("t", { keep: 1 })).toEqual({ pruned: ["a1"], protected: [] });
    expect(await store.load("t")).toMatchObject({ messages: [], summary: "second", revision });
    expect((await store.listThreads()).items).toMatchObject([{ threadId: "t", messageCount: 0, revision }]);
    expect((await store.archives.list("t")).items.map(({ messageCount }) => messageCount)).toEqual([0, 0]);
    const next = await store.append("t", [userMessage("two")], { expectedRevision: revision });
    expect(next).toBeGreaterThan(revision);
    expect((await store.load("t"))?.messages.map(textOf)).toEqual(["two"]);
    expect(await store.deleteThread("t")).toBe(true);
    expect(await store.load("t")).toBeUndefined();
    expect((await store.listThreads()).items).toEqual([]);
  },
);

test.each(["delete", "wal"] as const)("C6 a search under way keeps no writer out (%s)", async (journalMode) => {
  const path = file();
  await using store = await SqliteCheckpointer.open(path, { journalMode, durability: "off" });
  await archiveTexts(
    store,
    "t",
    Array.from({ length: 5000 }, (_, i) => `${i} ${"x y ".repeat(200)}`),
  );
  await using other = await SqliteCheckpointer.open(path, { busyTimeoutMs: 0 });
  let done = false;
  const search = store.archives.search("xy", { timeLimitMs: 60_000 }).finally(() => {
    done = true;
  });
  let writes = 0;
  for (; !done; writes++) await other.append("u", [userMessage("meanwhile")]);
  expect((await search).hits).toEqual([]);
  expect(writes).toBeGreaterThan(2);
  if (journalMode === "wal") {
    // No reader pins the log: all of it can be moved to the file.
    using db = new OpenDatabase(path);
    expect(db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()).toMatchObject({ busy: 0 });
    expect(readFileSync(`${path}-wal`)).toHaveLength(0);
  }
});
