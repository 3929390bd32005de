/** Paths, permissions and files that are no store: what `open` does with each, and that it leaves them as they are. */
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { openCheckpointer } from "../../src/open.ts";
import { tempDir } from "../support/temp.ts";

const code = (error: string) => expect.objectContaining({ code: error });
const mode = (path: string) => (fs.statSync(path).mode & 0o777).toString(8);

describe("a path that can't be a store is refused, in a sentence of its own, and left as it is", () => {
  test("a directory that is not there", async () => {
    const path = join(tempDir(), "missing", "a.db");
    await expect(SqliteCheckpointer.open(path)).rejects.toThrow(/no directory .*missing\. Create it/);
  });

  test("a directory", async () => {
    const dir = tempDir();
    await expect(SqliteCheckpointer.open(dir)).rejects.toThrow(/is a directory/);
  });

  test.each([
    ["text", Buffer.from("hello, this is a text file of some length ".repeat(10)), /not a SQLite file/],
    ["zeros", Buffer.alloc(8192), /not a SQLite file/],
    ["a few bytes", Buffer.from("SQL"), /not a SQLite file/],
  ])("a file of %s", async (_, content, problem) => {
    const path = join(tempDir(), "a.db");
    fs.writeFileSync(path, content);
    await expect(SqliteCheckpointer.open(path)).rejects.toThrow(problem);
    expect(fs.readFileSync(path)).toEqual(content);
  });

  test("a file that was cut short", async () => {
    const path = join(tempDir(), "a.db");
    const store = await SqliteCheckpointer.open(path);
    for (let i = 0; i < 50; i++) await store.append("t", [userMessage("x".repeat(1000))]);
    await store.close();
    const whole = fs.readFileSync(path);
    for (const size of [whole.length - 1, whole.length - 4096, 5000, 512, 100]) {
      fs.writeFileSync(path, whole.subarray(0, size));
      await expect(SqliteCheckpointer.open(path)).rejects.toThrow(/cut short/);
      await expect(SqliteCheckpointer.open(path, { readOnly: true })).rejects.toThrow(/cut short/);
      expect(fs.statSync(path).size).toBe(size);
    }
  });

  test("a file whose inside is damaged is an error with the reason, not a crash", async () => {
    const path = join(tempDir(), "a.db");
    const store = await SqliteCheckpointer.open(path);
    for (let i = 0; i < 50; i++) await store.append("t", [userMessage("x".repeat(1000))]);
    await store.close();
    const bytes = fs.readFileSync(path);
    bytes.fill(0xff, 4096);
    fs.writeFileSync(path, bytes);
    await expect(SqliteCheckpointer.open(path).then((opened) => opened.load("t"))).rejects.toThrow(/malformed/);
  });

  test("another program's database with a table of the same name", async () => {
    const path = join(tempDir(), "mem0.db");
    const other = new DatabaseSync(path);
    other.exec("CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT)");
    other.close();
    const before = fs.readFileSync(path);
    await expect(SqliteCheckpointer.open(path)).rejects.toThrow(
      /belongs to another program: its table messages has no column thread_id/,
    );
    expect(fs.readFileSync(path)).toEqual(before);
  });

  test("a memory history that has no messages yet", async () => {
    const path = join(tempDir(), "memory.db");
    const other = new DatabaseSync(path);
    other.exec("CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT)");
    other.close();
    const before = fs.readFileSync(path);
    await expect(SqliteCheckpointer.open(path)).rejects.toThrow(/holds a memory history/);
    expect(fs.readFileSync(path)).toEqual(before);
  });

  test("a store of a newer Everthread", async () => {
    const path = join(tempDir(), "a.db");
    await (await SqliteCheckpointer.open(path)).close();
    const newer = new DatabaseSync(path);
    newer.exec("UPDATE everthread_schema SET version = 99");
    newer.close();
    const before = fs.readFileSync(path);
    for (const readOnly of [false, true]) {
      await expect(SqliteCheckpointer.open(path, { readOnly })).rejects.toMatchObject({
        code: "schema_mismatch",
        expected: 2,
        actual: 99,
      });
    }
    expect(fs.readFileSync(path)).toEqual(before);
  });

  test.each([
    ["", "invalid_argument"],
    ["a\0b", "invalid_argument"],
    [42, "invalid_argument"],
    [undefined, "invalid_argument"],
    ["file://elsewhere/a.db", "store_open_failed"],
  ])("the path %j", async (path, error) => {
    await expect(SqliteCheckpointer.open(path as string)).rejects.toEqual(code(error));
  });

  test("an option that is misspelt or of the wrong kind", async () => {
    const path = join(tempDir(), "a.db");
    for (const options of [
      { readonly: true },
      { durability: "most" },
      { journalMode: "memory" },
      { busyTimeoutMs: -1 },
    ]) {
      await expect(SqliteCheckpointer.open(path, options as object)).rejects.toEqual(code("invalid_argument"));
    }
    expect(fs.existsSync(path)).toBe(false);
  });

  test("X12 a kind of store that is not known is refused, never kept in memory instead", async () => {
    await expect(openCheckpointer("redis://localhost")).rejects.toThrow(/no redis: stores/);
  });
});

