/**
 * Many writers on one server: nothing lost, nothing twice, in each writer's order; also when they are killed and started
 * again, and when the server crashes meanwhile. EVERTHREAD_FULL=1 runs the full load.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { ended, startChild } from "../support/child.ts";
import { hasMysql, hasOwnServer, mysqlLabel, OwnServer, type TestDatabase, testDatabase } from "../support/mysql.ts";

const FULL = process.env.EVERTHREAD_FULL === "1";
const MANY = new URL("./many-writer.ts", import.meta.url);
const WRITER = new URL("./writer.ts", import.meta.url);
const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`);

/** Each writer's messages of a thread, in the order of the log, whose numbers must have no gaps. */
async function byWriter(url: string, thread: string): Promise<Map<string, string[]>> {
  await using store = await MySQLCheckpointer.open(url);
  const { items } = await store.listMessages(thread, { limit: 10_000 });
  const first = items[0]?.position ?? 0;
  expect(items.map(({ position }) => position)).toEqual(items.map((_, i) => first + i));
  const texts = ((await store.load(thread))?.messages ?? []).map(textOf);
  return Map.groupBy(texts, (text) => text.split(" ")[0] ?? "");
}

describe.skipIf(!hasMysql)(`many writers on MySQL (${mysqlLabel})`, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test("C4 20 processes, 50 appends each to one thread: 1000 messages, each writer's in order, no error", async () => {
    const children = Array.from({ length: 20 }, (_, i) => ended(startChild(MANY, [database.url, "c4", `w${i}`, "50"])));
    for (const { code, stderr } of await Promise.all(children)) expect([code, stderr]).toEqual([0, ""]);
    const writers = await byWriter(database.url, "c4");
    expect(writers.size).toBe(20);
    for (const [name, texts] of writers) expect(texts).toEqual(numbered(name, 50));
  }, 60_000);

  test("C15 16 writers at once, each to a brand-new thread: all succeed, and no message is doubled", async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => MySQLCheckpointer.open(database.url)));
    for (let round = 0; round < 5; round++) {
      const ids = Array.from({ length: 16 }, (_, i) => `c15 ${round} ${i}`);
      await Promise.all(ids.map((id, i) => stores[i % 4]?.append(id, [userMessage("one"), userMessage("two")])));
      for (const id of ids) expect((await stores[0]?.load(id))?.messages.map(textOf)).toEqual(["one", "two"]);
    }
    await Promise.all(stores.map((store) => store.close()));
  });

  test("a thread that is deleted and begun anew within a second repeats no revision, for all writers", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const seen = new Set<number>();
    for (let round = 0; round < 20; round++) {
      for (const text of ["a", "b", "c"]) {
        const revision = await store.append("again", [userMessage(text)]);
        expect(seen.has(revision)).toBe(false);
        seen.add(revision);
      }
      expect(await store.deleteThread("again")).toBe(true);
    }
    await store.append("fresh", [userMessage("1")]);
    expect((await store.listThreads({ prefix: "" })).items.map(({ threadId }) => threadId)).not.toContain("");
  });

  test(
    "processes that are killed and started again: each acknowledged message is there once",
    async () => {
      const names = Array.from({ length: FULL ? 8 : 3 }, (_, i) => `w${i}`);
      const count = FULL ? 500 : 30;
      await Promise.all(
        names.map(async (name) => {
          const acknowledged = await runKilled([database.url, "killed", name, String(count)], 2);
          expect(new Set(acknowledged).size).toBe(acknowledged.length);
        }),
      );
      const writers = await byWriter(database.url, "killed");
      for (const name of names) expect(writers.get(name)).toEqual(numbered(name, count));
    },
    FULL ? 600_000 : 60_000,
  );
});

describe.skipIf(!hasOwnServer)(`a MySQL server that crashes (${mysqlLabel})`, () => {
  test(
    "during the load: the processes live, and each message is there once",
    async () => {
      await using server = new OwnServer(["--innodb-flush-log-at-trx-commit=1"]);
      await server.start();
      const database = await testDatabase({ server: server.url });
      await database.admin.end();
      const count = FULL ? 500 : 60;
      const names = ["w0", "w1"];
      const children = names.map((name) => startChild(WRITER, [database.url, "t", name, String(count)]));
      const results = Promise.all(children.map(ended));
      for (let crash = 0; crash < 2; crash++) {
        await new Promise((resolve) => children[0]?.stdout?.once("data", resolve));
        await server.stop("SIGKILL");
        await server.start();
      }
      for (const { code, stderr, lines } of await results) {
        expect([code, stderr]).toEqual([0, ""]);
        expect(new Set(lines).size).toBe(lines.length);
      }
      const writers = await byWriter(database.url, "t");
      for (const name of names) expect(writers.get(name)).toEqual(numbered(name, count));
    },
    FULL ? 600_000 : 60_000,
  );
});

/** Runs a writer to its end, killing it so many times on the way. Gives every number that was acknowledged. */
async function runKilled(args: string[], kills: number): Promise<number[]> {
  const acknowledged: number[] = [];
  for (let round = 0; ; round++) {
    const child = startChild(WRITER, args);
    let lines = 0;
    const after = 1 + Math.floor(Math.random() * 6);
    if (round < kills) child.stdout?.on("data", () => ++lines === after && child.kill("SIGKILL"));
    const { code, signal, lines: said, stderr } = await ended(child);
    acknowledged.push(...said.map(Number));
    if (signal !== "SIGKILL") {
      expect([code, stderr]).toEqual([0, ""]);
      return acknowledged;
    }
  }
}
