/** The commands that look at threads: threads, show, pending; what a terminal is spared, and what files are. */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import {
  assistantMessage,
  image,
  text,
  thinking,
  toolCall,
  toolResultMessage,
  userMessage,
} from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { BIN, everthread, plainEnv } from "./support.ts";

async function store(name = "a.db", options: { journalMode?: "wal" } = {}) {
  const path = join(tempDir(onTestFinished), name);
  const checkpointer = await SqliteCheckpointer.open(path, options);
  onTestFinished(() => checkpointer.close());
  return { path, checkpointer };
}

const approval = (question: string, args = {}) => ({
  question_id: question,
  thread_id: "t",
  payload: { kind: "approve" as const, tool_name: "delete", tool_call_id: question, args },
  created_at: Date.now() / 1000,
});

describe("threads", () => {
  test("the most recently changed come first, --limit and --all count, and what waits is marked", async () => {
    const { path: db, checkpointer } = await store();
    for (const id of ["c", "a", "b"]) await checkpointer.append(id, [userMessage(`I am ${id}`)]);
    const rewritten = new DatabaseSync(db);
    rewritten.exec("UPDATE messages SET created_at = created_at - 4 + id");
    rewritten.close();
    await checkpointer.savePendingRequest("a", approval("q"));
    const { stdout, stderr } = await everthread(["threads"], { db });
    expect(stdout.split("\n").map((line) => line.slice(0, 1))).toEqual(["b", "a", "c", ""]);
    expect(stdout).toMatch(/^a {2}1 message {2}\S.*waits on an answer$/m);
    expect(stderr).toBe("");
    const limited = await everthread(["threads", "--limit", "1"], { db });
    expect(limited.stdout).toMatch(/^b .*\n$/);
    expect(limited.stderr).toContain("2 more threads: --all shows them.");
    const [none] = (await everthread(["threads", "--limit", "0", "--json"], { db })).records();
    expect(none).toEqual({ threads: [], total: 3 });
    const [prefixed] = (await everthread(["threads", "--prefix", "a", "--json"], { db })).records();
    expect(prefixed).toMatchObject({ total: 1, threads: [{ thread_id: "a", message_count: 1, pending: true }] });
  });

  test("ids are shortened to a narrow terminal, and what is shown is taken back", async () => {
    const { path: db, checkpointer } = await store();
    const wide = `会話-${"話".repeat(30)}`;
    for (const id of ["user-1-a-rather-long-id-of-a-thread", "user-2", wide])
      await checkpointer.append(id, [userMessage(id)]);
    const { stdout } = await everthread(["threads"], { db, env: { COLUMNS: "20" } });
    const { default: widthOf } = await import("string-width");
    for (const line of stdout.split("\n")) expect(widthOf(line)).toBeLessThanOrEqual(20);
    const shortened = stdout.split("\n").filter((line) => line.endsWith("…") && !line.startsWith(" "));
    expect(shortened).toHaveLength(2);
    for (const shown of shortened) {
      for (const given of [shown, shown.slice(0, -1)]) {
        const [thread] = (await everthread(["show", given, "--json"], { db })).records();
        expect(String(thread?.thread_id).startsWith(shown.slice(0, -1))).toBe(true);
      }
    }
  });

  test("a beginning that several threads have names the candidates, and an exact id wins", async () => {
    const { path: db, checkpointer } = await store();
    for (const id of ["user", "user-1", "user-2", "user-3…"]) await checkpointer.append(id, [userMessage(id)]);
    const ambiguous = await everthread(["show", "user-"], { db });
    expect(ambiguous.code).toBe(1);
    expect(ambiguous.stderr).toMatch(/^error: .*"user-1", "user-2", "user-3…".*\n$/);
    expect(JSON.parse((await everthread(["show", "user-…", "--json"], { db })).stderr).error.code).toBe(
      "ambiguous_thread",
    );
    expect((await everthread(["show", "user"], { db })).stdout).toMatch(/^user \(1 message\)/);
    expect((await everthread(["show", "user-3…"], { db })).stdout).toMatch(/^user-3… /);
    for (const unknown of ["nobody", "…", "x…"]) {
      expect((await everthread(["show", unknown], { db })).stderr).toContain("There is no thread");
    }
  });

  test("X10 one thread with a broken last row is listed with the others", async () => {
    const { path: db, checkpointer } = await store();
    for (let i = 10; i < 40; i++) await checkpointer.append(`t${i}`, [userMessage("hi")]);
    const damaging = new DatabaseSync(db);
    damaging.exec("UPDATE messages SET message_json = '{\"role\":' WHERE thread_id = 't20'");
    damaging.close();
    const { code, stdout } = await everthread(["threads"], { db });
    expect([code, stdout.match(/^t\d\d /gm)?.length]).toEqual([0, 30]);
    const shown = await everthread(["show", "t20"], { db });
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/damaged messages\.id=11\n {2}.*not/);
  });
});

