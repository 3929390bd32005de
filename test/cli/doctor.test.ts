/** doctor: damage and loose ends, on files of every kind of brokenness. */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { everthread } from "./support.ts";

async function damaged(sql: string, fill: (store: SqliteCheckpointer) => Promise<unknown>) {
  const db = join(tempDir(onTestFinished), "a.db");
  const store = await SqliteCheckpointer.open(db);
  await fill(store);
  await store.close();
  const writing = new DatabaseSync(db);
  writing.exec(sql);
  writing.close();
  return db;
}

/** The report, after checking that the file is what it was. */
async function examine(db: string) {
  const hash = () => createHash("sha256").update(readFileSync(db)).digest("hex");
  const before = hash();
  const people = await everthread(["doctor"], { db });
  const { code, records } = await everthread(["doctor", "--json"], { db });
  expect(people.code).toBe(code);
  expect(hash()).toBe(before);
  const [report] = records() as [
    { sound: boolean; damage: number; warnings: number; problems: Record<string, string>[] },
  ];
  return { code, report, lines: people.stdout.trimEnd().split("\n"), stderr: people.stderr };
}

const call = (id: string) => assistantMessage([toolCall(id, "look")], { run_id: "r" });
const result = (id: string) => toolResultMessage({ id, name: "look" }, "seen");

test("a sound store is said to be sound", async () => {
  const db = await damaged("", (store) => store.append("t", [userMessage("hi"), assistantMessage("hello")]));
  expect(await examine(db)).toMatchObject({
    code: 0,
    lines: ["Sound: 1 thread, 2 messages."],
    report: { sound: true, problems: [] },
  });
});

test("X10 M14 damaged rows are named by thread and row, one line each, and hide nothing of the other threads", async () => {
  const db = await damaged(
    `UPDATE messages SET message_json = '{"role":' WHERE thread_id = 'a';
     UPDATE messages SET message_json = '{"role":"robot","content":[]}' WHERE thread_id = 'b' AND id = 3;
     UPDATE thread_extra SET extra_json = '[1]' WHERE thread_id = 'c';
     UPDATE thread_pending_request SET request_json = 'x' WHERE thread_id = 'd'`,
    async (store) => {
      await store.append("a", [userMessage("1")]);
      await store.append("b", [userMessage("2"), userMessage("3")]);
      await store.saveExtra("c", { a: 1 });
      const payload = { kind: "confirm" as const, prompt: "?" };
      await store.savePendingRequest("d", { question_id: "q", thread_id: "d", payload, created_at: 1 });
      await store.append("e", [result("none")]);
    },
  );
  const { code, report, lines } = await examine(db);
  expect(code).toBe(1);
  expect(report).toMatchObject({ sound: false, damage: 4, warnings: 1 });
  expect(report.problems.map(({ severity, thread_id, row_ref }) => [severity, thread_id, row_ref])).toEqual([
    ["damage", "a", "messages.id=1"],
    ["damage", "b", "messages.id=3"],
    ["damage", "c", 'thread_extra.thread_id="c"'],
    ["damage", "d", 'thread_pending_request.thread_id="d"'],
    ["warning", "e", "messages.id=4"],
  ]);
  expect(lines).toHaveLength(6);
  expect(lines[1]).toMatch(/^damage b: messages\.id=3: message\.role.*"robot"/);
  expect(lines[5]).toBe("Damaged: 5 threads, 4 messages, 4 damaged, 1 warning.");
});

