/** Connections: what becomes of broken ones, what is tried again, waits that end, and errors without secrets. */
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection, createPool } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { hasMysql, hasOwnServer, mysqlLabel, OwnServer, type TestDatabase, testDatabase } from "../support/mysql.ts";
import { TcpProxy } from "../support/proxy.ts";

const texts = async (store: MySQLCheckpointer, threadId = "t") =>
  ((await store.load(threadId))?.messages ?? []).map(textOf);

describe.skipIf(!hasMysql)(`connections to MySQL (${mysqlLabel})`, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  beforeEach(() => database.empty());
  afterAll(() => database[Symbol.asyncDispose]());

  /** The ids of the connections to the database. @param state the ones at work, or all */
  async function connections(state: "all" | "working" = "all"): Promise<number[]> {
    const rows = await database.sql(
      "SELECT id AS id, command AS command FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()",
      [database.name],
    );
    return rows
      .filter((row) => state === "all" || (row.command ?? row.COMMAND) !== "Sleep")
      .map((row) => Number(row.id ?? row.ID));
  }
  /** Ends connections, as an administrator or a timeout does. */
  async function kill(ids: readonly number[]): Promise<void> {
    for (const id of ids) await database.admin.query("KILL ?", [id]).catch(() => undefined);
  }
  /** Resolves once so many connections work at a statement, which here means that they wait, and gives their ids. */
  async function waiting(count: number): Promise<number[]> {
    for (;;) {
      const ids = await connections("working");
      if (ids.length >= count) return ids;
      await sleep(5);
    }
  }
  /** Holds the lock of thread "t", as CubeLoop takes it, until it is called. */
  async function holdLock(): Promise<() => Promise<void>> {
    const holder = await createConnection({ uri: database.url });
    await holder.query("INSERT IGNORE INTO cubepi_threads (thread_id) VALUES ('t')");
    await holder.query("START TRANSACTION");
    await holder.query("SELECT thread_id FROM cubepi_threads WHERE thread_id = 't' FOR UPDATE");
    return () => holder.end();
  }

  test("L10 L11 idle connections that the server ends do no harm: the process lives and the next append works", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    await Promise.all(Array.from({ length: 5 }, (_, i) => store.append("t", [userMessage(`${i}`)])));
    await kill(await connections());
    await store.append("t", [userMessage("after")]);
    expect(await texts(store)).toHaveLength(6);
    await kill(await connections());
    expect((await texts(store)).at(-1)).toBe("after");
  });

  test("the same with a pool of the host, which is not ended", async () => {
    const pool = createPool({ uri: database.url, connectionLimit: 3 });
    await using store = await MySQLCheckpointer.open({ pool });
    await store.append("t", [userMessage("before")]);
    await kill(await connections());
    await store.append("t", [userMessage("after")]);
    expect(await texts(store)).toEqual(["before", "after"]);
    await store.close();
    expect((await pool.query("SELECT 1 AS one"))[0]).toEqual([{ one: 1 }]);
    await pool.end();
  });

  test("a connection ended in the middle of an append: it is tried again, and stored once", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const release = await holdLock();
    const append = store.append("t", [userMessage("once")]);
    const [id] = await waiting(1);
    await kill([id ?? 0]);
    while ((await waiting(1)).includes(id ?? 0)) await sleep(5);
    await release();
    await append;
    expect(await texts(store)).toEqual(["once"]);
  });

  test("a lost answer to COMMIT: without an expected revision the outcome is unknown, and nothing is doubled", async () => {
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url), { maxPoolSize: 1 });
    await store.append("t", [userMessage("before")]);
    const trips = proxy.roundTrips;
    await store.append("t", [userMessage("counted")]);
    const perAppend = proxy.roundTrips - trips;
    proxy.loseAnswer(perAppend);
    const lost = { code: "connection_lost", outcome: "unknown" };
    await expect(store.append("t", [userMessage("lost")])).rejects.toMatchObject(lost);
    expect(await texts(store)).toEqual(["before", "counted", "lost"]);
  });

  test("C11 a lost answer: with an expected revision, or before COMMIT, the append is stored once", async () => {
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url), { maxPoolSize: 1 });
    let revision = await store.append("t", [userMessage("first")]);
    const trips = proxy.roundTrips;
    revision = await store.append("t", [userMessage("0a"), userMessage("0b")], { expectedRevision: revision });
    const perAppend = proxy.roundTrips - trips;
    const expected = ["first", "0a", "0b"];
    for (let answer = 1; answer <= perAppend; answer++) {
      proxy.loseAnswer(answer);
      const batch = [userMessage(`${answer}a`), userMessage(`${answer}b`)];
      revision = await store.append("t", batch, { expectedRevision: revision });
      expected.push(`${answer}a`, `${answer}b`);
      const loaded = await store.load("t");
      expect([loaded?.messages.map(textOf), loaded?.revision]).toEqual([expected, revision]);
    }
  });

  test("C11 when another writer came first meanwhile, the lost append is a conflict", async () => {
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url), { maxPoolSize: 1 });
    const before = await store.append("t", [userMessage("before")]);
    proxy.loseAnswer(2, () =>
      database.script(`DELETE FROM cubepi_messages WHERE thread_id = 't' AND seq > 1;
INSERT INTO cubepi_messages (thread_id, seq, role, payload) SELECT thread_id, 2, role, payload FROM cubepi_messages WHERE thread_id = 't';
`),
    );
    const work = store.append("t", [userMessage("ours")], { expectedRevision: before });
    await expect(work).rejects.toMatchObject({ code: "thread_conflict", expected: before });
    expect(await texts(store)).toEqual(["before", "before"]);
  });

  test("a read whose answer is lost is read again", async () => {
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url), { maxPoolSize: 1 });
    await store.append("t", [userMessage("here")]);
    proxy.loseNextAnswer();
    expect(await texts(store)).toEqual(["here"]);
  });

  test("a deadlock that the server breaks is tried again", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    for (const id of ["a", "b", "t"]) await store.append(id, [userMessage("hi", { run_id: "run" })]);
    for (const id of ["a", "b"]) {
      await store.claimRun(id, "run");
      await store.markRunComplete(id, "run");
    }
    // Each holds its source's row and wants that of its target.
    const forks = Array.from({ length: 20 }, (_, i) =>
      i % 2 === 0 ? store.fork("a", "b", { afterRunId: "run" }) : store.fork("b", "a", { afterRunId: "run" }),
    );
    for (const { reason } of (await Promise.allSettled(forks)) as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({ code: "thread_already_exists" });
    }
  });

  test("a lock that another program holds too long is a LockTimeoutError, and the next append works", async () => {
    await using store = await MySQLCheckpointer.open(database.url, { lockTimeoutMs: 100 });
    const release = await holdLock();
    const work = store.append("t", [userMessage("no")]);
    expect(await store.load("t")).toBeUndefined();
    await expect(work).rejects.toMatchObject({ code: "lock_timeout", message: /lockTimeoutMs/ });
    await release();
    await store.append("t", [userMessage("yes")]);
    expect(await texts(store)).toEqual(["yes"]);
  });

  test("Y3 a thread's lock is of one database", async () => {
    await using other = await testDatabase();
    await using store = await MySQLCheckpointer.open(other.url, { lockTimeoutMs: 100 });
    const release = await holdLock();
    await store.append("t", [userMessage("elsewhere")]);
    await release();
  });

  test("a pool that is exhausted is an error after the stated time, and connections that come late go back", async () => {
    const pool = createPool({ uri: database.url, connectionLimit: 1 });
    // To connect may take longer than the time that is tested.
    (await pool.getConnection()).release();
    await using store = await MySQLCheckpointer.open({ pool }, { connectTimeoutMs: 100, maxPoolSize: 1 });
    const taken = await pool.getConnection();
    const started = performance.now();
    await expect(store.load("t")).rejects.toMatchObject({ code: "pool_exhausted" });
    expect(performance.now() - started).toBeGreaterThan(90);
    taken.release();
    await store.append("t", [userMessage("works")]);
    expect(await texts(store)).toEqual(["works"]);
    await store.close();
    await pool.end();
  });

  test("a pool of our own says so too", async () => {
    await using store = await MySQLCheckpointer.open(database.url, { maxPoolSize: 1, connectTimeoutMs: 150 });
    const release = await holdLock();
    const held = store.append("t", [userMessage("waits")]);
    await waiting(1);
    await expect(store.load("t")).rejects.toThrow(/All 1 connections of the pool were in use for 150 ms/);
    await release();
    await held;
  });

  test("what can't be opened says why, and never the password", async () => {
    const url = new URL(database.url);
    const at = (change: (url: URL) => void) => {
      const changed = new URL(url);
      change(changed);
      return MySQLCheckpointer.open(changed.href, { connectTimeoutMs: 2000 }).then(
        () => "opened",
        (error: unknown) => error as Error & { code?: string },
      );
    };
    const wrong = await at((u) => {
      u.username = "nobody";
      u.password = "s3cret%40";
    });
    const gone = await at((u) => {
      u.password = "s3cret";
      u.port = "1";
    });
    const unknown = await at((u) => {
      u.password = "s3cret";
      u.hostname = "no-such-host.invalid";
    });
    const database404 = await at((u) => {
      u.pathname = "/no_such_database";
    });
    const noDatabase = await at((u) => {
      u.pathname = "";
    });
    expect(wrong).toMatchObject({ code: "store_open_failed", message: /Access denied for user 'nobody'/ });
    expect(gone).toMatchObject({ code: "store_open_failed", message: /127\.0\.0\.1:1 can't be used/ });
    expect(unknown).toMatchObject({ code: "store_open_failed", message: /no-such-host\.invalid/ });
    expect(database404).toMatchObject({ code: "store_open_failed", message: /no_such_database/ });
    expect(noDatabase).toMatchObject({ code: "store_open_failed", message: /names no database/ });
    for (const error of [wrong, gone, unknown]) {
      expect(JSON.stringify([String(error), error, (error as Error).cause])).not.toContain("s3cret");
    }
  });

  test.each([
    ["no URL", "localhost/db"],
    ["another protocol", "postgres://u:s3cret@localhost/db"],
    ["an unknown parameter", "mysql://u:s3cret@localhost/db?multipleStatements=true"],
    ["a bad escape", "mysql://u:s3cret%@localhost/db"],
    ["no target", null as unknown as string],
  ])("%s is refused without saying the password", async (_what, target) => {
    const error = await MySQLCheckpointer.open(target).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "invalid_argument" });
    expect(String(error)).not.toContain("s3cret");
  });

  test.each([
    { poolSize: 3 },
    { maxPoolSize: 0 },
    { minPoolSize: 11 },
    { lockTimeoutMs: -1 },
    { connectTimeoutMs: Number.NaN },
    { tablePrefix: "x`; DROP TABLE y" },
    { tablePrefix: "" },
    { tablePrefix: "p".repeat(43) },
  ])("the options %o are refused", async (options) => {
    await expect(MySQLCheckpointer.open(database.url, options)).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe.skipIf(!hasOwnServer)(`a MySQL server that comes and goes (${mysqlLabel})`, () => {
  test("down at open, gone between two calls, and back: clear errors, the process lives, nothing is doubled", async () => {
    await using server = new OwnServer();
    await server.start();
    const database = await testDatabase({ server: server.url });
    await database.admin.end();
    await using store = await MySQLCheckpointer.open(database.url);
    await Promise.all(["1", "2", "3"].map((text) => store.append("t", [userMessage(text)])));
    await server.stop("SIGKILL");
    await expect(MySQLCheckpointer.open(database.url)).rejects.toMatchObject({ code: "store_open_failed" });
    const lost = { code: "connection_lost", outcome: "not_written" };
    await expect(store.append("t", [userMessage("lost")])).rejects.toMatchObject(lost);
    await expect(store.load("t")).rejects.toMatchObject(lost);
    await server.start();
    await store.append("t", [userMessage("4")]);
    expect((await texts(store)).sort()).toEqual(["1", "2", "3", "4"]);
    await server.stop();
    await server.start();
    await store.append("t", [userMessage("5")]);
    expect(await texts(store)).toHaveLength(5);
  });
});