describe("show", () => {
  test("a conversation is readable: roles, thinking, calls, results, images, unknown blocks, failures", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.append("t", [
      userMessage([text("Look:\nuser #99"), image("QUJD", "image/png"), { type: "video_v9", foo: 1 } as never]),
      assistantMessage([thinking("Let me see."), text("I look."), toolCall("c1", "look", { at: "it" })], {
        model_id: "m-1",
      }),
      toolResultMessage({ id: "c1", name: "look" }, "no light", { is_error: true }),
      assistantMessage([], { stop_reason: "error", error_message: "overloaded" }),
    ]);
    const { stdout, stderr, code } = await everthread(["show", "t"], { db });
    expect(stdout.replaceAll(/ · \d{4}-\S+ \d\d:\d\dZ/g, "")).toBe(
      [
        "t (4 messages)\n",
        "user #1\n  Look:\n  user #99\n  [image: image/png, 4 characters]\n  [video_v9]\n",
        'assistant #2 · m-1\n  Let me see.\n  I look.\n  calls look {"at":"it"}\n',
        "look failed #3 · c1\n  no light\n",
        "assistant #4\n  error: overloaded\n",
        "The last answer was cut short.\n",
      ].join("\n"),
    );
    expect([code, stderr]).toEqual([0, ""]);
  });

  test("--last, --runs and the state; JSON Lines under --json", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.claimRun("t", "r1");
    const own = { run_id: "r1" };
    await checkpointer.append(
      "t",
      [1, 2, 3].map((n) => userMessage(`message ${n}`, own)),
    );
    await checkpointer.append("t", [assistantMessage([toolCall("q", "delete", { all: true })], own)]);
    await checkpointer.savePendingRequest("t", approval("q", { all: true }), { runId: "r1" });
    const { stdout } = await everthread(["show", "t", "--last", "2", "--runs"], { db });
    expect(stdout).not.toContain("message 2");
    expect(stdout).toContain("message 3");
    expect(stdout).toMatch(/1 run\n {2}r1: claimed just now, not completed\n/);
    expect(stdout).toMatch(/waits q\n {2}May delete run\? \{"all":true\}\n/);
    expect(stdout).toContain("The thread waits on an answer");
    const lines = (await everthread(["show", "t", "--json", "--last", "1", "--runs"], { db })).records();
    expect(lines.map(({ type }) => type)).toEqual(["thread", "message", "run", "pending", "state"]);
    expect(lines.at(-1)).toEqual({ type: "state", state: "awaiting_answer" });
    expect((await everthread(["show", "t", "--last", "0"], { db })).stdout).not.toContain("message 3");
  });

  test("X2 control characters and overrides of direction in stored text do nothing to a terminal", async () => {
    const { path: db, checkpointer } = await store();
    const evil = "\u001b]0;title\u0007\u001b[2J\u009b31m\u202eabc\u2066\r\u0000\u007f end";
    const id = `t\u0001\u001b[31m\n${"\u202e"}`;
    await checkpointer.append(id, [
      userMessage(evil),
      assistantMessage([thinking(evil), toolCall(evil, evil, { [evil]: evil }), image(evil, evil)], { model_id: evil }),
      toolResultMessage({ id: evil, name: evil }, evil),
      assistantMessage([], { stop_reason: "error", error_message: evil }),
    ]);
    await checkpointer.savePendingRequest(id, {
      ...approval(evil.replace("\0", "")),
      payload: { kind: "confirm", prompt: evil },
    });
    for (const args of [
      ["threads"],
      ["show", "t", "--runs"],
      ["pending"],
      ["doctor"],
      ["fork", "t", "x"],
      ["respond", "t"],
    ]) {
      const { stdout, stderr } = await everthread(args, { db });
      const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
      expect(stdout + stderr, args[0]).not.toMatch(unsafe);
    }
    const { stdout } = await everthread(["show", "t"], { db });
    expect(stdout).toContain("␛]0;title␇␛[2J<U+009B>31m<U+202E>abc<U+2066>␍␀␡ end");
    // As it is shown it is taken back, and programs get it exactly.
    const shown = stdout.split(" (")[0] ?? "";
    expect(shown).toBe("t␁␛[31m␊<U+202E>");
    const [thread, message] = (await everthread(["show", shown, "--json"], { db })).records();
    expect(thread?.thread_id).toBe(id);
    expect(message?.message).toMatchObject({ content: [{ text: evil }] });
  });

  test("E2 what other programs stored as half an emoji is output that strict parsers take", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.append("t", [userMessage("x")]);
    const writing = new DatabaseSync(db);
    const json = String.raw`{"role":"user","content":[{"type":"text","text":"cut \ud83d and \\ud83d and \udd11\ud83d"}],"metadata":{"k\ud83d":1}}`;
    writing.prepare("UPDATE messages SET message_json = ?").run(json);
    writing.close();
    const { stdout } = await everthread(["show", "t", "--json"], { db });
    expect(stdout).not.toMatch(/(?<!\\)\\ud[89a-f]/);
    const message = JSON.parse(stdout.split("\n")[1] ?? "").message;
    expect(message.content[0].text).toBe("cut \ufffd and \\ud83d and \ufffd\ufffd");
    expect(message.metadata).toEqual({ "k\ufffd": 1 });
  });

  test("colours follow the terminal, NO_COLOR and FORCE_COLOR", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.append("t", [userMessage("hi")]);
    expect((await everthread(["show", "t"], { db })).stdout).not.toContain("\u001b");
    expect((await everthread(["show", "t"], { db, env: { FORCE_COLOR: "1" } })).stdout).toContain("\u001b[1m");
    expect((await everthread(["show", "t", "--json"], { db, env: { FORCE_COLOR: "1" } })).stdout).not.toContain(
      "\u001b",
    );
  });

  test("EPIPE: a reader that has enough ends it quietly", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.append(
      "t",
      Array.from({ length: 2000 }, (_, i) => userMessage(`${i} ${"x".repeat(500)}`)),
    );
    for (const args of ["show t", "show t --json", "export t"]) {
      const script = `"${process.execPath}" "${BIN}" ${args} | head -n 1; exit \${PIPESTATUS[0]}`;
      const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script], { env: plainEnv({ db }) });
      expect([stdout.split("\n").length, stderr]).toEqual([2, ""]);
    }
  });

  test.skipIf(!existsSync("/dev/full"))("a full disk is no quiet end (skipped without /dev/full)", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.append("t", [userMessage("hi")]);
    const child = spawn("bash", ["-c", `"${process.execPath}" "${BIN}" show t > /dev/full`], { env: plainEnv({ db }) });
    let stderr = "";
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    const [code] = await once(child, "close");
    expect(stderr).toMatch(/^error: The output can't be written: .*\n$/);
    expect(code).toBe(1);
  });
});