test("X4 the path is honoured exactly, whatever characters it has, and nothing appears beside it", async () => {
  const dir = tempDir();
  const names = ["plain.db", "with space.db", "a#b.db", "a?b=c.db", "a%20b.db", "~", "ünï.db", "a:b.db"];
  for (const name of names) {
    await using store = await SqliteCheckpointer.open(join(dir, name));
    await store.append("t", [userMessage(name)]);
  }
  expect(fs.readdirSync(dir).sort()).toEqual([...names].sort());
  for (const name of names) {
    await using store = await SqliteCheckpointer.open(pathToFileURL(join(dir, name)));
    expect((await store.load("t"))?.messages.map(textOf)).toEqual([name]);
  }
});

test("X4 a relative path is resolved when the store is opened", async () => {
  const dir = tempDir();
  const script = `
    const { openCheckpointer } = await import(${JSON.stringify(new URL("../../dist/index.js", import.meta.url).href)});
    const store = await openCheckpointer("sqlite:sub/a.db");
    process.chdir("/");
    await store.append("t", [{ role: "user", content: "hi" }]);
    await store.close();`;
  fs.mkdirSync(join(dir, "sub"));
  execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: dir });
  expect(fs.readdirSync(join(dir, "sub"))).toEqual(["a.db"]);
});

test("X6 the file, its WAL and its backup are for the owner only; the mode of a file that was there is kept", async () => {
  const dir = tempDir();
  const path = join(dir, "a.db");
  const umask = process.umask(0o022);
  try {
    await using store = await SqliteCheckpointer.open(path, { journalMode: "wal" });
    await store.append("t", [userMessage("hi")]);
    await store.backup(join(dir, "b.db"));
    for (const name of ["a.db", "a.db-wal", "a.db-shm", "b.db"]) expect(mode(join(dir, name))).toBe("600");
    fs.chmodSync(join(dir, "b.db"), 0o640);
    await using copy = await SqliteCheckpointer.open(join(dir, "b.db"));
    await copy.append("t", [userMessage("more")]);
    expect(mode(join(dir, "b.db"))).toBe("640");
  } finally {
    process.umask(umask);
  }
});

test("a zero-byte file becomes a store when it is opened to write, and is left when it is opened to read", async () => {
  const path = join(tempDir(), "a.db");
  fs.writeFileSync(path, "");
  await expect(SqliteCheckpointer.open(path, { readOnly: true })).rejects.toThrow(/is empty/);
  expect(fs.statSync(path).size).toBe(0);
  await using store = await SqliteCheckpointer.open(path);
  await store.append("t", [userMessage("hi")]);
  expect((await store.load("t"))?.messages).toHaveLength(1);
});

test("X11 opening to read creates nothing, and writes are refused", async () => {
  const dir = tempDir();
  const path = join(dir, "a.db");
  await expect(SqliteCheckpointer.open(path, { readOnly: true })).rejects.toThrow(/no file .*reading creates none/);
  expect(fs.readdirSync(dir)).toEqual([]);
  const store = await SqliteCheckpointer.open(path);
  await store.append("t", [userMessage("hi")]);
  await store.close();
  const before = fs.readFileSync(path);
  await using reader = await SqliteCheckpointer.open(path, { readOnly: true });
  expect((await reader.load("t"))?.messages).toHaveLength(1);
  await expect(reader.append("t", [userMessage("no")])).rejects.toEqual(code("store_read_only"));
  await expect(reader.deleteThread("t")).rejects.toEqual(code("store_read_only"));
  expect(fs.readFileSync(path)).toEqual(before);
});

test("X11 a database that holds no conversations is not given tables by a reader", async () => {
  const path = join(tempDir(), "a.db");
  const other = new DatabaseSync(path);
  other.exec("CREATE TABLE notes (body TEXT)");
  other.close();
  const before = fs.readFileSync(path);
  await expect(SqliteCheckpointer.open(path, { readOnly: true })).rejects.toThrow(/holds no conversations/);
  expect(fs.readFileSync(path)).toEqual(before);
});

