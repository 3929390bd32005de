/** The log of changes: what is stored, in which order it comes back, and the value a memory had at a time. */
import assert from "node:assert/strict";
import type { HistoryListOptions, HistoryRecord, MemoryHistory, NewHistoryRecord } from "../history/history.ts";
import { type HistoryBench, historyCase } from "./history-case.ts";
import { rejectsWith, wrong } from "./tools.ts";

const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00$/;

const change = (memory_id: string, new_memory: string | null, more: Partial<NewHistoryRecord> = {}) => ({
  memory_id,
  new_memory,
  event: "ADD",
  ...more,
});

/** Every page of a listing. @param between what happens between two pages (Default: nothing) */
async function allPages(
  history: MemoryHistory,
  options: HistoryListOptions,
  between: () => Promise<unknown> = async () => {},
): Promise<HistoryRecord[][]> {
  const pages: HistoryRecord[][] = [];
  let after: number | undefined;
  do {
    const page = await history.list({ ...options, after });
    pages.push(page.items);
    after = page.next ?? undefined;
    await between();
  } while (after !== undefined && pages.length < 100);
  return pages;
}

const valuesOf = (records: readonly HistoryRecord[]) => records.map((record) => record.new_memory);

async function listed(history: MemoryHistory, options: HistoryListOptions): Promise<(string | null)[]> {
  return valuesOf((await history.list(options)).items);
}

/** Nothing at all is stored. */
async function assertEmpty(history: MemoryHistory): Promise<void> {
  assert.deepEqual(await history.list(), { items: [], next: null });
  assert.deepEqual(await history.listScopes(), { items: [], next: null });
}

/** Asserts what times a form of a time is taken for. */
async function assertStoredAs({ history }: HistoryBench, given: NewHistoryRecord["created_at"], stored: string | null) {
  const added = await history.add(change("m", "x", { created_at: given }));
  assert.equal(added.created_at, stored, String(given));
  assert.equal((await history.get("m")).at(-1)?.created_at, stored, String(given));
}

