/** Many writers on one file: in one process, in several, and while another program holds the lock. */
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";

const MANY = new URL("./many-writer.mjs", import.meta.url);
const HOLDER = new URL("./lock-holder.mjs", import.meta.url);

test("C1 25 stores opened at once on a new file, one append each: all there, no error", async () => {
  const path = join(tempDir(), "new.db");
  await Promise.all(
    Array.from({ length: 25 }, async (_, i) => {
      await using store = await SqliteCheckpointer.open(path);
      await store.append("t", [userMessage(`${i}`)]);
    }),
  );
  await using store = await SqliteCheckpointer.open(path);
  expect(new Set((await store.load("t"))?.messages.map(textOf)).size).toBe(25);
});

test("C1 C4 20 processes open one new file at once and append 50 messages each to one thread", async () => {
  const path = join(tempDir(), "new.db");
  const children = Array.from({ length: 20 }, (_, i) => ended(startChild(MANY, [path, `w${i}`, "50"])));
  for (const child of await Promise.all(children)) expect(child).toMatchObject({ code: 0, stderr: "" });
  await using store = await SqliteCheckpointer.open(path);
  const said = (await store.load("t"))?.messages.map(textOf) ?? [];
  expect(said).toHaveLength(1000);
  for (let i = 0; i < 20; i++) {
    const own = said.filter((line) => line.startsWith(`w${i} `));
    expect(own).toEqual(Array.from({ length: 50 }, (_, n) => `w${i} ${n}`));
  }
}, 60_000);

// Without its lock the store would count as unused: the next program to close the file would remove the WAL with what was
// appended. Python's SQLite does.
test.for([
  ["to read", async (path: string) => await (await SqliteCheckpointer.open(path, { readOnly: true })).close()],
  ["to write", async (path: string) => await (await SqliteCheckpointer.open(path)).close()],
  ["as a memory history", async (path: string) => await SqliteMemoryHistory.open(path).catch(() => undefined)],
] as const)(
  "D9 opening a file again %s leaves the locks that this process has on it",
  async ([, openAgain], { skip }) => {
    if (!existsSync("/proc/locks")) skip("Only Linux lists the locks.");
    const path = join(tempDir(), "a.db");
    await using store = await SqliteCheckpointer.open(path, { journalMode: "wal" });
    await store.append("t", [userMessage("one")]);
    const { ino } = statSync(path);
    const ours = () => readFileSync("/proc/locks", "utf8").match(new RegExp(` ${process.pid} \\S+:${ino} `, "g"));
    expect(ours()).toHaveLength(1);
    await openAgain(path);
    expect(ours()).toHaveLength(1);
  },
);

test("C5 a write that follows another connection's commit starts afresh, without an error", async () => {
  const path = join(tempDir(), "a.db");
  await using a = await SqliteCheckpointer.open(path);
  await using b = await SqliteCheckpointer.open(path);
  await a.append("t", [userMessage("one")]);
  await a.load("t");
  const revision = await b.append("t", [userMessage("two")]);
  await a.append("t", [userMessage("three")], { expectedRevision: revision });
  expect((await b.load("t"))?.messages.map(textOf)).toEqual(["one", "two", "three"]);
});

for (const journalMode of ["delete", "wal"] as const) {
  test(`C6 200 appends while another connection reads without a pause (${journalMode})`, async () => {
    const path = join(tempDir(), "a.db");
    await using store = await SqliteCheckpointer.open(path, { journalMode });
    await store.append("t", [userMessage("first")]);
    const reader = new DatabaseSync(path, { readOnly: true });
    const rows = reader.prepare("SELECT id FROM messages");
    let open = rows.iterate();
    let reads = 0;
    // An open iterator holds a shared lock; it is let go for a moment each time, as a reader does.
    const timer = setInterval(() => {
      open.return?.(undefined);
      open = rows.iterate();
      try {
        open.next();
        reads++;
      } catch {
        // A commit is under way: this reader has no wait of its own.
      }
    }, 1);
    for (let i = 0; i < 200; i++) await store.append("t", [userMessage(`${i}`)]);
    clearInterval(timer);
    open.return?.(undefined);
    reader.close();
    expect(reads).toBeGreaterThan(0);
    expect((await store.load("t"))?.messages).toHaveLength(201);
  });
}

