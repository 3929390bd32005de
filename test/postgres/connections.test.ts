/** Connections: how many round trips, what becomes of broken ones, and what is tried again. */
import { once } from "node:events";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { makeDatabase, sharedServer, sql } from "../support/postgres.ts";
import { TcpProxy } from "../support/proxy.ts";

const { url, drop } = await makeDatabase();
const admin = (await sharedServer()).url;
afterAll(drop);
beforeEach(() => sql(url, "DELETE FROM cubepi_threads"));

const name = new URL(url).pathname.slice(1);
const texts = async (store: PostgresCheckpointer, threadId = "t") =>
  ((await store.load(threadId))?.messages ?? []).map(textOf);
/** Ends the connections to the database, as an administrator or a timeout does. */
const terminate = (state: string) =>
  sql(
    admin,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND state = $2 AND pid <> pg_backend_pid()",
    [name, state],
  );
/** Resolves once so many connections to the database wait for an advisory lock. */
async function waiting(count: number): Promise<void> {
  for (;;) {
    const rows = await sql(
      admin,
      "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock' AND wait_event = 'advisory'",
      [name],
    );
    if (rows.length >= count) return;
  }
}
/** Holds the lock of thread "t" until it is called. */
async function holdLock(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("BEGIN");
  await client.query("SELECT pg_advisory_xact_lock(hashtext('t'))");
  return () => client.end();
}

describe("round trips", () => {
  test("an append, and every other method, is one round trip; also when the lock is contended", async () => {
    await using proxy = await TcpProxy.before(url);
    await using store = await PostgresCheckpointer.open(proxy.url(url), { maxPoolSize: 1 });
    const tripsOf = async (work: () => Promise<unknown>) => {
      const before = proxy.roundTrips;
      await work();
      return proxy.roundTrips - before;
    };
    const run = { run_id: "run" };
    const batch = Array.from({ length: 50 }, (_, i) => userMessage(`${i}`, run));
    expect(await tripsOf(() => store.append("t", [userMessage("first")]))).toBe(1);
    expect(await tripsOf(() => store.claimRun("t", "run"))).toBe(1);
    expect(await tripsOf(() => store.append("t", batch))).toBe(1);
    expect(await tripsOf(() => store.append("t", [userMessage("x".repeat(100_000), run)]))).toBe(1);
    expect(await tripsOf(() => store.markRunComplete("t", "run"))).toBe(1);
    expect(await tripsOf(() => store.saveExtra("t", { a: 1 }))).toBe(1);
    expect(await tripsOf(() => store.load("t"))).toBe(1);
    expect(await tripsOf(() => store.fork("t", "fork", { afterRunId: "run" }))).toBe(1);
    expect(await tripsOf(() => store.deleteThread("fork"))).toBe(1);
    const release = await holdLock();
    const contended = tripsOf(() => store.append("t", [userMessage("last")]));
    await waiting(1);
    await release();
    expect(await contended).toBe(1);
  });
});