for (const journalMode of ["delete", "wal"] as const) {
  test(`X5 a store on a read-only file system is read, and says plainly that it can't be written (${journalMode})`, async ({
    skip,
  }) => {
    const dir = tempDir();
    const store = await SqliteCheckpointer.open(join(dir, "a.db"), { journalMode });
    await store.append("t", [userMessage("hi")]);
    await store.close();
    try {
      execFileSync("mount", ["--bind", dir, dir], { stdio: "ignore" });
      execFileSync("mount", ["-o", "remount,ro,bind", dir], { stdio: "ignore" });
    } catch {
      skip("needs root and mount");
    }
    try {
      await expect(SqliteCheckpointer.open(join(dir, "a.db"))).rejects.toThrow(/may not be written/);
      const opening = SqliteCheckpointer.open(join(dir, "a.db"), { readOnly: true });
      if (journalMode === "wal" && /^v22\.1[34]\./.test(process.version)) {
        await expect(opening).rejects.toThrow(/needs Node 22\.15 or later/);
      } else {
        await using reader = await opening;
        expect((await reader.load("t"))?.messages).toHaveLength(1);
      }
    } finally {
      execFileSync("umount", [dir]);
    }
  });
}

test("the journal mode is left as found, and switched only when asked", async () => {
  const path = join(tempDir(), "a.db");
  const journal = () => {
    const db = new DatabaseSync(path, { readOnly: true });
    const found = db.prepare("PRAGMA journal_mode").get()?.journal_mode;
    db.close();
    return found;
  };
  await (await SqliteCheckpointer.open(path)).close();
  expect(journal()).toBe("delete");
  await (await SqliteCheckpointer.open(path, { journalMode: "wal" })).close();
  expect(journal()).toBe("wal");
  await (await SqliteCheckpointer.open(path)).close();
  expect(journal()).toBe("wal");
  await (await SqliteCheckpointer.open(path, { journalMode: "delete" })).close();
  expect(journal()).toBe("delete");
});

test("a plain cp of a closed file is a backup", async () => {
  const dir = tempDir();
  const store = await SqliteCheckpointer.open(join(dir, "a.db"));
  await store.append("t", [userMessage("hi")]);
  await store.close();
  expect(fs.readdirSync(dir)).toEqual(["a.db"]);
  fs.copyFileSync(join(dir, "a.db"), join(dir, "b.db"));
  await using copy = await SqliteCheckpointer.open(join(dir, "b.db"));
  expect((await copy.load("t"))?.messages).toHaveLength(1);
});

test("backup copies one moment of a store that is being written, and overwrites nothing", async () => {
  const dir = tempDir();
  await using store = await SqliteCheckpointer.open(join(dir, "a.db"));
  for (let i = 0; i < 30; i++) await store.append("t", [userMessage("x".repeat(10_000))]);
  let stop = false;
  const writing = (async () => {
    while (!stop) await store.append("t", [userMessage("more")]);
  })();
  await store.backup(join(dir, "b.db"));
  stop = true;
  await writing;
  await using copy = await SqliteCheckpointer.open(join(dir, "b.db"));
  const copied = (await copy.load("t"))?.messages ?? [];
  expect(copied).toEqual((await store.load("t"))?.messages.slice(0, copied.length));
  expect(copied.length).toBeGreaterThanOrEqual(30);
  expect(await copy.checkIntegrity()).toEqual([]);
  const before = fs.readFileSync(join(dir, "b.db"));
  await expect(store.backup(join(dir, "b.db"))).rejects.toThrow(/there already; nothing was overwritten/);
  expect(fs.readFileSync(join(dir, "b.db"))).toEqual(before);
  await expect(store.backup(join(dir, "none", "b.db"))).rejects.toEqual(code("store_open_failed"));
});

test("D11 the bundled SQLite is past the WAL-reset bug (3.51.3, 3.50.7, 3.44.6), or WAL is not the default", async () => {
  const [major, minor, patch] = String(process.versions.sqlite).split(".").map(Number) as [number, number, number];
  const fixed = major > 3 || minor > 51 || (minor === 51 && patch >= 3) || (minor === 50 && patch >= 7);
  await using store = await SqliteCheckpointer.open(join(tempDir(), "a.db"));
  await store.append("t", [userMessage("hi")]);
  expect(fixed || !fs.existsSync(`${store.path}-wal`)).toBe(true);
});

test("L3 2,000 appends of 500 bytes make a file under twice the raw JSON, growing evenly", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path);
  const message = userMessage("x".repeat(380), { timestamp: 1, run_id: "r".repeat(32) });
  const raw = Buffer.byteLength(JSON.stringify(message));
  const sizes: number[] = [];
  for (let part = 0; part < 4; part++) {
    await Promise.all(Array.from({ length: 500 }, () => store.append("thread", [message])));
    sizes.push(fs.statSync(path).size);
  }
  expect(Number(sizes[3]) / (2000 * raw)).toBeLessThan(1.6);
  const growth = sizes.slice(1).map((size, i) => size - Number(sizes[i]));
  expect(Math.max(...growth) / Math.min(...growth)).toBeLessThan(1.1);
});

