/** What columns hold: metadata that SQL can query and change, U+0000 in jsonb, numbers, and rows that are damaged. */
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { fromJsonb, toJsonb } from "../../src/checkpoint/postgres/jsonb.ts";
import { escapeText } from "../../src/db/postgres-text.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import { makeDatabase, plantRow, sql } from "../support/postgres.ts";

const { url, drop } = await makeDatabase();
const store = await PostgresCheckpointer.open(url);
afterAll(async () => {
  await store.close();
  await drop();
});
beforeEach(() => sql(url, "DELETE FROM cubepi_threads"));

const metadataOf = async () => (await store.load("t"))?.messages.map((message) => message.metadata);

describe("metadata", () => {
  test("is a column that SQL queries by its index, the same as the payload's", async () => {
    const metadata = { tags: ["a", "b"], zeta: 1, n: null, deep: { x: [1.5] } };
    await store.append("t", [userMessage("hi", { metadata }), userMessage("none")]);
    const rows = await sql(url, 'SELECT seq, metadata FROM cubepi_messages WHERE metadata @> \'{"tags": ["b"]}\'');
    expect(rows).toEqual([{ seq: "1", metadata }]);
    expect(JSON.stringify(await metadataOf())).toBe(JSON.stringify([metadata, {}]));
  });

  test("what SQL changes there, load, snapshot and the listing show; the rest of the message is the payload's", async () => {
    const message = userMessage("hi", { metadata: { b: 1, a: 2 }, run_id: "r" });
    await store.claimRun("t", "r");
    await store.append("t", [message]);
    await store.markRunComplete("t", "r");
    await sql(url, "UPDATE cubepi_messages SET metadata = metadata || '{\"seen\": true}'");
    const changed = { ...message, metadata: { b: 1, a: 2, seen: true } };
    expect((await store.load("t"))?.messages).toEqual([changed]);
    expect(await store.snapshot("t", { afterRunId: "r" })).toEqual([changed]);
    expect((await store.listMessages("t")).items[0]?.message).toEqual(changed);
    await sql(url, 'UPDATE cubepi_messages SET metadata = \'{"a": 2, "b": 1}\'');
    // Equal again, so the payload counts, with the order of its keys.
    expect(JSON.stringify(await metadataOf())).toBe('[{"b":1,"a":2}]');
  });

  test("a message without metadata stays without, and gets what SQL puts there", async () => {
    const { metadata: _, ...bare } = userMessage("hi");
    await store.append("t", [bare]);
    expect((await store.load("t"))?.messages).toEqual([bare]);
    await sql(url, "UPDATE cubepi_messages SET metadata = '{\"k\": 1}'");
    expect((await store.load("t"))?.messages).toEqual([{ ...bare, metadata: { k: 1 } }]);
  });

  test("that is no object in the column is a damaged row, named", async () => {
    await store.append("t", [userMessage("hi")]);
    await sql(url, "UPDATE cubepi_messages SET metadata = '[1]'");
    const rowRef = 'cubepi_messages(thread_id="t", seq=1)';
    await expect(store.load("t")).rejects.toMatchObject({ code: "checkpoint_corruption", rowRef, backend: "postgres" });
  });
});

describe("U+0000", () => {
  const nul = { "k\0": ["a\0b", "back\\slash \\0 and \0"], plain: "text" };

  test("E1 is kept in metadata, extra, requests and answers; what holds none is stored as it is", async () => {
    await store.append("t", [userMessage("a\0b", { metadata: nul })]);
    await store.saveExtra("t", nul);
    await store.saveHitlAnswer("t", "q", nul);
    const loaded = await store.load("t");
    expect([loaded?.messages[0]?.metadata, loaded?.extra, await store.loadHitlAnswer("t", "q")]).toEqual([
      nul,
      nul,
      nul,
    ]);
    const [row] = await sql(url, "SELECT extra FROM cubepi_threads");
    expect(row?.extra).toEqual({
      "everthread-nul:k\\0": ["everthread-nul:a\\0b", "everthread-nul:back\\\\slash \\\\0 and \\0"],
      plain: "text",
    });
    await sql(url, 'UPDATE cubepi_messages SET metadata = metadata || \'{"plain": "changed"}\'');
    expect(await metadataOf()).toEqual([{ ...nul, plain: "changed" }]);
  });

  test("in a question id it is refused, and an id that begins like the mark is one as any", async () => {
    const request = {
      question_id: "everthread-nul:\\0",
      thread_id: null,
      created_at: 1,
      payload: { kind: "confirm" as const, prompt: "\0?" },
    };
    await store.savePendingRequest("t", request, { runId: "r" });
    expect(await store.loadPending("t")).toEqual({ request, runId: "r" });
    const match = { questionId: request.question_id, runId: "r" };
    expect(await store.clearPendingRequestIfMatches("t", { ...match, questionId: "\\0" })).toBe(false);
    expect(await store.clearPendingRequestIfMatches("t", match)).toBe(true);
  });

  test("any JSON goes through the escaping unchanged, and holds no U+0000 there", () => {
    const text = fc.oneof(
      fc.string({ unit: fc.constantFrom("\0", "\\", "0", "a", '"', "u0000", "everthread-nul:") }),
      fc.string({ unit: "grapheme" }),
    );
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        text,
        fc.integer(),
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(text, tie("value"), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(value, (json) => {
        const stored = toJsonb(json);
        expect(fromJsonb(stored)).toEqual(json);
        expect(
          JSON.stringify(JSON.parse(stored), (_, item) =>
            typeof item === "string" && item.includes("\0") ? expect.unreachable() : item,
          ),
        ).toBeDefined();
      }),
    );
    for (const other of ["everthread-nul:abc", "everthread-nul:\\x", "everthread-nul:"]) {
      expect(fromJsonb(JSON.stringify(other))).toBe(other);
      expect(fromJsonb(JSON.stringify(escapeText(other)))).toBe(other);
    }
  });
});

