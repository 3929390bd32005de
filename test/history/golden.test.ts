/** Files that Mem0 wrote, of every schema it published: opened, upgraded, compared and continued. See test/golden/mem0/README.md. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { InMemoryHistory } from "../../src/history/memory/history.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { readMem0File } from "../../src/history/sqlite/mem0-file.ts";
import { importContent } from "../../src/history/transfer.ts";
import { tempDir } from "../support/temp.ts";
import { asRecord, columnsOf, expectedOf, golden, sql } from "./files.ts";

const RELEASES = ["mem0-0.0.9", "mem0-0.1.40", "mem0-0.1.102", "mem0-2.2.1", "mem0-upgraded"];
const CURRENT = "mem0-2.2.1";

describe.each(RELEASES)("%s", (name) => {
  test("L32 everything in it is what Mem0 itself reads", async () => {
    await using history = await SqliteMemoryHistory.open(golden(tempDir(), name));
    const { histories, windows } = expectedOf(name);
    let count = 0;
    for (const [memoryId, rows] of Object.entries(histories)) {
      const log = await history.get(memoryId);
      count += log.length;
      const byId = new Map(log.map((record) => [record.id, record]));
      expect(log).toHaveLength(rows.length);
      for (const row of rows.map(asRecord)) expect(byId.get(String(row.id))).toMatchObject(row);
    }
    expect((await history.list({ limit: 10_000 })).items).toHaveLength(count);
    for (const [scope, messages] of Object.entries(windows)) {
      const window = await history.recentMessages(scope);
      expect(window).toHaveLength(messages.length);
      // Mem0 orders by a time that a batch shares, so which of it came first is not in what it reads.
      expect(window).toEqual(expect.arrayContaining(messages));
    }
    expect((await history.listScopes()).items.map(({ scope }) => scope).sort()).toEqual(Object.keys(windows).sort());
  });

  test("L32 opening it brings the tables up to date and leaves every row as it was, again and again", async () => {
    const path = golden(tempDir(), name);
    const before = sql(path, "SELECT rowid, * FROM history ORDER BY rowid");
    for (let i = 0; i < 2; i++) await (await SqliteMemoryHistory.open(path)).close();
    const current = golden(tempDir(), CURRENT);
    for (const table of ["history", "messages"]) expect(columnsOf(path, table)).toEqual(columnsOf(current, table));
    const after = sql(path, "SELECT rowid, * FROM history ORDER BY rowid");
    expect(after.map(({ rowid, id, memory_id, event }) => [rowid, id, memory_id, event])).toEqual(
      before.map(({ rowid, id, memory_id, event }) => [rowid, id, memory_id, event]),
    );
    for (const [i, row] of before.entries()) {
      const { prev_value, new_value, timestamp, ...rest } = row;
      expect(after[i]).toMatchObject(rest);
      if (prev_value !== undefined) expect(after[i]?.old_memory).toBe(prev_value);
      if (prev_value !== undefined) expect(after[i]?.new_memory).toBe(new_value);
      if (timestamp !== undefined) expect(after[i]).toMatchObject({ created_at: timestamp, updated_at: timestamp });
    }
    const bytes = readFileSync(path);
    await (await SqliteMemoryHistory.open(path)).close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(sql(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  test("X11 a read-only open shows the same and changes nothing", async () => {
    const path = golden(tempDir(), name);
    const before = { bytes: readFileSync(path), mtimeMs: statSync(path).mtimeMs };
    const history = await SqliteMemoryHistory.open(path, { readOnly: true });
    const shown = [await history.list(), await history.get("m-1"), await history.recentMessages("user_id=ada")];
    await expect(history.add({ memory_id: "m", event: "ADD" })).rejects.toMatchObject({ code: "store_read_only" });
    await history.close();
    expect(readFileSync(path).equals(before.bytes)).toBe(true);
    expect(statSync(path).mtimeMs).toBe(before.mtimeMs);
    await using upgraded = await SqliteMemoryHistory.open(path);
    expect(shown).toEqual([
      await upgraded.list(),
      await upgraded.get("m-1"),
      await upgraded.recentMessages("user_id=ada"),
    ]);
  });

  test("G2 it can be continued", async () => {
    await using history = await SqliteMemoryHistory.open(golden(tempDir(), name));
    const before = await history.get("m-1");
    const added = await history.add({ memory_id: "m-1", event: "ADD", new_memory: "again", actor_id: "us" });
    expect(await history.get("m-1")).toEqual([...before, added]);
    await history.saveMessages("user_id=ada", [{ role: "user", content: "from here" }]);
    expect((await history.recentMessages("user_id=ada")).at(-1)?.content).toBe("from here");
    expect(await history.restoreAt("m-1", "2025-06-15T15:06:40.1235Z")).toBe("Likes tea");
    expect(await history.restoreAt("m-1", new Date())).toBe("again");
  });
});

describe("mem0-npm, a file of the TypeScript package", () => {
  test("is refused as a history, with what to do, and left as it is", async () => {
    const path = golden(tempDir(), "mem0-npm");
    const before = readFileSync(path);
    for (const readOnly of [false, true]) {
      await expect(SqliteMemoryHistory.open(path, { readOnly })).rejects.toThrow(/TypeScript package .*Import it/);
    }
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test.each(["memory", "sqlite"])("is imported whole, once (%s)", async (engine) => {
    const dir = tempDir();
    const path = golden(dir, "mem0-npm");
    const before = readFileSync(path);
    await using history =
      engine === "memory" ? new InMemoryHistory() : await SqliteMemoryHistory.open(join(dir, "new.db"));
    await history.saveMessages("userId=ada", [{ role: "user", content: "here before" }]);
    await importContent(history, await readMem0File(path));
    const { histories, windows } = expectedOf("mem0-npm");
    for (const [memoryId, rows] of Object.entries(histories)) {
      const log = (await history.get(memoryId)).reverse();
      expect(log.map((record) => [record.old_memory, record.new_memory, record.event, record.is_deleted])).toEqual(
        rows.map((row) => [row.previous_value, row.new_value, row.action, Boolean(row.is_deleted)]),
      );
      expect(log.map((record) => record.created_at && Date.parse(record.created_at))).toEqual(
        rows.map((row) => row.created_at && Date.parse(String(row.created_at))),
      );
    }
    const window = await history.recentMessages("userId=ada");
    expect(window.map(({ content, name }) => [content, name])).toEqual([
      ["here before", null],
      ...(windows["userId=ada"] ?? []).map(({ content, name }) => [content, name ?? null]),
    ]);
    await expect(importContent(history, await readMem0File(path))).rejects.toMatchObject({ code: "duplicate_record" });
    expect(await history.get("m-1")).toHaveLength(3);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("another file is none", async () => {
    const path = golden(tempDir(), CURRENT);
    await expect(readMem0File(path)).rejects.toThrow(/no table memory_history/);
  });
});
