/**
 * Rows whose columns hold something else than they should: the thread they belong to gives what the row now says or an error
 * that names the row, and every other thread is as it was.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import * as fc from "fast-check";
import pg from "pg";
import { afterAll, expect } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { checkStored } from "../../src/messages/admit.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../support/mysql.ts";
import { makeDatabase } from "../support/postgres.ts";
import { damaged, damages, furnish, goOn, readAll, readThread, THREADS } from "./damage.ts";
import { fastDir, fuzz } from "./fuzz.ts";
import { text } from "./texts.ts";

const HIT = "b";
const TIME_LIMIT = 20_000;

/** What is put in place of a column's value. */
type Planted =
  | { kind: "bytes"; changes: Parameters<typeof damaged>[1] }
  | { kind: "text"; changes: Parameters<typeof damaged>[1] }
  | { kind: "value"; value: string | number | null };

const planted: fc.Arbitrary<Planted> = fc.oneof(
  fc.record({ kind: fc.constant("bytes" as const), changes: damages }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("text" as const), changes: damages }) },
  fc.record({
    kind: fc.constant("value" as const),
    value: fc.oneof(
      fc.constantFrom(
        null,
        "",
        "null",
        "[]",
        "{}",
        '""',
        "0",
        "-1",
        0,
        -1,
        1e300,
        2 ** 53,
        '{"role":"user","content":[]}',
        "{}{}",
      ),
      fc.constantFrom(
        "[".repeat(100_000),
        `{"role":"user","content":${"[".repeat(5000)}${"]".repeat(5000)}}`,
        '{"a":1,"a":2}',
      ),
      text,
      fc.double(),
    ),
  }),
);

function plantedValue(what: Planted, before: unknown): string | number | null | Buffer {
  if (what.kind === "value") return what.value;
  const bytes =
    Buffer.isBuffer(before) || before instanceof Uint8Array ? Buffer.from(before) : Buffer.from(String(before));
  const after = damaged(bytes, what.changes);
  return what.kind === "bytes" ? after : after.toString();
}

/** Reads everything, then writes, after a row of the thread was damaged. @param before what was read when it was sound */
async function checkStore(store: Checkpointer, before: Record<string, unknown>): Promise<void> {
  const start = performance.now();
  const after = await readAll(store);
  for (const threadId of THREADS) if (threadId !== HIT) expect(after[threadId]).toEqual(before[threadId]);
  await goOn(store);
  // It is erased with the rest.
  expect(await readThread(store, HIT)).toEqual(await readThread(store, "never"));
  expect(performance.now() - start).toBeLessThan(TIME_LIMIT);
}

type Row = Record<string, unknown>;

/** A store, with a way to its rows that passes all checks. */
interface Rows {
  store: Checkpointer;
  /** Runs SQL and gives the rows. */
  sql(text: string, values: unknown[]): Promise<Row[]>;
  dispose(): Promise<void>;
}

interface Tables {
  /** Table, column, and the columns that name a row. */
  columns: (readonly [table: string, column: string, ...key: string[]])[];
  /** The nth parameter. */
  parameter(n: number): string;
  make(): Promise<Rows>;
}

function damagedRows({ columns, parameter, make }: Tables) {
  return fc.asyncProperty(
    fc.constantFrom(...columns),
    fc.nat(9),
    planted,
    async ([table, column, ...key], nth, what) => {
      const { store, sql, dispose } = await make();
      try {
        await furnish(store);
        const before = await readAll(store);
        const rows = await sql(`SELECT * FROM ${table} WHERE thread_id = ${parameter(1)}`, [HIT]);
        const row = rows[nth % rows.length] ?? {};
        const where = key.map((name, i) => `${name} = ${parameter(i + 2)}`).join(" AND ");
        const values = [plantedValue(what, row[column]), ...key.map((name) => row[name])];
        const isIn = await sql(`UPDATE ${table} SET ${column} = ${parameter(1)} WHERE ${where}`, values).then(
          () => true,
          // The database itself refuses it.
          () => false,
        );
        if (!isIn) return;
        if (column === "message_json")
          await checkLog(store, await sql(`SELECT * FROM ${table} WHERE thread_id = ? ORDER BY id`, [HIT]));
        await checkStore(store, before);
      } finally {
        await store.close();
        await dispose();
      }
    },
  );
}

