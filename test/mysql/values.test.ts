/** Values in JSON columns that the server alone would refuse, reorder or take for something else; and how positions number. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { fromColumn, toColumn } from "../../src/checkpoint/mysql/columns.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import type { JsonValue } from "../../src/messages/json.ts";
import { hasMysql, mysqlLabel, type TestDatabase, testDatabase } from "../support/mysql.ts";

const nested = (levels: number, inside: JsonValue = []): JsonValue => {
  let value = inside;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
};
const VALUES: JsonValue[] = [
  nested(29),
  nested(30),
  nested(31),
  nested(100),
  nested(499),
  { "everthread:json": "text" },
  { "everthread:json": '{"a":1}' },
  { "everthread:json": { "everthread:json": "1" } },
  { "everthread:json": "1", more: 1 },
  nested(40, { "everthread:json": "[1]" }),
  "everthread:json",
];

test.each(VALUES.map((value, i) => [i, value] as const))(
  "value %i is the same after it was in a column",
  (_i, value) => {
    const text = toColumn(value);
    expect(fromColumn(text)).toEqual(value);
    expect(levelsOf(JSON.parse(text))).toBeLessThanOrEqual(31);
  },
);

test("what a server takes is stored as it is, for others to read", () => {
  const value = { list: [1, { a: null }], "": "\0", deep: nested(27) };
  expect(toColumn(value)).toBe(JSON.stringify(value));
});

describe.skipIf(!hasMysql)(`values in MySQL (${mysqlLabel})`, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  beforeEach(() => database.empty());
  afterAll(() => database[Symbol.asyncDispose]());

  test("L16 L18 deep values, and those that look like stored ones, are kept in every place", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const all = Object.fromEntries(VALUES.map((value, i) => [`${i}`, value]));
    // One level less for each place: what holds the values counts too.
    const extra = { ...all, "4": nested(497) };
    await store.saveExtra("t", extra);
    await store.append("t", [userMessage("hi", { metadata: extra })]);
    const loaded = await store.load("t");
    expect([loaded?.extra, loaded?.messages[0]?.metadata]).toEqual([extra, extra]);
    for (const [i, value] of VALUES.entries()) {
      await store.saveHitlAnswer("t", `q${i}`, value);
      expect(await store.loadHitlAnswer("t", `q${i}`)).toEqual(value);
    }
    await store.saveExtra("t", { more: 1 });
    expect((await store.load("t"))?.extra).toEqual({ ...extra, more: 1 });
  });

  test("seq counts from 1 without gaps, in forks too, and forked_at_seq is where the source was cut", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const run = { run_id: "run" };
    await store.claimRun("t", "run");
    await store.append("t", [userMessage("left out", { run_id: "open" }), userMessage("one", run)]);
    await store.append("t", [userMessage("left out too", { run_id: "open" }), userMessage("two", run)]);
    await store.markRunComplete("t", "run");
    await store.append("t", [userMessage("later", { run_id: "open" })]);
    await store.fork("t", "fork", { afterRunId: "run" });
    await store.append("fork", [userMessage("on")]);
    const rows = await database.sql("SELECT thread_id, seq FROM cubepi_messages ORDER BY thread_id, seq");
    const seqs = (thread: string) => rows.filter((row) => row.thread_id === thread).map((row) => row.seq);
    expect([seqs("t"), seqs("fork")]).toEqual([
      [1, 2, 3, 4, 5],
      [1, 2, 3],
    ]);
    expect((await store.load("fork"))?.messages.map(textOf)).toEqual(["one", "two", "on"]);
    const forked = "SELECT forked_at_seq AS at FROM cubepi_threads WHERE thread_id = 'fork'";
    expect(await database.sql(forked)).toEqual([{ at: 4 }]);
  });

  test("a fork of a source that does not begin at seq 1 counts as any other thread does", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    const run = { run_id: "run" };
    for (const id of ["t", "fork"]) {
      await store.append(id, [userMessage("erased"), userMessage("erased")]);
      await store.deleteThread(id);
    }
    await store.claimRun("t", "run");
    await store.append("t", [userMessage("one", run), userMessage("two", run)]);
    await store.markRunComplete("t", "run");
    await store.append("t", [userMessage("later", { run_id: "open" })]);
    await database.sql("UPDATE cubepi_messages SET seq = seq + 100 WHERE thread_id = 't' ORDER BY seq DESC");
    await store.fork("t", "new", { afterRunId: "run" });
    await store.fork("t", "fork", { afterRunId: "run" });
    const [row] = await database.sql("SELECT MAX(seq) AS at FROM cubepi_messages WHERE thread_id = 't'");
    const seqs = async (id: string) =>
      (await database.sql("SELECT seq FROM cubepi_messages WHERE thread_id = ? ORDER BY seq", [id])).map(
        ({ seq }) => seq,
      );
    for (const id of ["new", "fork"]) {
      // What was erased within this second counts for every thread that is begun in it.
      const [first = 0, ...more] = await seqs(id);
      expect([first < 100, more]).toEqual([true, [first + 1]]);
      expect((await store.load(id))?.messages.map(textOf)).toEqual(["one", "two"]);
      const forked = await database.sql("SELECT forked_at_seq AS at FROM cubepi_threads WHERE thread_id = ?", [id]);
      expect(forked).toEqual([{ at: Number(row?.at) - 1 }]);
    }
  });

  test("a thread that CubeLoop would begin anew, at seq 1, repeats no revision either", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    await store.append("t", [userMessage("1"), userMessage("2")]);
    // It was begun a second ago.
    await database.sql("UPDATE cubepi_threads SET created_at = created_at - INTERVAL 1 SECOND WHERE thread_id = 't'");
    const old = (await store.load("t"))?.revision ?? 0;
    await store.deleteThread("t");
    await store.append("source", [userMessage("x")]);
    await database.sql("INSERT INTO cubepi_threads (thread_id) VALUES ('t')");
    await database.sql(`INSERT INTO cubepi_messages (thread_id, seq, role, payload)
      SELECT 't', 1, role, payload FROM cubepi_messages WHERE thread_id = 'source'`);
    expect((await store.load("t"))?.revision).toBeGreaterThan(old);
    await expect(store.append("t", [userMessage("late")], { expectedRevision: old })).rejects.toMatchObject({
      code: "thread_conflict",
    });
  });

  test("a payload that is no message names its row, and other threads are unaffected", async () => {
    await using store = await MySQLCheckpointer.open(database.url);
    await store.append("t", [userMessage("1"), userMessage("2")]);
    await store.append("other", [userMessage("fine")]);
    await database.sql("UPDATE cubepi_messages SET payload = 'no msgpack' WHERE thread_id = 't' AND seq = 2");
    const rowRef = 'cubepi_messages(thread_id="t", seq=2)';
    await expect(store.load("t")).rejects.toMatchObject({ code: "checkpoint_corruption", backend: "mysql", rowRef });
    const { items } = await store.listMessages("t");
    expect(items.map(({ error }) => error?.rowRef)).toEqual([undefined, rowRef]);
    expect((await store.load("other"))?.messages).toHaveLength(1);
    await database.sql("UPDATE cubepi_threads SET extra = '[]' WHERE thread_id = 't'");
    await database.sql("UPDATE cubepi_messages SET role = 'developer' WHERE thread_id = 't'");
    await expect(store.load("t")).rejects.toMatchObject({ code: "checkpoint_corruption" });
  });
});

function levelsOf(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf));
}
