/** events.jsonl: what is written, what a killed process or a full disk leaves, and that the agent never notices. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EventsFile } from "../../src/session/events-file.ts";
import { killAfter, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { NO_MOUNT, smallFileSystem } from "./support.ts";

const linesOf = (path: string) => readFileSync(path, "utf8").split("\n").slice(0, -1);
const recordsOf = (path: string) => linesOf(path).map((line) => JSON.parse(line) as Record<string, unknown>);

/** Writes events to a file of its own and collects the failures it tells of. */
function recorder(path = join(tempDir(), "events.jsonl")): { path: string; file: EventsFile; failures: Error[] } {
  const failures: Error[] = [];
  return { path, file: new EventsFile(path, { onFailure: (error) => failures.push(error) }), failures };
}

describe("events.jsonl", () => {
  test("each event is one line in order, whole as soon as it was written, with its time", () => {
    const { path, file } = recorder();
    expect(existsSync(path)).toBe(false);
    for (let i = 0; i < 100; i++) {
      file.write({ runId: "r", type: "text_delta", delta: `line\n${i}\u2028\0` });
      expect(linesOf(path)).toHaveLength(i + 1);
    }
    const records = recordsOf(path);
    expect(records.map((record) => record.delta)).toEqual(Array.from({ length: 100 }, (_, i) => `line\n${i}\u2028\0`));
    for (const { time } of records) expect(Math.abs(Date.now() - Date.parse(String(time)))).toBeLessThan(60_000);
    file.write({ type: "kept", time: "its own" });
    expect(recordsOf(path).at(-1)).toEqual({ type: "kept", time: "its own" });
    file.close();
  });

  test("X6 the file has mode 0600, and what it holds is kept when it is opened again", () => {
    const { path, file } = recorder();
    file.write({ type: "a" });
    file.close();
    file.close();
    file.write({ type: "after close" });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const again = new EventsFile(path);
    again.write({ type: "b" });
    again.close();
    expect(recordsOf(path).map(({ type }) => type)).toEqual(["a", "b"]);
  });

  test("D1 D3 a last line cut at any byte stays by itself: the next event starts on a fresh line", () => {
    const { path, file } = recorder();
    file.write({ type: "first" });
    const keep = statSync(path).size;
    file.write({ type: "second", text: "käse 🧀" });
    file.close();
    const whole = readFileSync(path);
    for (let length = keep; length <= whole.length; length++) {
      writeFileSync(path, whole);
      truncateSync(path, length);
      const next = new EventsFile(path);
      next.write({ type: "third" });
      next.write({ type: "fourth" });
      next.close();
      expect(readFileSync(path).subarray(0, length)).toEqual(whole.subarray(0, length));
      const lines = linesOf(path);
      const read = lines.flatMap((line) => {
        try {
          return [JSON.parse(line).type];
        } catch {
          return [];
        }
      });
      expect(read.slice(0, 1)).toEqual(["first"]);
      expect(read.slice(-2)).toEqual(["third", "fourth"]);
      expect(lines.length).toBe(length === keep ? 3 : 4);
      expect(lines).not.toContain("");
    }
  });

  test("D9 what a killed process wrote is there, each line whole", async () => {
    const path = join(tempDir(), "events.jsonl");
    for (let round = 0; round < 3; round++) {
      const before = existsSync(path) ? linesOf(path).length : 0;
      const said = await killAfter(startChild(new URL("events-child.ts", import.meta.url), [path]), 200);
      const records = recordsOf(path);
      expect(records.length).toBeGreaterThanOrEqual(before + said);
      expect(records.slice(before).map(({ i }) => i)).toEqual(
        Array.from({ length: records.length - before }, (_, i) => i),
      );
    }
  });

  test("errors keep their name, code and message; what is no JSON leaves a line with the reason", () => {
    const { path, file, failures } = recorder();
    const cycle: Record<string, unknown> = { runId: "r", type: "tool_update" };
    cycle.progress = cycle;
    file.write({ type: "model_retry", error: Object.assign(new TypeError("no"), { code: "model_error" }) });
    file.write(cycle);
    file.write({ type: "tool_update", runId: "r", progress: 1n });
    file.write({
      type: "t",
      get bad() {
        throw new Error("getter");
      },
    });
    file.write({ type: "half", text: "\ud83d", path: "\\ud83d" });
    expect(recordsOf(path)).toEqual([
      expect.objectContaining({ error: { name: "TypeError", code: "model_error", message: "no" } }),
      expect.objectContaining({ type: "tool_update", runId: "r", not_json: expect.stringContaining("circular") }),
      expect.objectContaining({ type: "tool_update", runId: "r", not_json: expect.stringContaining("BigInt") }),
      expect.objectContaining({ type: "t", not_json: "getter" }),
      expect.objectContaining({ type: "half", text: "\ufffd", path: "\\ud83d" }),
    ]);
    expect(failures).toEqual([]);
    file.close();
  });

  test("a failure never throws and is told once; when writing works again, how many were lost is recorded", () => {
    const dir = join(tempDir(), "later");
    const { path, file, failures } = recorder(join(dir, "events.jsonl"));
    for (let i = 0; i < 3; i++) file.write({ type: "lost" });
    expect(failures).toHaveLength(1);
    expect(failures[0]?.message).toContain(`Events are not recorded in ${path}: ENOENT`);
    mkdirSync(dir);
    file.write({ type: "back" });
    file.write({ type: "again" });
    expect(recordsOf(path)).toEqual([
      expect.objectContaining({ type: "events_lost", count: 3 }),
      expect.objectContaining({ type: "back" }),
      expect.objectContaining({ type: "again" }),
    ]);
    file.close();
    expect(failures).toHaveLength(1);
  });

  test("a directory, a link to nothing in a missing directory, and a device in its place are failures, not hangs", () => {
    const dir = tempDir();
    mkdirSync(join(dir, "d"));
    symlinkSync(join(dir, "none", "x"), join(dir, "link"));
    for (const path of [join(dir, "d"), join(dir, "link"), "/dev/null"]) {
      const { file, failures } = recorder(path);
      file.write({ type: "a" });
      expect([path, failures.length]).toEqual([path, 1]);
      file.close();
    }
  });

  test("a full disk cuts a line; after there is room the next event starts on a fresh one", (context) => {
    const dir = smallFileSystem("64k");
    if (!dir) return context.skip(NO_MOUNT);
    writeFileSync(join(dir, "ballast"), Buffer.alloc(40_000));
    const { path, file, failures } = recorder(join(dir, "events.jsonl"));
    file.write({ type: "first" });
    file.write({ type: "large", text: "x".repeat(60_000) });
    file.write({ type: "small" });
    expect(failures).toHaveLength(1);
    expect(failures[0]?.cause).toMatchObject({ code: "ENOSPC" });
    rmSync(join(dir, "ballast"));
    file.write({ type: "back" });
    file.close();
    const lines = linesOf(path);
    expect(lines).toHaveLength(4);
    expect(JSON.parse(lines[0] as string)).toMatchObject({ type: "first" });
    expect(lines[1]).toMatch(/^\{.*"type":"large"/);
    expect(JSON.parse(lines[2] as string)).toMatchObject({ type: "events_lost", count: 2 });
    expect(JSON.parse(lines[3] as string)).toMatchObject({ type: "back" });
  });
});