test("M1 M2 loose ends are warnings: dangling calls, orphans, doubles, stale claims, stray questions; exit 0", async () => {
  const db = await damaged("UPDATE runs SET claimed_at = claimed_at - 2 WHERE run_id = 'r'", async (store) => {
    await store.claimRun("cut", "r");
    await store.append("cut", [call("c1"), userMessage("hello?")]);
    await store.append("odd", [
      result("x"),
      call("c2"),
      result("c2"),
      result("c2"),
      call("c3"),
      userMessage("-"),
      result("c3"),
    ]);
    const payload = { kind: "approve" as const, tool_name: "look", tool_call_id: "gone", args: {} };
    await store.savePendingRequest("stray", { question_id: "q", thread_id: "stray", payload, created_at: 1 });
  });
  const { code, report, lines } = await examine(db);
  expect(code).toBe(0);
  expect(report.problems.map(({ kind, thread_id, row_ref }) => [kind, thread_id, row_ref])).toEqual([
    ["dangling_call", "cut", "messages.id=1"],
    ["stale_claim", "cut", undefined],
    ["orphan_result", "odd", "messages.id=3"],
    ["duplicate_result", "odd", "messages.id=6"],
    ["misplaced_result", "odd", "messages.id=9"],
    ["stray_question", "stray", undefined],
  ]);
  expect(lines).toContain('warning cut: Run "r" was claimed 2 days ago and has not completed.');
  expect(lines.at(-1)).toBe("Sound, with loose ends: 3 threads, 9 messages, 0 damaged, 6 warnings.");
});

test("M17 what is as it should be is no warning: a thread that waits, a run that was stopped or failed", async () => {
  const db = await damaged("", async (store) => {
    await store.claimRun("waits", "r");
    await store.append("waits", [call("q")]);
    const payload = { kind: "approve" as const, tool_name: "look", tool_call_id: "q", args: {} };
    await store.savePendingRequest(
      "waits",
      { question_id: "q", thread_id: "waits", payload, created_at: 1 },
      { runId: "r" },
    );
    for (const stop_reason of ["aborted", "error"]) {
      await store.claimRun(stop_reason, "r");
      await store.append(stop_reason, [userMessage("x"), assistantMessage("par", { run_id: "r", stop_reason })]);
    }
  });
  expect(await examine(db)).toMatchObject({ code: 0, report: { sound: true, problems: [] } });
});

test("pages that are overwritten are found, and what can be read is", async () => {
  const db = await damaged("", async (store) => {
    for (let i = 0; i < 40; i++) await store.append(`t${i}`, [userMessage(`${i} ${"x".repeat(3000)}`)]);
  });
  const bytes = readFileSync(db);
  // The cells of a page in the middle, not its header.
  bytes.fill(0xff, 4096 * 20 + 200, 4096 * 21);
  writeFileSync(db, bytes);
  const { code, report, lines } = await examine(db);
  expect(code).toBe(1);
  expect(report.sound).toBe(false);
  expect(lines.filter((line) => line.startsWith("damage ")).length).toBeGreaterThan(0);
  expect(lines.at(-1)).toMatch(/^Damaged: /);
  expect(lines.join("\n")).not.toMatch(/ at .*\.js:/);
});

test("a file that can't be opened is said plainly: cut short, zeroes, empty, another program's, a directory, missing", async () => {
  const db = await damaged("", (store) => store.append("t", [userMessage("x".repeat(20_000))]));
  const dir = join(db, "..");
  const path = (name: string) => join(dir, name);
  copyFileSync(db, path("cut.db"));
  truncateSync(path("cut.db"), 9000);
  writeFileSync(path("zeroes.db"), Buffer.alloc(8192));
  writeFileSync(path("empty.db"), "");
  writeFileSync(path("text.db"), "hello, I am no database at all, and never was one");
  const foreign = new DatabaseSync(path("foreign.db"));
  foreign.exec("CREATE TABLE messages (id INTEGER)");
  foreign.close();
  const newer = new DatabaseSync(db);
  newer.exec("UPDATE everthread_schema SET version = 99");
  newer.close();
  for (const [name, problem] of [
    ["cut.db", /was cut short: it has 9000 bytes/],
    ["zeroes.db", /is not a SQLite file/],
    ["empty.db", /is empty/],
    ["text.db", /is not a SQLite file/],
    ["foreign.db", /belongs to another program/],
    ["a.db", /schema version 99/],
    ["", /is a directory/],
    ["missing.db", /There is no file/],
  ] as const) {
    const { code, stdout, stderr } = await everthread(["doctor"], { db: path(name) });
    expect([name, code, stdout]).toEqual([name, 1, ""]);
    expect(stderr).toMatch(problem);
    expect(stderr).toMatch(/^error: .*\n$/);
  }
  expect(existsSync(path("missing.db"))).toBe(false);
});