export const historyLogCases = [
  historyCase("A change comes back as it was given, with the defaults filled in", async (bench) => {
    const full = {
      id: "one",
      memory_id: "m",
      old_memory: "before",
      new_memory: "after",
      event: "UPDATE",
      created_at: "2026-05-07T10:00:00+00:00",
      updated_at: "2026-05-07T10:00:00.000001+00:00",
      is_deleted: false,
      actor_id: "ada",
      role: "user",
    };
    const { id, created_at, ...rest } = await bench.history.add({ memory_id: "m", event: "ADD" });
    assert.deepEqual(rest, {
      memory_id: "m",
      old_memory: null,
      new_memory: null,
      event: "ADD",
      updated_at: null,
      is_deleted: false,
      actor_id: null,
      role: null,
    });
    assert.ok(id !== "" && UTC.test(created_at ?? ""), `${created_at} should be the present time`);
    assert.deepEqual(await bench.history.add(full), full);
    assert.deepEqual(await (await bench.again()).get("m"), [{ id, created_at, ...rest }, full]);
  }),

  historyCase(
    "DELETE marks a change as deleted, unless it says otherwise; other events are kept as they are",
    async (bench) => {
      await bench.history.addBatch([
        change("m", null, { event: "DELETE" }),
        change("m", null, { event: "DELETE", is_deleted: false }),
        change("m", null, { event: "NONE" }),
        change("m", null, { event: "delete" }),
        change("m", null, { event: "Gemerkt 🧠", is_deleted: true }),
      ]);
      const stored = (await (await bench.again()).get("m")).map(({ event, is_deleted }) => [event, is_deleted]);
      assert.deepEqual(stored, [
        ["DELETE", true],
        ["DELETE", false],
        ["NONE", false],
        ["delete", false],
        ["Gemerkt 🧠", true],
      ]);
    },
  ),

  historyCase("M13 W6 the order is that of writing, whatever the times say", async (bench) => {
    const times = ["2026-01-01", "9999-12-31T23:59:59Z", "1970-01-01", "2026-01-01", null, new Date(0)];
    const records = times.map((created_at, i) => change("m", `${i}`, { created_at }));
    for (const record of records.slice(0, 3)) await bench.history.add(record);
    await bench.history.addBatch(records.slice(3));
    const later = await bench.again();
    const order = times.map((_, i) => `${i}`);
    assert.deepEqual(valuesOf(await later.get("m")), order);
    assert.deepEqual(await listed(later, {}), order);
  }),

  historyCase("A memory has its own changes and no other's, also where ids look alike", async ({ history }) => {
    const ids = ["m", "M", "m ", "m%", "m_", "é", "e\u0301", "x') OR 1=1 --", "😀", "1", "01"];
    await history.addBatch(ids.map((id) => change(id, id)));
    for (const id of ids) assert.deepEqual(valuesOf(await history.get(id)), [id]);
    assert.deepEqual(await history.get("missing"), []);
  }),

  historyCase("E1 E2 E4 texts are exact: U+0000 is kept, a lone surrogate becomes U+FFFD", async (bench) => {
    const values = ["a\0b", "\0", "nul\0after secretword", "🔑 \u2028 e\u0301", "", " \n", "x".repeat(100_000)];
    await bench.history.addBatch(
      values.map((text) => change("m", text, { old_memory: text, actor_id: text, role: text })),
    );
    await bench.history.add(change("m", "cut \ud83d", { old_memory: "\udd11 begun", event: "E\0\ud83d" }));
    const stored = await (await bench.again()).get("m");
    assert.deepEqual(
      stored.slice(0, -1).map(({ new_memory, old_memory, actor_id, role }) => [new_memory, old_memory, actor_id, role]),
      values.map((text) => [text, text, text, text]),
    );
    const last = stored.at(-1);
    assert.deepEqual([last?.new_memory, last?.old_memory, last?.event], ["cut \ufffd", "\ufffd begun", "E\0\ufffd"]);
  }),

  historyCase("W9 times are taken as a Date, ISO 8601 with or without an offset, and milliseconds", async (bench) => {
    const noon = "2026-05-07T10:00:00+00:00";
    for (const given of [
      new Date("2026-05-07T10:00:00Z"),
      Date.UTC(2026, 4, 7, 10),
      ...["2026-05-07T10:00Z", "2026-05-07 10:00", "2026-05-07T10:00:00", "2026-05-07T12:00:00+02:00"],
      ...["2026-05-07T12:00+0200", "2026-05-07t07:30:00.000-02:30", "2026-05-07 10:00:00.000000000"],
    ]) {
      await assertStoredAs(bench, given, noon);
    }
    await assertStoredAs(bench, "2026-05-07", "2026-05-07T00:00:00+00:00");
    await assertStoredAs(bench, "2026-05-07T23:30:00.1234567-01:00", "2026-05-08T00:30:00.123456+00:00");
    await assertStoredAs(bench, new Date(1), "1970-01-01T00:00:00.001000+00:00");
    await assertStoredAs(bench, -1, "1969-12-31T23:59:59.999000+00:00");
    await assertStoredAs(bench, null, null);
  }),

  historyCase("What is no time is refused, with its path, and nothing is written", async ({ history }) => {
    const none = ["", "today", "2026-13-01", "2026-02-30", "2026-01-01T24:00", "12:00", "0000-01-01", "10000-01-01"];
    for (const created_at of [...none, Number.NaN, Number.POSITIVE_INFINITY, new Date("no"), true, {}, 8.64e15]) {
      const bad = [change("m", "fine"), wrong(change("m", "bad", { created_at: wrong(created_at) }))];
      await rejectsWith(history.addBatch(bad), "invalid_record", { path: "records[1].created_at" });
    }
    await rejectsWith(history.list({ since: "soon" }), "invalid_record", { path: "since" });
    await rejectsWith(history.restoreAt("m", "soon"), "invalid_record", { path: "time" });
    await assertEmpty(history);
  }),

  historyCase("A change of the wrong shape is refused, with its path, and nothing is written", async ({ history }) => {
    const refused: [unknown, string][] = [
      [null, "record"],
      ["text", "record"],
      [{ memory_id: "m" }, "record.event"],
      [{ memory_id: "m", event: "" }, "record.event"],
      [{ memory_id: "m", event: "ADD", new_memory: 1 }, "record.new_memory"],
      [{ memory_id: "m", event: "ADD", old_memory: {} }, "record.old_memory"],
      [{ memory_id: "m", event: "ADD", is_deleted: 1 }, "record.is_deleted"],
      [{ memory_id: "m", event: "ADD", actor_id: 7 }, "record.actor_id"],
      [{ memory_id: "m", event: "ADD", role: [] }, "record.role"],
      [{ memory_id: "m", event: "ADD", memoryId: "m" }, "record.memoryId"],
    ];
    for (const [record, path] of refused) await rejectsWith(history.add(wrong(record)), "invalid_record", { path });
    for (const memory_id of [undefined, null, "", 7, "a\0b", "\ud83d", "x".repeat(256)]) {
      await rejectsWith(history.add({ memory_id: wrong(memory_id), event: "ADD" }), "invalid_id");
      await rejectsWith(history.get(wrong(memory_id)), "invalid_id");
      await rejectsWith(history.restoreAt(wrong(memory_id), 0), "invalid_id");
    }
    await rejectsWith(history.addBatch(wrong("records")), "invalid_record", { path: "records" });
    await assertEmpty(history);
  }),

  historyCase("L30 what looks like SQL is plain data", async ({ history }) => {
    const text = "'; DROP TABLE history; --";
    await history.add(change(text, text, { event: text, actor_id: text, role: text }));
    assert.deepEqual(await listed(history, { memoryId: text, actorId: text, event: text }), [text]);
    assert.deepEqual(await listed(history, { actorId: "x' OR '1'='1" }), []);
  }),

  historyCase("A batch is all or none", async ({ history }) => {
    await history.add(change("m", "first", { id: "taken" }));
    const good = Array.from({ length: 100 }, (_, i) => change("m", `${i}`));
    await rejectsWith(history.addBatch([...good, wrong({ memory_id: "m" })]), "invalid_record", {
      path: "records[100].event",
    });
    await rejectsWith(history.addBatch([...good, change("m", "again", { id: "taken" })]), "duplicate_record", {
      id: "taken",
    });
    await rejectsWith(
      history.addBatch([change("m", "a", { id: "twice" }), change("m", "b", { id: "twice" })]),
      "duplicate_record",
    );
    assert.deepEqual(valuesOf(await history.get("m")), ["first"]);
    assert.deepEqual(await history.addBatch([]), []);
  }),

  historyCase("C11 adding a change again under its id is refused, and the first one stays", async (bench) => {
    await bench.history.add(change("m", "first", { id: "one" }));
    const later = await bench.again();
    await rejectsWith(later.add(change("other", "second", { id: "one" })), "duplicate_record", { id: "one" });
    assert.deepEqual(await listed(later, {}), ["first"]);
    await later.add(change("m", "next", { id: "two" }));
    assert.deepEqual(valuesOf(await later.get("m")), ["first", "next"]);
  }),

  historyCase("E12 a batch of 100,000 changes is stored in order", async (bench) => {
    const records = Array.from({ length: 100_000 }, (_, i) => change(`m${i % 1000}`, `${i}`));
    assert.equal((await bench.history.addBatch(records)).length, records.length);
    const later = await bench.again();
    const expected = Array.from({ length: 100 }, (_, i) => `${7 + i * 1000}`);
    assert.deepEqual(valuesOf(await later.get("m7")), expected);
    const { items, next } = await later.list({ after: 99_990, limit: 100 });
    assert.deepEqual([items.length, items.at(-1)?.new_memory, next], [10, "99999", null]);
  }),

  historyCase("Values are copied on the way in and on the way out", async ({ history }) => {
    const given = change("m", "as it was");
    await history.add(given);
    given.new_memory = "changed";
    const [out] = await history.get("m");
    if (out) out.new_memory = "changed";
    assert.deepEqual(valuesOf(await history.get("m")), ["as it was"]);
  }),

  historyCase("W3 pages of changes of one time have each once, also while the log grows", async ({ history }) => {
    const created_at = "2026-05-07T10:00:00Z";
    await history.addBatch(Array.from({ length: 205 }, (_, i) => change(`m${i % 3}`, `${i}`, { created_at })));
    const until = "2026-05-07T10:00:01Z";
    const pages = await allPages(history, { until }, () => history.add(change("m0", "late")));
    assert.deepEqual(
      pages.map((page) => page.length),
      [100, 100, 5],
    );
    assert.deepEqual(
      valuesOf(pages.flat()),
      Array.from({ length: 205 }, (_, i) => `${i}`),
    );
  }),

  historyCase(
    "A listing that ends with a full page has no next one, and a cursor past the end finds nothing",
    async ({ history }) => {
      await history.addBatch([change("a", "1"), change("b", "2"), change("a", "3")]);
      assert.equal((await history.list({ limit: 3 })).next, null);
      assert.equal((await history.list({ memoryId: "a", limit: 2 })).next, null);
      const { items, next } = await history.list({ memoryId: "a", limit: 1 });
      assert.deepEqual(valuesOf(items), ["1"]);
      assert.ok(next !== null);
      assert.deepEqual(await listed(history, { memoryId: "a", after: next }), ["3"]);
      assert.deepEqual(await history.list({ after: 2 ** 40 }), { items: [], next: null });
    },
  ),

  historyCase("A listing is narrowed by memory, actor, event and time, alone and together", async ({ history }) => {
    await history.addBatch([
      change("a", "1", { actor_id: "ada", created_at: "2026-01-01" }),
      change("b", "2", { actor_id: "bob", created_at: "2026-01-02", event: "UPDATE" }),
      change("a", "3", { created_at: "2026-01-01", updated_at: "2026-01-03", event: "UPDATE" }),
      change("a", "4", { actor_id: "ada", created_at: null, event: "DELETE" }),
      change("a", "5", { actor_id: "Ada", created_at: "2026-01-05" }),
    ]);
    assert.deepEqual(await listed(history, { memoryId: "a" }), ["1", "3", "4", "5"]);
    assert.deepEqual(await listed(history, { actorId: "ada" }), ["1", "4"]);
    assert.deepEqual(await listed(history, { actorId: null }), ["3"]);
    assert.deepEqual(await listed(history, { event: "UPDATE" }), ["2", "3"]);
    assert.deepEqual(await listed(history, { since: "2026-01-02" }), ["2", "3", "5"]);
    assert.deepEqual(await listed(history, { until: "2026-01-03" }), ["1", "2"]);
    assert.deepEqual(await listed(history, { since: "2026-01-03", until: "2026-01-03T00:00:00.000001Z" }), ["3"]);
    assert.deepEqual(await listed(history, { memoryId: "a", event: "ADD", actorId: "ada" }), ["1"]);
    assert.deepEqual(await listed(history, { memoryId: "b", actorId: "ada" }), []);
    await rejectsWith(history.list(wrong({ actor: "ada" })), "invalid_argument");
  }),

  historyCase("W9 since and until are the same instant in every form", async ({ history }) => {
    await history.addBatch([
      change("m", "before", { created_at: "2026-05-07 09:59:59.999" }),
      change("m", "at", { created_at: "2026-05-07T12:00:00+02:00" }),
      change("m", "after", { created_at: "2026-05-07T10:00:00.000001Z" }),
    ]);
    const ms = Date.UTC(2026, 4, 7, 10);
    for (const time of [new Date(ms), ms, "2026-05-07T10:00Z", "2026-05-07 10:00", "2026-05-07T05:00:00-05:00"]) {
      assert.deepEqual(await listed(history, { since: time }), ["at", "after"]);
      assert.deepEqual(await listed(history, { until: time }), ["before"]);
    }
  }),

  historyCase(
    "W11 a limit of 0 gives nothing, none gives 100, and what is no limit is refused",
    async ({ history }) => {
      await history.addBatch(Array.from({ length: 101 }, (_, i) => change("m", `${i}`)));
      assert.deepEqual((await history.list({ limit: 0 })).items, []);
      assert.equal((await history.list({ limit: undefined })).items.length, 100);
      for (const limit of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 10_001, null, "10"]) {
        await rejectsWith(history.list({ limit: wrong(limit) }), "invalid_argument");
      }
      for (const after of [-1, 1.5, Number.NaN, null, "1"]) {
        await rejectsWith(history.list({ after: wrong(after) }), "invalid_argument");
      }
    },
  ),

  historyCase("restoreAt gives the value of each moment", async ({ history }) => {
    await history.addBatch([
      change("m", "one", { created_at: "2026-01-01" }),
      change("m", "two", { event: "UPDATE", old_memory: "one", created_at: "2026-01-01", updated_at: "2026-01-02" }),
      change("m", null, { event: "NONE", created_at: "2026-01-03" }),
      change("m", null, { event: "DELETE", old_memory: "two", created_at: "2026-01-01", updated_at: "2026-01-04" }),
      change("m", "", { created_at: "2026-01-05" }),
      change("other", "theirs", { created_at: "2025-01-01" }),
    ]);
    const moments: [string, string | undefined][] = [
      ["2025-12-31T23:59:59.999999Z", undefined],
      ["2026-01-01", "one"],
      ["2026-01-01T23:59:59.999999Z", "one"],
      ["2026-01-02T01:00:00+01:00", "two"],
      ["2026-01-03T12:00", "two"],
      ["2026-01-04", undefined],
      ["2026-01-05", ""],
      ["9999-01-01", ""],
    ];
    for (const [time, value] of moments) assert.equal(await history.restoreAt("m", time), value, time);
    assert.equal(await history.restoreAt("missing", new Date()), undefined);
  }),

  historyCase(
    "W6 restoreAt goes by the order of writing where a clock was set back or no time was given",
    async ({ history }) => {
      await history.addBatch([
        change("m", "one", { created_at: "2026-01-05" }),
        change("m", "two", { event: "UPDATE", created_at: "2026-01-01" }),
        change("m", "three", { event: "UPDATE", created_at: null }),
        change("m", "four", { event: "UPDATE", created_at: "2026-01-09" }),
      ]);
      assert.equal(await history.restoreAt("m", "2026-01-01"), "three");
      assert.equal(await history.restoreAt("m", "2026-01-06"), "three");
      assert.equal(await history.restoreAt("m", "2026-01-09"), "four");
      assert.equal(await history.restoreAt("m", "2025-01-01"), undefined);
    },
  ),

  historyCase("restoreAt knows what a log that begins with an update replaced", async ({ history }) => {
    const updated_at = "2026-01-02";
    await history.add(change("m", "new", { event: "UPDATE", old_memory: "old", created_at: "2026-01-01", updated_at }));
    assert.equal(await history.restoreAt("m", "2025-12-31"), undefined);
    assert.equal(await history.restoreAt("m", "2026-01-01T12:00"), "old");
    assert.equal(await history.restoreAt("m", updated_at), "new");
  }),
];