describe("numbers and JSON at the top level", () => {
  test("P1 arrays, texts, null, 0 and false are JSON of that value, and JSON null is not NULL", async () => {
    const values: JsonValue[] = [[], ["a"], "text", "", null, 0, false, "{a,b}", [[1]]];
    for (const [i, value] of values.entries()) await store.saveHitlAnswer("t", `q${i}`, value);
    for (const [i, value] of values.entries()) expect(await store.loadHitlAnswer("t", `q${i}`)).toEqual(value);
    const rows = await sql(url, "SELECT answer::text FROM cubepi_hitl_answers ORDER BY question_id");
    expect(rows.map((row) => row.answer)).toEqual(
      values.map((value) => JSON.stringify(value).replace(/,/g, ", ").replace("{a, b}", "{a,b}")),
    );
    await store.saveExtra("t", { list: [], none: null });
    expect((await store.load("t"))?.extra).toEqual({ list: [], none: null });
  });

  test("P2 positions and counts are numbers, whatever type parsers the host has set", async () => {
    const types = [16, 17, 20, 23, 25, 114, 701, 1184, 1700, 3802];
    const before = types.map((type) => pg.types.getTypeParser(type));
    for (const type of types) pg.types.setTypeParser(type, () => "parsed by the host");
    try {
      const pool = new pg.Pool({ connectionString: url, types: { getTypeParser: () => () => "parsed" } });
      await using hosted = await PostgresCheckpointer.open({ pool });
      let revision = 0;
      for (let i = 0; i < 12; i++)
        revision = await hosted.append("t", [userMessage(`${i}`)], { expectedRevision: revision });
      revision = await hosted.append(
        "t",
        Array.from({ length: 100 }, () => userMessage("x")),
        { expectedRevision: revision },
      );
      await hosted.claimRun("t", "r");
      await hosted.markRunComplete("t", "r");
      expect((await hosted.load("t"))?.revision).toBe(revision);
      const positions = (await hosted.listMessages("t", { limit: 200 })).items.map((entry) => entry.position);
      expect(positions).toEqual(Array.from({ length: 112 }, (_, i) => revision - 111 + i));
      expect((await hosted.listThreads()).items[0]).toMatchObject({ messageCount: 112, revision, pending: false });
      expect((await hosted.listRuns("t")).items[0]).toMatchObject({ completionSeq: 1, runId: "r" });
      await hosted.close();
      await pool.end();
    } finally {
      for (const [i, type] of types.entries()) pg.types.setTypeParser(type, before[i] as (value: string) => unknown);
    }
    const rows = await sql(url, "SELECT count(*)::int AS count, max(seq)::int AS last FROM cubepi_messages");
    expect(rows).toEqual([{ count: 112, last: 112 }]);
  });

  test("P3 a page goes on where the last ended, though rows share a millisecond", async () => {
    for (let i = 0; i < 20; i++) await store.append("t", [userMessage(`${i}`)]);
    await sql(url, "UPDATE cubepi_messages SET created_at = now()");
    const seen: string[] = [];
    for (let after: number | undefined; ; ) {
      const page = await store.listMessages("t", { after, limit: 3 });
      seen.push(...page.items.map((entry) => (entry.message ? textOf(entry.message) : "damaged")));
      if (page.next === null) break;
      after = page.next;
    }
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`));
  });

  test("P8 numbers and nesting in jsonb are what JSON.parse makes of them", async () => {
    const nested = Array.from({ length: 100 }).reduce<JsonValue>((inner) => [inner], "x");
    const value: JsonObject = { n: [1e308, 5e-324, 1, 0.1, 1e21, 123456789012345680000, -0.5, 2 ** 53], nested };
    await store.saveExtra("t", value);
    await store.append("t", [userMessage("hi", { metadata: value })]);
    expect((await store.load("t"))?.extra).toEqual(value);
    expect(JSON.stringify(await metadataOf())).toBe(JSON.stringify([value]));
  });
});

describe("damage", () => {
  test("extra, request and payload that can't be read are named; other threads are unaffected", async () => {
    await store.append("fine", [userMessage("hi")]);
    await plantRow(url, "t", "no msgpack");
    const damaged = (rowRef: string) => ({ code: "checkpoint_corruption", threadId: "t", rowRef });
    await expect(store.load("t")).rejects.toMatchObject(damaged('cubepi_messages(thread_id="t", seq=1)'));
    await sql(url, "DELETE FROM cubepi_messages WHERE thread_id = 't'");
    await sql(url, "UPDATE cubepi_threads SET extra = '[1]', pending_request = '{\"kind\": 1}' WHERE thread_id = 't'");
    await expect(store.load("t")).rejects.toMatchObject(damaged('cubepi_threads(thread_id="t").extra'));
    await expect(store.loadPending("t")).rejects.toMatchObject(
      damaged('cubepi_threads(thread_id="t").pending_request'),
    );
    expect((await store.load("fine"))?.messages).toHaveLength(1);
  });

  test("a role that is not the payload's is damage", async () => {
    await store.append("t", [userMessage("hi")]);
    await sql(url, "UPDATE cubepi_messages SET role = 'assistant'");
    await expect(store.load("t")).rejects.toMatchObject({ code: "checkpoint_corruption" });
  });
});

describe("threads", () => {
  test("a fork records its parent and where it left it, is numbered from 1, and survives its parent", async () => {
    await store.append("t", [userMessage("loose", { run_id: "open" })]);
    await store.claimRun("t", "r");
    await store.append("t", [userMessage("1", { run_id: "r" }), userMessage("2", { run_id: "r" })]);
    await store.markRunComplete("t", "r");
    await store.fork("t", "fork", { afterRunId: "r" });
    const row = "SELECT parent_thread_id, forked_at_seq FROM cubepi_threads WHERE thread_id = 'fork'";
    expect(await sql(url, row)).toEqual([{ parent_thread_id: "t", forked_at_seq: "3" }]);
    expect(await sql(url, "SELECT seq FROM cubepi_messages WHERE thread_id = 'fork' ORDER BY seq")).toEqual([
      { seq: "1" },
      { seq: "2" },
    ]);
    await store.deleteThread("t");
    expect(await store.load("fork")).toMatchObject({ parentThreadId: null });
    expect(await sql(url, row)).toEqual([{ parent_thread_id: null, forked_at_seq: "3" }]);
  });

  test("seq counts from 1 without gaps, anew after a deletion, and the revision never repeats", async () => {
    const revisions = new Set<number>();
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 3; i++) revisions.add(await store.append("t", [userMessage("x")]));
      expect((await sql(url, "SELECT seq FROM cubepi_messages ORDER BY seq")).map((row) => row.seq)).toEqual([
        "1",
        "2",
        "3",
      ]);
      await store.deleteThread("t");
      expect(await sql(url, "SELECT 1 FROM cubepi_threads")).toEqual([]);
    }
    expect(revisions.size).toBe(15);
    expect([...revisions]).toEqual([...revisions].sort((a, b) => a - b));
  });

  test("an append that is refused leaves no row of a thread", async () => {
    await expect(store.append("t", [userMessage("x")], { expectedRevision: 3 })).rejects.toMatchObject({ actual: 0 });
    await expect(store.append("t", [userMessage("x", { run_id: "r".repeat(65) })])).rejects.toMatchObject({
      code: "invalid_id",
    });
    expect(await sql(url, "SELECT 1 FROM cubepi_threads")).toEqual([]);
  });

  test("a run id of over 64 characters is taken where another program claimed it, whatever is in it", async () => {
    const runId = `{"\\,} null ${"é".repeat(100)}`;
    const message = userMessage("x", { run_id: runId });
    await expect(store.append("t", [message])).rejects.toMatchObject({ code: "invalid_id" });
    await sql(url, "INSERT INTO cubepi_threads (thread_id) VALUES ('t')");
    await sql(url, "INSERT INTO cubepi_runs (thread_id, run_id) VALUES ('t', $1)", [runId]);
    await store.append("t", [message]);
    const other = userMessage("y", { run_id: "z".repeat(65) });
    await expect(store.append("t", [message, other])).rejects.toThrow("65 characters");
    await store.markRunComplete("t", runId);
    await expect(store.append("t", [message])).rejects.toMatchObject({ code: "run_already_completed" });
    expect(await store.snapshot("t", { afterRunId: runId })).toEqual([message]);
  });

  test("a list of many threads, most of which hold nothing, is read page by page", async () => {
    await sql(url, "INSERT INTO cubepi_threads (thread_id) SELECT 'bare ' || i FROM generate_series(1, 500) AS i");
    for (const id of ["bare 7", "bare 77", "zz"]) await store.append(id, [userMessage("hi")]);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.listThreads({ after, limit: 1 });
      seen.push(...page.items.map((thread) => thread.threadId));
      if (page.next === null) break;
      after = page.next;
    }
    expect(seen).toEqual(["bare 7", "bare 77", "zz"]);
    expect((await store.listThreads({ prefix: "a\0", after: "x\0y" })).items).toEqual([]);
    expect((await store.listThreads({ after: "bare 77\0" })).items.map((thread) => thread.threadId)).toEqual(["zz"]);
  });
});