test("L9 an append waits for another program's lock of 2 s, and timers go on meanwhile", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path);
  const holder = startChild(HOLDER, [path, "2000"]);
  await once(holder.stdout ?? holder, "data");
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  const started = performance.now();
  await store.append("t", [userMessage("late")]);
  const waited = performance.now() - started;
  clearInterval(timer);
  expect(waited).toBeGreaterThan(1000);
  // 10 ms timers over a wait of 2 s: half of them would do on a busy machine, a blocked loop has none.
  expect(ticks).toBeGreaterThan(waited / 40);
});

test("L9 past the wait it is a LockTimeoutError, nothing is written, and the store goes on", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path, { busyTimeoutMs: 100 });
  const other = new DatabaseSync(path);
  other.exec("BEGIN EXCLUSIVE");
  await expect(store.append("t", [userMessage("lost")])).rejects.toMatchObject({ code: "lock_timeout" });
  await expect(store.load("t")).rejects.toMatchObject({ code: "lock_timeout" });
  other.exec("ROLLBACK");
  other.close();
  await store.append("t", [userMessage("kept")]);
  expect((await store.load("t"))?.messages.map(textOf)).toEqual(["kept"]);
});

test("a reader of another program only delays a commit; what waits is not read before it is committed", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path);
  await store.append("t", [userMessage("first")]);
  const reader = new DatabaseSync(path, { readOnly: true });
  reader.exec("BEGIN");
  reader.prepare("SELECT count(*) FROM messages").get();
  const append = store.append("t", [userMessage("second")]);
  const load = new Promise((resolve) => setTimeout(resolve, 50)).then(() => store.load("t"));
  const first = await Promise.race([
    load.then(() => "load"),
    append.then(() => "append"),
    new Promise((r) => setTimeout(r, 150, "waiting")),
  ]);
  expect(first).toBe("waiting");
  reader.exec("COMMIT");
  reader.close();
  await append;
  expect((await load)?.messages.map(textOf)).toEqual(["first", "second"]);
});

test("writes of one moment share a commit, and one that is refused takes no other with it", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path);
  const changes = new DatabaseSync(path, { readOnly: true });
  const version = () => changes.prepare("PRAGMA data_version").get()?.data_version;
  const before = version();
  const results = await Promise.allSettled([
    store.append("a", [userMessage("1")]),
    store.append("b", [userMessage("2")], { expectedRevision: 7 }),
    store.claimRun("a", "run"),
    store.claimRun("a", "run"),
    store.append("c", [userMessage("3")]),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"]);
  expect(Number(version()) - Number(before)).toBe(1);
  expect(await store.load("b")).toBeUndefined();
  expect((await store.load("c"))?.messages).toHaveLength(1);
  changes.close();
});

test("F9 one store, threads written in turn and at once: each message is in its thread", async () => {
  await using store = await SqliteCheckpointer.open(":memory:");
  await Promise.all(Array.from({ length: 200 }, (_, i) => store.append(`t${i % 4}`, [userMessage(`t${i % 4}`)])));
  for (let i = 0; i < 4; i++) {
    expect((await store.load(`t${i}`))?.messages.map(textOf)).toEqual(Array(50).fill(`t${i}`));
  }
});

test("C4 a writer outwaits a file that is never free for long: what counts is a lock held without a write", async () => {
  const path = join(tempDir(), "a.db");
  await using store = await SqliteCheckpointer.open(path, { busyTimeoutMs: 200 });
  const other = new DatabaseSync(path);
  const write = other.prepare("INSERT INTO messages (thread_id, message_json) VALUES ('other', '{}')");
  other.exec("BEGIN IMMEDIATE");
  const begun = performance.now();
  // The lock is given back and taken again at once, as a busy neighbour does, for several times the wait.
  const timer = setInterval(() => {
    write.run();
    other.exec("COMMIT");
    if (performance.now() - begun < 900) other.exec("BEGIN IMMEDIATE");
    else clearInterval(timer);
  }, 20);
  await store.append("t", [userMessage("patient")]);
  expect(performance.now() - begun).toBeGreaterThan(800);
  clearInterval(timer);
  other.close();
  expect((await store.load("t"))?.messages.map(textOf)).toEqual(["patient"]);
});