/** The log says of each row what its text says, and of no other row that it is damaged. */
async function checkLog(store: Checkpointer, rows: Row[]): Promise<void> {
  const { items } = await store.listMessages(HIT);
  const expected = rows.map(({ message_json }) => {
    try {
      return checkStored(JSON.parse(message_json as string));
    } catch {
      return "checkpoint_corruption";
    }
  });
  expect(items.map(({ message, error }) => message ?? error?.code)).toEqual(expected);
}

const sqliteTables: Tables = {
  columns: [
    ["messages", "message_json", "id"],
    ["messages", "message_json", "id"],
    ["messages", "created_at", "id"],
    ["messages", "run_id", "id"],
    ["thread_extra", "extra_json", "thread_id"],
    ["thread_extra", "parent_thread_id", "thread_id"],
    ["thread_pending_request", "request_json", "thread_id"],
    ["thread_pending_request", "run_id", "thread_id"],
    ["thread_hitl_answers", "answer_json", "thread_id"],
    ["runs", "claimed_at", "thread_id", "run_id"],
    ["runs", "completed_at", "thread_id", "run_id"],
    ["runs", "completion_seq", "thread_id", "run_id"],
    ["everthread_archives", "up_to", "thread_id", "archive_no"],
    ["everthread_archives", "at_revision", "thread_id", "archive_no"],
    ["everthread_archives", "summary_json", "thread_id", "archive_no"],
    ["everthread_archives", "system_json", "thread_id", "archive_no"],
    ["everthread_archives", "extra_json", "thread_id", "archive_no"],
    ["everthread_archives", "created_at", "thread_id", "archive_no"],
    ["everthread_archives", "pruned_at", "thread_id", "archive_no"],
    ["everthread_archives", "scope", "thread_id", "archive_no"],
  ],
  parameter: () => "?",
  async make() {
    const directory = fastDir();
    const path = join(directory, "threads.db");
    const store = await SqliteCheckpointer.open(path);
    const db = new DatabaseSync(path);
    return {
      store,
      sql: async (text, values) => db.prepare(text).all(...(values as SQLInputValue[])),
      async dispose() {
        db.close();
        rmSync(directory, { recursive: true });
      },
    };
  },
};

const SERVER_COLUMNS: Tables["columns"] = [
  ["cubepi_messages", "payload", "thread_id", "seq"],
  ["cubepi_messages", "payload", "thread_id", "seq"],
  ["cubepi_messages", "metadata", "thread_id", "seq"],
  ["cubepi_messages", "role", "thread_id", "seq"],
  ["cubepi_messages", "run_id", "thread_id", "seq"],
  ["cubepi_threads", "extra", "thread_id"],
  ["cubepi_threads", "pending_request", "thread_id"],
  ["cubepi_threads", "run_id", "thread_id"],
  ["cubepi_hitl_answers", "answer", "thread_id"],
  ["cubepi_runs", "completed_at", "thread_id", "run_id"],
  ["cubepi_runs", "completion_seq", "thread_id", "run_id"],
];

fuzz("damaged rows of SQLite give right data or an error that names the row", 60, damagedRows(sqliteTables));

const database = await makeDatabase();
const client = new pg.Client({ connectionString: database.url });
await client.connect();
afterAll(async () => {
  await client.end();
  await database.drop();
});
const postgresTables: Tables = {
  columns: SERVER_COLUMNS,
  parameter: (n) => `$${n}`,
  make: async () => ({
    store: await PostgresCheckpointer.open(database.url),
    sql: async (text, values) => (await client.query(text, values)).rows,
    dispose: async () => void (await client.query("DELETE FROM cubepi_threads")),
  }),
};
fuzz("damaged rows of Postgres give right data or an error that names the row", 10, damagedRows(postgresTables));

const server = hasMysql ? await testDatabase() : undefined;
afterAll(() => server?.[Symbol.asyncDispose]());
const mysqlTables: Tables = {
  columns: SERVER_COLUMNS,
  parameter: () => "?",
  make: async () => ({
    store: await MySQLCheckpointer.open(server?.url ?? ""),
    sql: async (text, values) => (await server?.sql(text, values)) ?? [],
    dispose: async () => await server?.empty(),
  }),
};
fuzz("damaged rows of MySQL give right data or an error that names the row", 10, damagedRows(mysqlTables), {
  skip: server ? undefined : mysqlLabel,
});