describe("pending", () => {
  test("lists what waits in every thread, with the command that answers; a damaged one hides no other", async () => {
    const { path: db, checkpointer } = await store();
    await checkpointer.savePendingRequest("it's", approval("q1", { a: 1 }));
    await checkpointer.savePendingRequest("-x", { ...approval("q2"), payload: { kind: "confirm", prompt: "Sure?" } });
    const questions = [{ key: "k", prompt: "Which?", options: [{ label: "One", value: "1" }], multi_select: true }];
    await checkpointer.savePendingRequest("z", { ...approval("q 3"), payload: { kind: "ask", questions } });
    await checkpointer.savePendingRequest("broken", approval("q4"));
    const damaging = new DatabaseSync(db);
    damaging.exec("UPDATE thread_pending_request SET request_json = '{}' WHERE thread_id = 'broken'");
    damaging.close();
    const { code, stdout, stderr } = await everthread(["pending"], { db });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^The stored row .*broken.*\n$/);
    expect(stdout).toContain("everthread respond 'it'\\''s' --question q1 --approve\n");
    expect(stdout).toContain("everthread respond --question q2 --yes -- -x\n");
    expect(stdout).toContain(`everthread respond z --question 'q 3' --answer '{"k":["1"]}'\n`);
    const [found] = (await everthread(["pending", "--json"], { db })).records() as [{ pending: object[] }];
    expect(found.pending).toHaveLength(4);
    expect((await everthread(["pending", "z", "--db", db, "--json"])).records()).toMatchObject([
      { pending: [{ thread_id: "z", run_id: null, request: { question_id: "q 3" } }] },
    ]);
    await checkpointer.append("quiet", [userMessage("hi")]);
    expect(await everthread(["pending", "quiet"], { db })).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "Nothing waits on an answer.\n",
    });
  });
});

describe("reading changes nothing", () => {
  const contents = (dir: string) =>
    readdirSync(dir)
      .sort()
      .map(
        (name) =>
          `${name} ${createHash("sha256")
            .update(readFileSync(join(dir, name)))
            .digest("hex")}`,
      );

  test.each(["delete", "wal"] as const)(
    "X11 an older file in journal mode %s is left as it is, and no store is made",
    async (mode) => {
      const dir = tempDir(onTestFinished);
      const db = join(dir, "old.db");
      const old = new DatabaseSync(db);
      old.exec(`PRAGMA journal_mode = ${mode};
      CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, message_json TEXT NOT NULL, created_at REAL NOT NULL DEFAULT (julianday('now')));
      CREATE TABLE thread_extra (thread_id TEXT PRIMARY KEY, extra_json TEXT NOT NULL DEFAULT '{}');
      INSERT INTO messages (thread_id, message_json) VALUES ('t', '{"role":"user","content":[{"type":"text","text":"old"}]}')`);
      old.close();
      const before = contents(dir);
      for (const args of [["threads"], ["show", "t"], ["pending"], ["export", "--all"], ["doctor"]]) {
        const { code, stdout, stderr } = await everthread(args, { db, cwd: dir });
        expect([code, args.includes("pending") || stdout !== ""], stderr).toEqual([0, true]);
        expect(contents(dir), args[0]).toEqual(before);
      }
    },
  );
});
