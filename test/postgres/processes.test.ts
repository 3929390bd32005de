/**
 * Many processes on one server: nothing lost, nothing twice, in each writer's order; also when they are killed and started
 * again, when the server crashes meanwhile, and with CubeLoop's processes among them. EVERTHREAD_FULL=1 runs the full load.
 */
import { afterAll, describe, expect, test } from "vitest";
import { migrate, PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { ended, startChild } from "../support/child.ts";
import { makeDatabase, sql, startPostgres } from "../support/postgres.ts";
import { pythonWith, runPython } from "../support/python.ts";

const asyncpg = pythonWith("asyncpg");
const FULL = process.env.EVERTHREAD_FULL === "1";
const WRITER = new URL("./writer.ts", import.meta.url);
const MANY = new URL("./many-writer.ts", import.meta.url);
const { url, drop } = await makeDatabase();
afterAll(drop);

/** Each writer's messages of a thread, in the order of the log, whose numbers must have no gaps. */
async function byWriter(at: string, thread: string): Promise<Map<string, string[]>> {
  const rows = await sql(at, "SELECT seq::int AS seq FROM cubepi_messages WHERE thread_id = $1 ORDER BY seq", [thread]);
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, i) => i + 1));
  await using store = await PostgresCheckpointer.open(at);
  const texts = ((await store.load(thread))?.messages ?? []).map(textOf);
  return Map.groupBy(texts, (text) => text.split(" ")[0] ?? "");
}
const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`);

test("C4 20 processes, 50 appends each to one thread: 1000 messages, each writer's in order, no error", async () => {
  const children = Array.from({ length: 20 }, (_, i) => ended(startChild(MANY, [url, "c4", `w${i}`, "50"])));
  for (const { code, stderr } of await Promise.all(children)) expect([code, stderr]).toEqual([0, ""]);
  const writers = await byWriter(url, "c4");
  expect(writers.size).toBe(20);
  for (const [name, texts] of writers) expect(texts).toEqual(numbered(name, 50));
}, 60_000);

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

const PROCESSES = FULL ? 8 : 4;
const APPENDS = FULL ? 500 : 40;

test.each([1, FULL ? 100 : 10])(
  "processes that are killed and started again, on %i thread(s): each acknowledged message is there once",
  async (threads) => {
    const names = Array.from({ length: PROCESSES }, (_, i) => `w${i}`);
    const thread = `killed on ${threads}`;
    await Promise.all(
      names.map(async (name) => {
        const acknowledged = await runKilled([url, thread, name, String(APPENDS), String(threads)], 2);
        expect(new Set(acknowledged).size).toBe(acknowledged.length);
      }),
    );
    const stored = new Map<string, string[]>(names.map((name) => [name, []]));
    for (let i = 0; i < threads; i++) {
      for (const [name, texts] of await byWriter(url, `${thread} ${i}`)) {
        expect(texts).toEqual(numbered(name, APPENDS).filter((_, n) => n % threads === i));
        stored.get(name)?.push(...texts);
      }
    }
    for (const [name, texts] of stored) expect(texts.toSorted()).toEqual(numbered(name, APPENDS).toSorted());
  },
  FULL ? 600_000 : 60_000,
);

test(
  "the server crashes during the load: the processes live, and each message is there once",
  async () => {
    const server = await startPostgres();
    try {
      await migrate(server.url);
      const names = ["w0", "w1", "w2"];
      const count = FULL ? 500 : 60;
      const children = names.map((name, i) =>
        startChild(WRITER, [server.url, i === 0 ? "own" : "shared", name, String(count)]),
      );
      const results = Promise.all(children.map(ended));
      for (let crash = 0; crash < 2; crash++) {
        await new Promise((resolve) => children[1]?.stdout?.once("data", resolve));
        await server.crash();
        await server.start();
      }
      for (const { code, stderr, lines } of await results) {
        expect([code, stderr]).toEqual([0, ""]);
        expect(new Set(lines).size).toBe(lines.length);
      }
      expect((await byWriter(server.url, "own 0")).get("w0")).toEqual(numbered("w0", count));
      const shared = await byWriter(server.url, "shared 0");
      for (const name of ["w1", "w2"]) expect(shared.get(name)).toEqual(numbered(name, count));
    } finally {
      await server.dispose();
    }
  },
  FULL ? 600_000 : 60_000,
);

describe.skipIf(!asyncpg.found)(`with Python (${asyncpg.label})`, () => {
  test("processes of both append to one thread at once: no gap, nothing lost, none fails", async () => {
    const count = FULL ? 500 : 40;
    const ours = Array.from({ length: 2 }, (_, i) => ended(startChild(MANY, [url, "both", `ours${i}`, String(count)])));
    const theirs = Array.from({ length: 2 }, (_, i) =>
      runPython("postgres_writer.py", url, "both", `theirs${i}`, String(count)),
    );
    for (const { code, stderr } of await Promise.all(ours)) expect([code, stderr]).toEqual([0, ""]);
    await Promise.all(theirs);
    const writers = await byWriter(url, "both");
    expect([...writers.keys()].sort()).toEqual(["ours0", "ours1", "theirs0", "theirs1"]);
    for (const [name, texts] of writers) expect(texts).toEqual(numbered(name, count));
  });
});
