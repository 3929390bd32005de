/** The tour: it passes as it is, and fails where anything comes out otherwise. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { tempDir } from "./support/temp.ts";

interface Tour {
  code: number;
  stdout: string;
  stderr: string;
}

function tour(directory: string, env: NodeJS.ProcessEnv = {}): Promise<Tour> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["scripts/demo.mjs", directory],
      { env: { ...process.env, ...env } },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, stdout: out, stderr: err }),
    );
  });
}

test.concurrent("the tour passes, in processes of its own, and keeps its files where it is told to", async ({
  onTestFinished,
}) => {
  const directory = tempDir(onTestFinished);
  const { code, stdout, stderr } = await tour(directory);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("All as it should be");
  const pids = [...stdout.matchAll(/process (\d+), /g)].map(([, pid]) => pid);
  expect(new Set(pids).size).toBe(pids.length);
  expect(pids.length).toBeGreaterThan(10);
  expect(readdirSync(directory).sort()).toEqual(["agent.db", "effects.log", "session"]);
});

test.concurrent("the tour reads the rows with Node where there is no sqlite3 program", async ({ onTestFinished }) => {
  const { code, stdout } = await tour(tempDir(onTestFinished), { PATH: "" });
  expect(stdout).toContain("node:sqlite (there is no sqlite3 program here)");
  expect(code).toBe(0);
});

// A store that does not keep what it is given: triggers in the file, made before the tour begins.
const SABOTAGE: [string, string, RegExp][] = [
  [
    "changes what was said",
    "CREATE TRIGGER t AFTER INSERT ON messages BEGIN UPDATE messages SET message_json = replace(message_json, 'teal', 'tan') WHERE id = new.id; END",
    /expected: .*You said teal.*came: .*You said tan/s,
  ],
  [
    "loses the first message",
    "CREATE TRIGGER t AFTER INSERT ON runs WHEN new.run_id = 'second' BEGIN DELETE FROM messages WHERE id = 1; END",
    /expected: .*You said teal.*came: /s,
  ],
  [
    "loses the call that was under way",
    "CREATE TRIGGER t AFTER INSERT ON runs WHEN new.run_id = 'fourth' BEGIN DELETE FROM messages WHERE run_id = 'third'; END",
    /thread|conflict/i,
  ],
  [
    "loses the question",
    "CREATE TRIGGER t AFTER INSERT ON thread_pending_request BEGIN DELETE FROM thread_pending_request; END",
    /answer\.mjs ends well\n {2}expected: exit code 0/,
  ],
  [
    "lets an unfinished run into a fork",
    "CREATE TRIGGER t AFTER INSERT ON messages WHEN new.thread_id = 'user-42-fork' AND new.run_id = 'first' BEGIN INSERT INTO messages (thread_id, message_json, run_id) VALUES ('user-42-fork', new.message_json, 'stray'); END",
    /expected: .*begins with 4 messages.*came: .*begins with [56] messages/s,
  ],
  [
    "keeps rows under another run",
    "CREATE TRIGGER t AFTER INSERT ON runs WHEN new.run_id = 'last' BEGIN UPDATE messages SET run_id = 'first' WHERE run_id = 'edited'; END",
    /the rows say what was said/,
  ],
];

test.concurrent.for(SABOTAGE)("the tour fails on a store that %s", async ([, trigger, said], { onTestFinished }) => {
  const directory = tempDir(onTestFinished);
  const file = join(directory, "agent.db");
  await (await SqliteCheckpointer.open(file)).close();
  const db = new DatabaseSync(file);
  db.exec(trigger);
  db.close();
  const { code, stdout, stderr } = await tour(directory);
  expect(code).toBe(1);
  expect(stderr).toMatch(said);
  expect(stdout).not.toContain("All as it should be");
});

test("the tour fails when a row is written where nothing may be, and shows which", async () => {
  const { check, Deviation } = await import("../scripts/demo/check.mjs" as string);
  expect(() => check("nothing was written", { messages: [{ id: 1 }] }, { messages: [] })).toThrow(Deviation);
  expect(() => check("nothing was written", { messages: [{ id: 1 }] }, { messages: [] })).toThrow(
    "Not as it should be: nothing was written\n  expected: { messages: [] }\n  came:     { messages: [ { id: 1 } ] }",
  );
});

test("the tour refuses a directory that holds a conversation already", async () => {
  const directory = tempDir();
  await using checkpointer = await SqliteCheckpointer.open(join(directory, "agent.db"));
  await checkpointer.append("user-42", [{ role: "user", content: [] }]);
  const { code, stderr } = await tour(directory);
  expect(code).toBe(1);
  expect(stderr).toContain("the file there holds no conversation yet");
});
