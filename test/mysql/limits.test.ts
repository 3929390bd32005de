/** Servers set up otherwise: small packets, sql_mode '', another character set, time zone and row format. */
import { createPool as createCallbackPool } from "mysql2";
import { createPool } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { image, textOf, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { hasMysql, hasOwnServer, mysqlLabel, OwnServer, type TestDatabase, testDatabase } from "../support/mysql.ts";

const ODD = [
  "--max-allowed-packet=1M",
  "--sql-mode=",
  "--character-set-server=latin1",
  "--default-time-zone=+09:00",
  "--innodb-default-row-format=compact",
];

describe.skipIf(!hasOwnServer)(`a MySQL server with odd settings (${mysqlLabel})`, () => {
  let server: OwnServer;
  let database: TestDatabase;
  beforeAll(async () => {
    server = new OwnServer(ODD);
    await server.start();
    // Y7: the tables are made on a server whose row format has short index keys.
    database = await testDatabase({ server: server.url, create: "CHARACTER SET latin1" });
  });
  afterAll(async () => {
    await database.admin.end();
    await server[Symbol.asyncDispose]();
  });

  test("Y1 a message over max_allowed_packet is a size error that names it, and the next append works", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const picture = userMessage([image("A".repeat(2_000_000), "image/png")]);
    const work = store.append("y1", [userMessage("first"), picture]);
    await expect(work).rejects.toMatchObject({
      code: "value_too_large",
      message: /^messages\[1\] takes/,
      limit: 2 ** 20,
    });
    expect(await store.load("y1")).toBeUndefined();
    await store.append("y1", [userMessage("next")]);
    await expect(store.saveExtra("y1", { big: "x".repeat(2_000_000) })).rejects.toMatchObject({
      code: "value_too_large",
    });
    await expect(store.saveHitlAnswer("y1", "q", "x".repeat(2_000_000))).rejects.toMatchObject({
      code: "value_too_large",
    });
    expect((await store.load("y1"))?.messages.map(textOf)).toEqual(["next"]);
  });

  test("Y1 a batch over max_allowed_packet is split, and still all or none; a thread of 5 MB is read", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const batch = Array.from({ length: 50 }, (_, i) => userMessage(`${i} ${"x".repeat(100_000)}`));
    const done = { ...userMessage("late"), run_id: "done" };
    await store.claimRun("batch", "done");
    await store.markRunComplete("batch", "done");
    await expect(store.append("batch", [...batch, done])).rejects.toMatchObject({ code: "run_already_completed" });
    expect((await store.listMessages("batch")).items).toEqual([]);
    await store.append("batch", batch);
    expect((await store.load("batch"))?.messages).toEqual(batch);
  });

  test("Y1 when the server fails in the middle of a split batch, nothing of it is there", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    await database.sql(`CREATE TRIGGER refuse BEFORE INSERT ON cubepi_messages FOR EACH ROW
      IF NEW.thread_id = 'split' AND NEW.seq = 40 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no more'; END IF`);
    const batch = Array.from({ length: 50 }, (_, i) => userMessage(`${i} ${"x".repeat(100_000)}`));
    await expect(store.append("split", batch)).rejects.toMatchObject({ code: "store_error", message: /no more/ });
    await database.sql("DROP TRIGGER refuse");
    expect(await store.load("split")).toBeUndefined();
    expect(await database.sql("SELECT 1 FROM cubepi_messages WHERE thread_id = 'split'")).toEqual([]);
    await store.append("split", batch);
  });

  test("E5 a database in latin1: every text is kept, since tables and connections are utf8mb4", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const text = "🧵 𠮷 é ß 用户";
    const id = "thread 🧵";
    await store.append(id, [userMessage(text, { metadata: { [text]: text } })]);
    await store.saveExtra(id, { [text]: text });
    await store.saveHitlAnswer(id, "q 🗝", text);
    const loaded = await store.load(id);
    expect([loaded?.messages[0]?.metadata, loaded?.extra]).toEqual([{ [text]: text }, { [text]: text }]);
    expect(textOf(loaded?.messages[0] ?? userMessage(""))).toBe(text);
    expect(await store.loadHitlAnswer(id, "q 🗝")).toBe(text);
    expect((await store.listThreads({ prefix: "thread" })).items[0]?.threadId).toBe(id);
  });

  test("E5 a pool of the host that speaks latin1 is refused, and one that speaks utf8mb4 is taken and not ended", async () => {
    const latin = createPool({ uri: database.url, charset: "latin1_swedish_ci" });
    await expect(MySQLCheckpointer.open({ pool: latin })).rejects.toThrow(/speak latin1.*charset: "utf8mb4"/);
    await latin.end();
    const pool = createPool({
      uri: database.url,
      charset: "utf8mb4",
      rowsAsArray: true,
      dateStrings: true,
      supportBigNumbers: true,
      bigNumberStrings: true,
    });
    const store = await MySQLCheckpointer.open({ pool });
    await store.append("host", [userMessage("🧵")]);
    expect((await store.load("host"))?.messages.map(textOf)).toEqual(["🧵"]);
    expect((await store.listThreads({ prefix: "host" })).items[0]).toMatchObject({ messageCount: 1, pending: false });
    await store.close();
    const [rows] = await pool
      .query("SELECT @@transaction_isolation AS level, 1 AS one")
      .catch(() => pool.query("SELECT @@tx_isolation AS level, 1 AS one"));
    expect(rows).toEqual([["REPEATABLE-READ", 1]]);
    await pool.end();
    const callbacks = createCallbackPool({ uri: database.url, charset: "utf8mb4" });
    const other = await MySQLCheckpointer.open({ pool: callbacks });
    expect((await other.load("host"))?.messages).toHaveLength(1);
    await other.close();
    await callbacks.promise().end();
  });

  test("Y5 times are the instants at which messages were stored, whatever the zones; a message's own is exact", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const before = Math.floor(Date.now() / 1000) * 1000;
    const timestamp = Date.UTC(2039, 5, 1) / 1000 + 0.999;
    await store.append("y5", [userMessage("hi", { timestamp })]);
    await store.claimRun("y5", "run");
    const [entry] = (await store.listMessages("y5")).items;
    const [run] = (await store.listRuns("y5")).items;
    const [thread] = (await store.listThreads({ prefix: "y5" })).items;
    for (const date of [entry?.createdAt, run?.claimedAt, thread?.createdAt, thread?.updatedAt]) {
      expect(date?.getTime()).toBeGreaterThanOrEqual(before);
      expect(date?.getTime()).toBeLessThanOrEqual(Date.now());
    }
    expect(entry?.message?.timestamp).toBe(timestamp);
    const zone = createPool({ uri: database.url, charset: "utf8mb4", timezone: "-05:00" });
    zone.on("connection", (connection) => void connection.query("SET time_zone = '-11:00'"));
    await using other = await MySQLCheckpointer.open({ pool: zone });
    expect((await other.listMessages("y5")).items[0]).toEqual(entry);
    expect((await other.load("y5"))?.revision).toBe((await store.load("y5"))?.revision);
    await zone.end();
  });

  test("Y6 ids of every length are kept whole or refused, never cut", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    for (const char of ["a", "é", "🦄"]) {
      for (const length of [64, 65, 191, 255, 256, 1000]) {
        const id = char.repeat(length);
        const works = [
          () => store.append(id, [userMessage("hi")]),
          () => store.saveHitlAnswer("y6", id, 1),
          () => store.saveHitlAnswer("y6", "q", 1, { runId: id }),
        ];
        const ofNewRuns = [
          () => store.claimRun("y6", id),
          () => store.savePendingRequest("y6", request(`q ${length}`), { runId: id }),
        ];
        const refused = [...(length > 255 ? works : []), ...(length > 64 ? ofNewRuns : [])];
        for (const work of [...works, ...ofNewRuns]) {
          if (refused.includes(work)) await expect(work()).rejects.toMatchObject({ code: "invalid_id" });
          else await work();
        }
        if (length > 255) continue;
        expect((await store.listThreads({ prefix: id })).items[0]?.threadId).toBe(id);
        expect(await store.loadHitlAnswer("y6", id)).toBe(1);
        if (length <= 64) expect((await store.loadPending("y6"))?.runId).toBe(id);
      }
    }
    const call = { id: "c".repeat(1000), name: "n".repeat(1000) };
    await store.append("calls", [toolResultMessage(call, "ok")]);
    expect((await store.load("calls"))?.messages[0]).toMatchObject({ tool_call_id: call.id, tool_name: call.name });
  });

  test("Y8 a text of 70 kB is exact", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const text = "é".repeat(35_000);
    await store.append("y8", [userMessage(text)]);
    await store.saveExtra("y8", { text });
    const loaded = await store.load("y8");
    expect([loaded?.messages.map(textOf), loaded?.extra]).toEqual([[text], { text }]);
  });
});