describe("broken connections", () => {
  test("P6 L10 L11 idle connections that the server ends do no harm: the process lives and the next append works", async () => {
    await using store = await PostgresCheckpointer.open(url);
    await Promise.all(Array.from({ length: 5 }, (_, i) => store.append("t", [userMessage(`${i}`)])));
    await terminate("idle");
    await store.append("t", [userMessage("after")]);
    expect((await texts(store)).length).toBe(6);
    await terminate("idle");
    expect((await texts(store)).at(-1)).toBe("after");
  });

  test("P6 the same with a pool of the host that has no listener for errors", async () => {
    const pool = new pg.Pool({ connectionString: url, max: 3 });
    await using store = await PostgresCheckpointer.open({ pool });
    await store.append("t", [userMessage("before")]);
    await terminate("idle");
    await store.append("t", [userMessage("after")]);
    expect(await texts(store)).toEqual(["before", "after"]);
    await store.close();
    expect(pool.listenerCount("error")).toBe(0);
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  test("a connection ended in the middle of an append: it is tried again, and stored once", async () => {
    await using store = await PostgresCheckpointer.open(url);
    const release = await holdLock();
    const append = store.append("t", [userMessage("once")]);
    await waiting(1);
    await terminate("active");
    await waiting(1);
    await release();
    await append;
    expect(await texts(store)).toEqual(["once"]);
  });

  test("an answer that is lost: without an expected revision the outcome is unknown, and nothing is doubled", async () => {
    await using proxy = await TcpProxy.before(url);
    await using store = await PostgresCheckpointer.open(proxy.url(url));
    await store.append("t", [userMessage("before")]);
    proxy.loseNextAnswer();
    await expect(store.append("t", [userMessage("lost")])).rejects.toMatchObject({
      code: "connection_lost",
      outcome: "unknown",
    });
    expect(await texts(store)).toEqual(["before", "lost"]);
  });

  test("C11 an answer that is lost: with an expected revision the append finds out, and is stored once", async () => {
    await using proxy = await TcpProxy.before(url);
    await using store = await PostgresCheckpointer.open(proxy.url(url));
    const batch = [userMessage("one"), userMessage("two")];
    proxy.loseNextAnswer();
    const first = await store.append("t", batch, { expectedRevision: 0 });
    expect((await store.load("t"))?.revision).toBe(first);
    proxy.loseNextAnswer();
    const second = await store.append("t", batch, { expectedRevision: first });
    expect(second).toBe(first + 2);
    expect(await texts(store)).toEqual(["one", "two", "one", "two"]);
  });

  test("C11 an append that the server still works on when its connection breaks is stored once", async () => {
    await using proxy = await TcpProxy.before(url);
    await using store = await PostgresCheckpointer.open(proxy.url(url));
    const before = await store.append("t", [userMessage("before")]);
    const release = await holdLock();
    const append = store.append("t", [userMessage("late")], { expectedRevision: before });
    await waiting(1);
    proxy.cutClients();
    await waiting(2);
    await release();
    expect(await append).toBe(before + 1);
    expect(await texts(store)).toEqual(["before", "late"]);
  });

  test("C11 when another writer came first meanwhile, the lost append is a conflict", async () => {
    await using proxy = await TcpProxy.before(url);
    await using store = await PostgresCheckpointer.open(proxy.url(url));
    await using other = await PostgresCheckpointer.open(url);
    const before = await store.append("t", [userMessage("before")]);
    const release = await holdLock();
    const theirs = other.append("t", [userMessage("theirs")], { expectedRevision: before });
    await waiting(1);
    const ours = store.append("t", [userMessage("ours")], { expectedRevision: before });
    const refused = expect(ours).rejects.toMatchObject({ code: "thread_conflict", expected: before });
    await waiting(2);
    proxy.cutClients();
    await waiting(3);
    await release();
    await theirs;
    await refused;
    expect(await texts(store)).toEqual(["before", "theirs"]);
  });

  test("a read whose answer is lost is read again", async () => {
    await using proxy = await TcpProxy.before(url);
    await using store = await PostgresCheckpointer.open(proxy.url(url));
    await store.append("t", [userMessage("here")]);
    proxy.loseNextAnswer();
    expect(await texts(store)).toEqual(["here"]);
  });

  test("a deadlock that the server breaks is tried again", async () => {
    await using store = await PostgresCheckpointer.open(url);
    await store.append("t", [userMessage("1")]);
    await store.saveExtra("other", { a: 1 });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    // The other program has the row that our delete needs, and then wants the lock that our delete holds.
    await client.query("BEGIN; SET LOCAL deadlock_timeout = '1h'");
    await client.query("UPDATE cubepi_threads SET updated_at = now() WHERE thread_id = 't'");
    const deleted = store.deleteThread("t");
    for (;;) {
      const rows = await sql(
        admin,
        "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'transactionid'",
        [name],
      );
      if (rows.length > 0) break;
    }
    await client.query("SELECT pg_advisory_xact_lock(hashtext('t'))");
    await client.query("COMMIT");
    await client.end();
    expect(await deleted).toBe(true);
  });
});

describe("waits that end", () => {
  test("P4 a lock that another program holds too long is a LockTimeoutError, and the next append works", async () => {
    await using store = await PostgresCheckpointer.open(url, { lockTimeoutMs: 100 });
    const release = await holdLock();
    await expect(store.append("t", [userMessage("no")])).rejects.toMatchObject({ code: "lock_timeout" });
    await expect(store.append("t", [userMessage("no")])).rejects.toThrow("lockTimeoutMs");
    await release();
    await store.append("t", [userMessage("yes")]);
    expect(await texts(store)).toEqual(["yes"]);
  });

  test("a pool that is exhausted is an error after the stated time, and connections that come late go back", async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    await using store = await PostgresCheckpointer.open({ pool }, { connectTimeoutMs: 100 });
    const taken = await pool.connect();
    const started = performance.now();
    await expect(store.load("t")).rejects.toMatchObject({ code: "pool_exhausted" });
    expect(performance.now() - started).toBeGreaterThan(90);
    taken.release();
    await store.append("t", [userMessage("works")]);
    expect(await texts(store)).toEqual(["works"]);
    await pool.end();
  });

  test("a pool of our own says so too", async () => {
    await using store = await PostgresCheckpointer.open(url, { maxPoolSize: 1, minPoolSize: 0, connectTimeoutMs: 150 });
    const release = await holdLock();
    const held = store.append("t", [userMessage("waits")]);
    await waiting(1);
    await expect(store.load("t")).rejects.toThrow(/All 1 connections of the pool were in use for 150 ms/);
    await release();
    await held;
  });

  test("a server that is gone between two calls: the error says that nothing was written", async () => {
    const proxy = await TcpProxy.before(url);
    const pool = new pg.Pool({ connectionString: proxy.url(url) });
    await using store = await PostgresCheckpointer.open({ pool });
    await store.append("t", [userMessage("before")]);
    const noticed = once(pool, "remove");
    await proxy[Symbol.asyncDispose]();
    await noticed;
    const lost = { code: "connection_lost", outcome: "not_written" };
    await expect(store.append("t", [userMessage("lost")])).rejects.toMatchObject(lost);
    await expect(store.load("t")).rejects.toMatchObject(lost);
    await pool.end();
    await using direct = await PostgresCheckpointer.open(url);
    expect(await texts(direct)).toEqual(["before"]);
  });
});
