/** The small parts: ids, times, and moving a history from one store to another. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { InMemoryHistory } from "../../src/history/memory/history.ts";
import { newRecordId } from "../../src/history/record-id.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { Clock, instantOf } from "../../src/history/times.ts";
import { exportLines, importContent, parseLines } from "../../src/history/transfer.ts";
import { tempDir } from "../support/temp.ts";

test("ids are UUIDs of version 7, all different, in the order they were made", () => {
  const ids = Array.from({ length: 20_000 }, newRecordId);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(ids);
  const time = Number.parseInt(ids[0]?.replace("-", "").slice(0, 12) ?? "", 16);
  expect(Math.abs(Date.now() - time)).toBeLessThan(60_000);
});

test("the random parts of ids differ, also in their variant", () => {
  const ids = Array.from({ length: 1000 }, newRecordId);
  expect(new Set(ids.map((id) => id.slice(20))).size).toBe(1000);
  expect(new Set(ids.map((id) => id[19])).size).toBe(4);
});

test("a clock never gives a time twice, and follows one that was set back", () => {
  const real = Date.now;
  try {
    const clock = new Clock();
    Date.now = () => 1_750_000_000_000;
    const first = Array.from({ length: 3 }, () => clock.next());
    expect(first).toEqual([
      "2025-06-15T15:06:40+00:00",
      "2025-06-15T15:06:40.000001+00:00",
      "2025-06-15T15:06:40.000002+00:00",
    ]);
    Date.now = () => 1_749_999_999_500;
    expect(clock.next()).toBe("2025-06-15T15:06:40.000003+00:00");
    Date.now = () => 1_749_999_000_000;
    expect(clock.next()).toBe("2025-06-15T14:50:00+00:00");
  } finally {
    Date.now = real;
  }
});

test.each([
  ["2024-02-29", "2024-02-29T00:00:00.000000"],
  ["2023-02-29", undefined],
  ["1900-02-29", undefined],
  ["2000-02-29", "2000-02-29T00:00:00.000000"],
  ["2024-00-10", undefined],
  ["2024-04-31", undefined],
  ["2024-12-31T23:30-01:00", "2025-01-01T00:30:00.000000"],
  ["0001-01-01T00:30+01:00", undefined],
  ["9999-12-31T23:30-01:00", undefined],
  ["2024-01-01T10:00:60", undefined],
  ["2024-01-01 10:00:00,5+0530", "2024-01-01T04:30:00.500000"],
  ["2024-01-01T10", undefined],
  ["20240101", undefined],
  [null, undefined],
])("the instant of %j is %j", (text, instant) => {
  expect(instantOf(text)).toBe(instant);
});

async function linesOf(history: Parameters<typeof exportLines>[0]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of exportLines(history)) lines.push(line);
  return lines;
}

test("a history that was exported and imported is the same, on either engine", async () => {
  await using from = await SqliteMemoryHistory.open(join(tempDir(), "a.db"));
  await from.addBatch(
    Array.from({ length: 2500 }, (_, i) => ({
      ...{ memory_id: `m${i % 7}`, event: i % 3 ? "UPDATE" : "ADD", new_memory: `value ${i}\0 🧵` },
      ...{ actor_id: i % 2 ? "ada" : null, created_at: i % 5 ? undefined : null, updated_at: "2026-05-07T10:00:00.5Z" },
    })),
  );
  await from.add({ memory_id: "m", event: "DELETE", old_memory: "x", is_deleted: false });
  for (const scope of ["a", "b&c=d", "🧵"]) {
    const messages = Array.from({ length: 12 }, (_, i) => ({ role: "user", content: `${scope} ${i}`, name: "n" }));
    await from.saveMessages(scope, messages, { keep: 12 });
  }
  const lines = await linesOf(from);
  expect(lines).toHaveLength(2501 + 36);
  await using memory = new InMemoryHistory();
  await importContent(memory, parseLines(lines));
  expect(await linesOf(memory)).toEqual(lines);
  await using back = await SqliteMemoryHistory.open(":memory:");
  await importContent(back, parseLines(["", ...(await linesOf(memory))]));
  expect(await linesOf(back)).toEqual(lines);
  await expect(importContent(back, parseLines(lines))).rejects.toMatchObject({ code: "duplicate_record" });
});

test.each([
  ["not JSON", "line 2"],
  ["[]", "line 2"],
  ["null", "line 2"],
  ['{"scope":1,"message":{}}', "line 2"],
])("a line %j that is none is refused with its number", (line, path) => {
  expect(() => parseLines(["", line])).toThrow(expect.objectContaining({ code: "invalid_record", path }));
});
