/** How many round trips an operation takes, and that values mean the same on every road they may take to the server. */
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection, createPool } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { hasMysql, mysqlLabel, type TestDatabase, testDatabase } from "../support/mysql.ts";
import { TcpProxy } from "../support/proxy.ts";

describe.skipIf(!hasMysql)(`round trips to MySQL (${mysqlLabel})`, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  beforeEach(() => database.empty());
  afterAll(() => database[Symbol.asyncDispose]());

  const counter = (proxy: TcpProxy) => async (work: () => Promise<unknown>) => {
    const before = proxy.roundTrips;
    await work();
    return proxy.roundTrips - before;
  };

  test("an append is two, whatever is in it; also when the lock is contended", async () => {
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url), { maxPoolSize: 1 });
    const tripsOf = counter(proxy);
    const run = { run_id: "run" };
    const batch = Array.from({ length: 50 }, (_, i) => userMessage(`${i}`, run));
    let revision = 0;
    const append = async (messages: typeof batch) => {
      revision = await store.append("t", messages, { expectedRevision: revision });
    };
    expect(await tripsOf(() => append([userMessage("first")]))).toBe(2);
    expect(await tripsOf(() => append([userMessage("second", run)]))).toBe(2);
    expect(await tripsOf(() => append(batch))).toBe(2);
    expect(await tripsOf(() => append(["a", "run", "b"].map((id) => userMessage(id, { run_id: id }))))).toBe(2);
    expect(await tripsOf(() => append([userMessage("x".repeat(400_000), run)]))).toBe(2);
    const holder = await createConnection({ uri: database.url });
    await holder.query("START TRANSACTION");
    await holder.query("SELECT thread_id FROM cubepi_threads WHERE thread_id = 't' FOR UPDATE");
    const contended = tripsOf(() => append([userMessage("last")]));
    for (let atWork = 0; atWork === 0; await sleep(5)) {
      const [row] = await database.sql(
        "SELECT COUNT(*) AS n FROM information_schema.processlist WHERE db = ? AND info LIKE '%INSERT INTO cubepi_threads%' AND id <> CONNECTION_ID()",
        [database.name],
      );
      atWork = Number(row?.n);
    }
    await holder.end();
    expect(await contended).toBe(2);
    expect(await tripsOf(() => store.append("t", []))).toBeLessThanOrEqual(2);
    expect((await store.load("t"))?.messages).toHaveLength(57);
  });

  test("of several runs in a batch each is looked up: one that has completed takes no more", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    await store.claimRun("t", "done");
    await store.markRunComplete("t", "done");
    for (const runs of [["done"], ["open", "done"], ["open", "Done", "done"]]) {
      const batch = runs.map((id) => userMessage(id, { run_id: id }));
      await expect(store.append("t", batch)).rejects.toMatchObject({
        code: "run_already_completed",
        message: /^Run "done"/,
      });
    }
    await store.append(
      "t",
      ["DONE", "open", "done "].map((id) => userMessage(id, { run_id: id })),
    );
    expect((await store.load("t"))?.messages).toHaveLength(3);
  });

  test("what is larger than a text of statements may be is prepared: its bytes are sent once and not in hexadecimal", async () => {
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url), { maxPoolSize: 1 });
    const large = userMessage("é".repeat(1_000_000));
    await store.append("t", [large]);
    // The lock and the state; the row, whose statement is prepared by now; COMMIT.
    expect(await counter(proxy)(() => store.append("t", [large]))).toBe(3);
    expect((await store.load("t"))?.messages).toEqual([large, large]);
  });

  const PLAIN = { multipleStatements: false };
  const SEVERAL = { multipleStatements: true };
  /** What a host may have set for its own queries. */
  const ODD = { namedPlaceholders: true, rowsAsArray: true, supportBigNumbers: true, bigNumberStrings: true };

  test("a pool of the host that takes one statement at a time works as it is", async () => {
    await using proxy = await TcpProxy.before(database.url);
    const pool = createPool({ uri: proxy.url(database.url), connectionLimit: 1, ...PLAIN });
    await using store = await MySQLCheckpointer.open({ pool });
    const tripsOf = counter(proxy);
    let revision = await store.append("t", [userMessage("0")]);
    const append = async (text: string) => {
      revision = await store.append("t", [userMessage(text)], { expectedRevision: revision });
    };
    // The isolation level, START TRANSACTION, the lock, the state, the row, COMMIT.
    const trips = await tripsOf(() => append("1"));
    expect(trips).toBe(6);
    for (let answer = 1; answer <= trips; answer++) {
      proxy.loseAnswer(answer);
      await append(`${answer + 1}`);
    }
    expect((await store.load("t"))?.messages.map(textOf)).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
    await pool.end();
  });

  test("a pool of the host that takes several is as quick as our own", async () => {
    await using proxy = await TcpProxy.before(database.url);
    const pool = createPool({ uri: proxy.url(database.url), connectionLimit: 1, ...SEVERAL });
    await using store = await MySQLCheckpointer.open({ pool });
    await store.append("t", [userMessage("0")]);
    expect(await counter(proxy)(() => store.append("t", [userMessage("1")]))).toBe(2);
    await pool.end();
  });

  test.each([
    ["one at a time", PLAIN],
    ["several at once", SEVERAL],
    ["several at once, in a pool with options of its own", { ...SEVERAL, ...ODD }],
  ])("no sql_mode changes what values mean: %s", async (_how, flags) => {
    for (const mode of ["", "NO_BACKSLASH_ESCAPES", "ANSI", "TRADITIONAL,PIPES_AS_CONCAT,IGNORE_SPACE"]) {
      const pool = createPool({ uri: database.url, connectionLimit: 1, ...flags });
      const connection = await pool.getConnection();
      await connection.query("SET SESSION sql_mode = ?", [mode]);
      connection.release();
      await using store = await MySQLCheckpointer.open({ pool });
      const id = `\\' OR 1=1; -- ? ?? :a "${mode}" \`é\` 🙂 ${"\\"}`;
      const texts = [id, "\\", "'", "\\'", "?;?", '"', "\u0000\u001a\n\r", "%_", "/* */ -- #", "🙂"];
      const messages = texts.map((text) => userMessage(text, { run_id: "r'?\\", metadata: { [text]: text } }));
      await store.claimRun(id, "r'?\\");
      const revision = await store.append(id, messages);
      expect(await store.load(id)).toMatchObject({ messages, revision });
      const ids = (await store.listThreads()).items.map(({ threadId }) => threadId);
      expect(ids).toContain(id);
      await store.deleteThread(id);
      await pool.end();
    }
  });

  test("connections without autocommit are refused, since a read would begin a transaction that nobody ends", async () => {
    const pool = createPool({ uri: database.url, connectionLimit: 1 });
    const connection = await pool.getConnection();
    await connection.query("SET SESSION autocommit = 0");
    connection.release();
    const failed = { code: "store_open_failed", message: /autocommit/ };
    await expect(MySQLCheckpointer.open({ pool })).rejects.toMatchObject(failed);
    await pool.end();
  });

  test("a batch of which one row is refused leaves nothing, and the connection as it was", async () => {
    await using store = await MySQLCheckpointer.open(database.url, { maxPoolSize: 1 });
    const before = await store.append("t", [userMessage("before")]);
    await database.sql(`CREATE TRIGGER refuse BEFORE INSERT ON cubepi_messages FOR EACH ROW
      BEGIN IF NEW.seq = 3 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF; END`);
    const batch = [userMessage("a"), userMessage("b")];
    await expect(store.append("t", batch, { expectedRevision: before })).rejects.toMatchObject({
      code: "store_error",
      message: /refused/,
    });
    await database.sql("DROP TRIGGER refuse");
    expect(await store.load("t")).toMatchObject({ revision: before });
    await store.append("t", batch, { expectedRevision: before });
    expect((await store.load("t"))?.messages.map(textOf)).toEqual(["before", "a", "b"]);
  });
});