test("G3 two processes' worth of stores open an old file of 50,000 messages at once: one migrates, the other waits", async () => {
  const path = join(tempDir(), "v3.db");
  const old = new DatabaseSync(path);
  old.exec(`CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, message_json TEXT NOT NULL,
      created_at REAL NOT NULL DEFAULT (julianday('now')));
    CREATE TABLE thread_extra (thread_id TEXT PRIMARY KEY, extra_json TEXT NOT NULL DEFAULT '{}');
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
    INSERT INTO messages (thread_id, message_json)
      SELECT 't' || (i % 50), '{"role":"user","content":[{"type":"text","text":"' || i || '"}]}' FROM n`);
  old.close();
  const stores = await Promise.all([1, 2, 3, 4].map(() => SqliteCheckpointer.open(path)));
  for (const store of stores) {
    expect((await store.listThreads()).items.map((item) => item.messageCount)).toEqual(Array(50).fill(1000));
    await store.close();
  }
});

test("E12 50,000 messages of a thread are listed page by page", async () => {
  await using store = await SqliteCheckpointer.open(":memory:");
  for (let i = 0; i < 50; i++)
    await store.append(
      "t",
      Array.from({ length: 1000 }, (_, n) => userMessage(`${i * 1000 + n}`)),
    );
  let seen = 0;
  for (let after: number | null = 0; after !== null; ) {
    const page: Awaited<ReturnType<typeof store.listMessages>> = await store.listMessages("t", { after, limit: 5000 });
    for (const { message } of page.items) expect(message && textOf(message)).toBe(String(seen++));
    after = page.next;
  }
  expect(seen).toBe(50_000);
});

test("the journal mode of another program's file is not switched in passing", async () => {
  const path = join(tempDir(), "other.db");
  const other = new DatabaseSync(path);
  other.exec("CREATE TABLE messages (id TEXT PRIMARY KEY, body TEXT)");
  other.close();
  const before = fs.readFileSync(path);
  await expect(SqliteCheckpointer.open(path, { journalMode: "wal" })).rejects.toThrow(/belongs to another program/);
  expect(fs.readFileSync(path)).toEqual(before);
});

test("saving extra leaves the numbers of other keys as another program wrote them", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path);
  await store.saveExtra("t", { mine: 1 });
  await store.claimRun("t", "run");
  await store.append("t", [userMessage("hi", { run_id: "run" })]);
  await store.markRunComplete("t", "run");
  const other = new DatabaseSync(path);
  other.exec(
    `UPDATE thread_extra SET extra_json = '{"big": 12345678901234567890, "float": 1.0, "in": [{"x": 1e2}], "mine": 1}'`,
  );
  await store.saveExtra("t", { mine: 2 });
  await store.fork("t", "f", { afterRunId: "run" });
  const rows = other.prepare("SELECT extra_json FROM thread_extra ORDER BY thread_id").all();
  other.close();
  for (const row of rows) {
    expect(row.extra_json).toBe('{"big":12345678901234567890,"float":1.0,"in":[{"x":1e2}],"mine":2}');
  }
  expect((await store.load("t"))?.extra).toMatchObject({ float: 1, in: [{ x: 100 }], mine: 2 });
});

test.each(["sqlite://a.db", "file:./a.db", "file:a.db"])(
  "%s would be a file of the root directory, and is refused",
  async (url) => {
    await expect(openCheckpointer(url)).rejects.toEqual(code("store_open_failed"));
  },
);

test("options of writing are refused for a store opened to read", async () => {
  const path = join(tempDir(), "a.db");
  await (await SqliteCheckpointer.open(path)).close();
  await expect(SqliteCheckpointer.open(path, { readOnly: true, journalMode: "wal" })).rejects.toEqual(
    code("invalid_argument"),
  );
});

test("a backup's path is checked like a store's", async () => {
  await using store = await SqliteCheckpointer.open(":memory:");
  await expect(store.backup("")).rejects.toEqual(code("invalid_argument"));
  await expect(store.backup(join(tempDir(), "none", "b.db"))).rejects.toThrow(/There is no directory/);
});

test("X11 reading a file in WAL mode leaves nothing beside it, and the file as it was", async () => {
  const dir = tempDir();
  const path = join(dir, "a.db");
  const store = await SqliteCheckpointer.open(path, { journalMode: "wal" });
  await store.append("t", [userMessage("hi")]);
  await store.close();
  const before = fs.readFileSync(path);
  const reader = await SqliteCheckpointer.open(path, { readOnly: true });
  expect((await reader.load("t"))?.messages).toHaveLength(1);
  await expect(reader.append("t", [userMessage("no")])).rejects.toEqual(code("store_read_only"));
  await reader.close();
  expect(fs.readdirSync(dir)).toEqual(["a.db"]);
  expect(fs.readFileSync(path)).toEqual(before);
});
