/**
 * Processes that append to one thread or to many, each killed at random and started again: every acknowledged message is
 * there once, in its writer's order. EVERTHREAD_FULL=1 runs the full load.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { ended, startChild } from "../support/child.ts";
import { hasMysql, mysqlLabel, type TestDatabase, testDatabase } from "../support/mysql.ts";

const FULL = process.env.EVERTHREAD_FULL === "1";
const WRITER = new URL("./load-writer.ts", import.meta.url);
const PROCESSES = FULL ? 8 : 3;
const APPENDS = FULL ? 500 : 30;
const KILLS = FULL ? 5 : 2;
const numbered = (name: string) => Array.from({ length: APPENDS }, (_, n) => `${name} ${n}`);

describe.skipIf(!hasMysql)(`killed writers on MySQL (${mysqlLabel})`, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test.each([1, FULL ? 100 : 10])(
    "on %i thread(s): each acknowledged message is there once, in its writer's order",
    async (threads) => {
      const names = Array.from({ length: PROCESSES }, (_, i) => `w${i}`);
      const thread = `killed on ${threads}`;
      const results = await Promise.all(names.map((name) => runKilled([database.url, thread, name, threads])));
      await using store = await MySQLCheckpointer.open(database.url);
      for (let i = 0; i < threads; i++) {
        const { items } = await store.listMessages(`${thread} ${i}`, { limit: 10_000 });
        const first = items[0]?.position ?? 0;
        expect(items.map(({ position }) => position)).toEqual(items.map((_, n) => first + n));
        const texts = ((await store.load(`${thread} ${i}`))?.messages ?? []).map(textOf);
        for (const name of names) {
          const own = texts.filter((text) => text.startsWith(`${name} `));
          expect(own).toEqual(numbered(name).filter((_, n) => n % threads === i));
        }
      }
      for (const { acknowledged, kills } of results) {
        expect(kills).toBe(KILLS);
        expect(new Set(acknowledged).size).toBe(acknowledged.length);
      }
    },
    FULL ? 600_000 : 60_000,
  );
});

/** Runs a writer to its end, and on the way kills it after so many more acknowledgements, at random over the whole. */
async function runKilled([url, thread, name, threads]: [string, string, string, number]) {
  const acknowledged: number[] = [];
  for (let kills = 0; ; kills++) {
    const child = startChild(WRITER, [url, thread, name, String(APPENDS), String(threads)]);
    const after = 1 + Math.floor(Math.random() * (APPENDS / (KILLS + 2)));
    let lines = 0;
    child.stdout?.on("data", (data: Buffer) => {
      lines += data.toString().split("\n").length - 1;
      if (kills < KILLS && lines >= after) child.kill("SIGKILL");
    });
    const { code, signal, lines: said, stderr } = await ended(child);
    acknowledged.push(...said.map(Number));
    if (signal !== "SIGKILL") {
      expect([code, stderr]).toEqual([0, ""]);
      return { acknowledged, kills };
    }
  }
}
