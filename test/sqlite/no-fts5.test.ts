/** G11: a SQLite without FTS5. Stood in for by a driver that has no such module, and knows no table that needs it. */
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { archiveTexts, found, hasFts5, OpenDatabase } from "./archive-files.ts";

const build = vi.hoisted(() => ({ hasFts5: false }));

vi.mock("node:sqlite", async (original) => {
  const sqlite = await original<typeof import("node:sqlite")>();
  const refuse = (sql: string) => {
    if (!build.hasFts5 && /fts5 \(|(INTO|FROM) everthread_archive_index\b/.test(sql))
      throw new Error("no such module: fts5");
  };
  class WithoutFts5 extends sqlite.DatabaseSync {
    override exec(sql: string) {
      refuse(sql);
      super.exec(sql);
    }
    override prepare(sql: string) {
      refuse(sql);
      return super.prepare(build.hasFts5 ? sql : sql.replace("name = 'fts5'", "0"));
    }
  }
  return { ...sqlite, default: sqlite, DatabaseSync: WithoutFts5 };
});

beforeEach(() => {
  build.hasFts5 = false;
});

test("G11 the store works, search reads the messages, and an older program is kept out all the same", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path);
  expect(store.capabilities.search).toBe(true);
  await archiveTexts(store, "t", ["Needle one", "hay", "needle two"]);
  await archiveTexts(store, "u", ["needle three"]);
  await store.append("t", [userMessage("active needle")]);
  expect(await found(store, "NEEDLE")).toEqual(["needle three", "needle two", "Needle one"]);
  expect(await found(store, "needle", "t")).toEqual(["needle two", "Needle one"]);
  expect(await found(store, "le")).toEqual(["needle three", "needle two", "Needle one"]);
  await store.archives.prune("t", { keep: 1 });
  await store.claimRun("t", "run");
  await store.markRunComplete("t", "run");
  await store.fork("t", "fork", { afterRunId: "run" });
  await store.deleteThread("u");
  expect((await store.load("t"))?.messages.map(textOf)).toEqual(["active needle"]);
  expect(await store.checkIntegrity()).toEqual([]);
  using db = new OpenDatabase(path);
  expect([db.value("SELECT version FROM everthread_schema"), db.archiveTables()]).toEqual([
    2,
    expect.not.arrayContaining(["everthread_archive_index"]),
  ]);
});

test.skipIf(!hasFts5)("G11 a build that has FTS5 makes the index at its next opening", async () => {
  const path = join(tempDir(), "a.db");
  const without = await SqliteCheckpointer.open(path);
  await archiveTexts(without, "t", ["needle one", "needle two"]);
  await without.close();
  build.hasFts5 = true;
  await using store = await SqliteCheckpointer.open(path);
  using db = new OpenDatabase(path);
  expect(db.value("SELECT count(*) FROM everthread_archive_index_docsize")).toBe(2);
  expect(await found(store, "needle")).toEqual(["needle two", "needle one"]);
});

test.skipIf(!hasFts5)(
  "G11 an index that can't be written neither falls behind nor keeps what was to be erased",
  async () => {
    const path = join(tempDir(), "a.db");
    build.hasFts5 = true;
    const withIt = await SqliteCheckpointer.open(path);
    await archiveTexts(withIt, "t", ["needle one"]);
    const upTo = await withIt.append("t", [userMessage("needle two")]);
    await withIt.close();
    build.hasFts5 = false;
    await using store = await SqliteCheckpointer.open(path);
    expect((await store.load("t"))?.summary).toBe("1 texts");
    expect(await found(store, "needle")).toEqual(["needle one"]);
    await expect(store.archives.compact("t", { upTo, summary: "no" })).rejects.toThrow(/no FTS5/);
    await expect(store.deleteThread("t")).rejects.toThrow(/no FTS5/);
    expect(await store.archives.prune("t", { keep: 1 })).toEqual({ pruned: [], protected: [] });
    expect((await store.archives.list("t")).items).toHaveLength(1);
    await store.append("t", [userMessage("more")]);
    await store.append("u", [userMessage("never compacted")]);
    expect(await store.deleteThread("u")).toBe(true);
  },
);