describe.skipIf(!hasMysql)(`a pool with sql_mode '' (${mysqlLabel})`, () => {
  test("Y8 a text of 20 MB is exact", async () => {
    const database = await testDatabase();
    const pool = createPool({ uri: database.url, charset: "utf8mb4" });
    onTestFinished(async () => {
      await pool.end();
      await database[Symbol.asyncDispose]();
    });
    pool.on("connection", (connection) => void connection.query("SET sql_mode = ''"));
    await using store = await MySQLCheckpointer.open({ pool });
    const text = "0123456789abcdé\n".repeat(1_250_000);
    await store.append("t", [userMessage(text)]);
    const loaded = (await store.load("t"))?.messages.map(textOf) ?? [];
    expect(loaded.length === 1 && loaded[0] === text).toBe(true);
  });

  test("Y2 the last messages and pages are read with a bound LIMIT", async () => {
    await using database = await testDatabase();
    await using store = await MySQLCheckpointer.open(database.url);
    await store.append(
      "t",
      Array.from({ length: 120 }, (_, i) => userMessage(`${i}`)),
    );
    const found: string[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page = await store.listMessages("t", { after, limit: 50 });
      found.push(...page.items.map(({ message }) => textOf(message ?? userMessage("?"))));
      after = page.next;
    }
    expect(found).toEqual(Array.from({ length: 120 }, (_, i) => `${i}`));
    expect((await store.listMessages("t", { limit: 0 })).items).toEqual([]);
  });
});

const request = (questionId: string) => ({
  question_id: questionId,
  thread_id: null,
  payload: { kind: "confirm" as const, prompt: "?" },
  created_at: 1,
});
