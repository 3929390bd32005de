/** export, import, fork and backup: threads out of a store and into another. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { everthread, outcome, start } from "./support.ts";

async function directory() {
  const dir = tempDir(onTestFinished);
  const open = async (name: string) => {
    const checkpointer = await SqliteCheckpointer.open(join(dir, name));
    onTestFinished(() => checkpointer.close());
    return checkpointer;
  };
  return { dir, db: join(dir, "a.db"), copy: join(dir, "b.db"), file: join(dir, "threads.jsonl"), open };
}

const request = (question: string) => ({
  question_id: question,
  thread_id: "t",
  payload: { kind: "approve" as const, tool_name: "look", tool_call_id: question, args: { b: 1, a: 2 } },
  created_at: 1_700_000_000.5,
});

/** A thread of every part: runs that completed in another order than that of their ids, extra, a question. */
async function story(store: SqliteCheckpointer, id: string) {
  for (const run of ["z-first", "a-second"]) {
    await store.claimRun(id, run);
    await store.append(id, [
      userMessage(`${run} of ${id} \u{1f600}\u0000\n"`, { run_id: run }),
      assistantMessage("ok", { run_id: run }),
    ]);
    await store.markRunComplete(id, run);
  }
  await store.claimRun(id, "open");
  await store.append(id, [
    userMessage("go on", { run_id: "open", metadata: { "10": 1, "2": 2, __proto__x: null } }),
    assistantMessage([toolCall("q", "look", { b: 1, a: 2 })], { run_id: "open" }),
  ]);
  await store.saveExtra(id, { notes: [1, "two", null], "": false });
  await store.savePendingRequest(id, request("q"), { runId: "open" });
}

async function everything(store: SqliteCheckpointer, id: string) {
  const { items } = await store.listRuns(id);
  const loaded = await store.load(id);
  return {
    messages: JSON.stringify(loaded?.messages),
    extra: loaded?.extra,
    pending: await store.loadPending(id),
    runs: items.map(({ runId, completionSeq }) => [runId, completionSeq]),
  };
}

const lines = (file: string) => readFileSync(file, "utf8").trimEnd().split("\n");

describe("export and import", () => {
  test("G9 a thread comes back whole: messages in order, runs, extra, the question; again changes nothing; forks work", async () => {
    const { db, copy, file, open } = await directory();
    const source = await open("a.db");
    const ids = ["t", "../evil", "a/b", "CON", "agent:main:uuid", "a\u0001b", "x') OR 1=1 --", "…"];
    for (const id of ids) await story(source, id);
    const exported = await everthread(["export", "--all", "-o", file], { db });
    expect(exported).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringContaining("Exported 8 threads (48 messages)"),
    });
    const first = await everthread(["import", file], { db: copy });
    expect(first).toMatchObject({ code: 0, stdout: "8 threads imported (48 messages).\n", stderr: "" });
    const target = await open("b.db");
    for (const id of ids) expect(await everything(target, id)).toEqual(await everything(source, id));
    const again = await everthread(["import", file, "--json"], { db: copy });
    expect(again.code).toBe(0);
    expect(again.records()).toEqual([
      { imported: 0, continued: 0, unchanged: 8, messages: 0, conflicts: [], problems: [] },
    ]);
    expect((await everthread(["import", file], { db: copy })).stdout).toBe(
      "Nothing changed: 8 threads there already.\n",
    );
    await target.fork("t", "fork", { afterRunId: "z-first" });
    expect((await target.load("fork"))?.messages).toHaveLength(2);
    // Out of the copy comes the same file, but for the numbers and times of rows.
    const plain = (text: string) =>
      text.replaceAll(/"(position|created_at|claimed_at|completed_at)":("[^"]*"|\d+|null)/g, "");
    const back = await everthread(["export", "--all"], { db: copy });
    const withoutFork = back.stdout
      .split("\n")
      .slice(0, -1)
      .join("\n")
      .split('{"type":"thread"')
      .filter((part) => !part.includes('"thread_id":"fork"'));
    expect(plain(withoutFork.join('{"type":"thread"'))).toBe(plain(lines(file).join("\n")).replace(/\n$/, ""));
  });

  test("named threads only, to stdout, by shortened ids; what is not there is an error before anything is written", async () => {
    const { db, open } = await directory();
    const store = await open("a.db");
    for (const id of ["user-1", "user-2", "other"]) await store.append(id, [userMessage(id)]);
    const { stdout, stderr } = await everthread(["export", "oth…", "user-2"], { db });
    expect(stdout.match(/"thread_id":"[^"]*","parent/g)).toEqual([
      '"thread_id":"other","parent',
      '"thread_id":"user-2","parent',
    ]);
    expect(stderr).toBe("Exported 2 threads (2 messages).\n");
    expect(await everthread(["export", "other", "none"], { db })).toMatchObject({ code: 1, stdout: "" });
    expect((await everthread(["export", "other", "--all"], { db })).code).toBe(2);
  });

  test("X6 a new file is its owner's only; none is overwritten without --force, and a database never", async () => {
    const { dir, db, file, open } = await directory();
    await (await open("a.db")).append("t", [userMessage("hi")]);
    expect((await everthread(["export", "t", "-o", file, "--json"], { db })).records()).toEqual([
      { file, threads: 1, messages: 1, damaged: 0 },
    ]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    writeFileSync(file, "mine");
    const refused = await everthread(["export", "t", "-o", file], { db });
    expect([refused.code, readFileSync(file, "utf8")]).toEqual([1, "mine"]);
    expect(refused.stderr).toContain("it is there already; --force replaces it");
    symlinkSync(file, join(dir, "link"));
    expect((await everthread(["export", "t", "-o", join(dir, "link"), "--force"], { db })).code).toBe(0);
    expect(lines(file)).toHaveLength(3);
    const before = readFileSync(db);
    expect((await everthread(["export", "t", "-o", db, "--force"], { db })).stderr).toContain(
      "a database, which is never replaced",
    );
    expect((await everthread(["export", "t", "-o", dir, "--force"], { db })).stderr).toContain("not a regular file");
    expect(readFileSync(db).equals(before)).toBe(true);
    expect((await everthread(["export", "t", "-o", join(dir, "no", "x")], { db })).code).toBe(1);
    expect(readdirSync(dir).sort()).toEqual(["a.db", "link", "threads.jsonl"]);
  });

  test("a damaged row stays visible, and import refuses that thread only", async () => {
    const { db, copy, file, open } = await directory();
    const store = await open("a.db");
    await store.append("bad", [userMessage("1"), userMessage("2"), userMessage("3")]);
    await store.append("good", [userMessage("fine")]);
    const damaging = new DatabaseSync(db);
    damaging.exec("UPDATE messages SET message_json = 'nonsense' WHERE id = 2");
    damaging.close();
    const exported = await everthread(["export", "--all", "-o", file], { db });
    expect(exported.code).toBe(1);
    expect(exported.stderr).toContain("messages.id=2");
    expect(lines(file).map((line) => JSON.parse(line).type)).toEqual([
      "thread",
      "message",
      "damaged",
      "message",
      "end",
      "thread",
      "message",
      "end",
    ]);
    const imported = await everthread(["import", file], { db: copy });
    expect(imported.code).toBe(1);
    expect(imported.stderr).toMatch(
      /^Line 3 stands for a row that was damaged .* Nothing of thread "bad" was written\.\n$/,
    );
    expect(imported.stdout).toBe("1 thread imported (1 message), 1 problem.\n");
    expect(JSON.parse((await everthread(["export", "bad", "--json"], { db })).stderr).error.code).toBe("damaged_rows");
  });

  test("G9 a thread that is there with other content is a conflict: listed, left as it is, and the rest is imported", async () => {
    const { db, copy, file, open } = await directory();
    const source = await open("a.db");
    for (const id of ["a", "b", "c", "d", "e", "f"]) await story(source, id);
    expect((await everthread(["export", "--all", "-o", file], { db })).code).toBe(0);
    const target = await open("b.db");
    await target.append("a", [userMessage("mine")]);
    await target.saveExtra("b", { notes: "mine" });
    await target.claimRun("c", "mine");
    await target.savePendingRequest("d", request("mine"));
    await target.claimRun("e", "a-second");
    await target.markRunComplete("e", "a-second");
    const before = await Promise.all(["a", "b", "c", "d", "e"].map((id) => everything(target, id)));
    const { code, stdout, stderr } = await everthread(["import", file], { db: copy });
    expect([code, stdout]).toEqual([1, "1 thread imported (6 messages), 5 conflicts.\n"]);
    expect(
      stderr
        .trimEnd()
        .split("\n")
        .map((line) => line.replace(/.*already: /, "")),
    ).toEqual([
      "the store has another message 1.",
      "its extra is another.",
      'the store has another run, "mine".',
      "it waits on another question.",
      "its runs completed in another order.",
    ]);
    expect(await Promise.all(["a", "b", "c", "d", "e"].map((id) => everything(target, id)))).toEqual(before);
    // Two of one id in a file, the second with other content; and a source that was edited after its import.
    writeFileSync(
      file,
      `${lines(file).slice(-12).join("\n")}\n${lines(file).slice(-12).join("\n").replace("go on", "go off")}\n`,
    );
    const twice = (await everthread(["import", file, "--json"], { db: copy })).records();
    expect(twice).toMatchObject([{ unchanged: 1, conflicts: [{ line: 13, thread_id: "f" }] }]);
  });

  test("D1 a file cut anywhere imports the whole threads before the cut, and says so", async () => {
    const { dir, db, file, open } = await directory();
    const source = await open("a.db");
    for (const id of ["a", "b"]) await source.append(id, [userMessage(`hello ${id} \u{1f600}`), userMessage("more")]);
    expect((await everthread(["export", "--all", "-o", file], { db })).code).toBe(0);
    const bytes = readFileSync(file);
    const end = bytes.indexOf('{"type":"thread"', 1);
    const cuts = Array.from({ length: 12 }, (_, i) => end + 1 + Math.floor((i * (bytes.length - end - 3)) / 11));
    for (const [i, cut] of cuts.entries()) {
      const name = `cut${i}.db`;
      const result = await everthread(["import", "-"], { db: join(dir, name), input: bytes.subarray(0, cut) });
      expect([cut, result.code]).toEqual([cut, 1]);
      expect(result.stdout).toBe("1 thread imported (2 messages), 1 problem.\n");
      const { items } = await (await open(name)).listThreads();
      expect(items.map(({ threadId, messageCount }) => [threadId, messageCount])).toEqual([["a", 2]]);
    }
    // Only the last line's end is missing: nothing is.
    const whole = await everthread(["import", "-"], { db: join(dir, "whole.db"), input: bytes.subarray(0, -1) });
    expect(whole.stdout).toBe("2 threads imported (4 messages).\n");
  });

  test("D2 D3 lines that are wrong are named by number, nothing of their thread is written, and the others are", async () => {
    const { db, file, open } = await directory();
    const source = await open("a.db");
    for (const id of ["a", "b", "c"])
      await source.append(
        id,
        [1, 2, 3].map((n) => userMessage(`${id}${n}`)),
      );
    expect((await everthread(["export", "--all", "-o", file], { db })).code).toBe(0);
    const good = lines(file);
    const message = (line: number) => good[line - 1] ?? "";
    // Thread b is lines 6 to 10.
    const faults: [string, (all: string[]) => string[], RegExp][] = [
      ["not JSON", (all) => all.splice(7, 1, '{"type":"message",'), /^Line 8 is not JSON/],
      ["not an object", (all) => all.splice(7, 1, "[1]"), /^Line 8 is not a JSON object/],
      ["glued", (all) => all.splice(6, 2, message(7).slice(0, 40) + message(8)), /^Line 7 is not JSON/],
      [
        "glued to the next thread",
        (all) => all.splice(9, 2, message(10).slice(0, 9) + message(11)),
        /^Line 10 is not JSON/,
      ],
      [
        "an unknown type",
        (all) => all.splice(7, 0, '{"type":"attachment"}'),
        /^Line 8 is of an unknown type, "attachment"/,
      ],
      [
        "a message that is none",
        (all) => all.splice(7, 1, message(8).replace('"role":"user"', '"role":"robot"')),
        /^Line 8 message\.role: must be/,
      ],
      ["a run that is none", (all) => all.splice(7, 0, '{"type":"run","run_id":""}'), /^Line 8 The run id is empty/],
      [
        "a run of two places",
        (all) => all.splice(6, 0, '{"type":"run","run_id":"r"}', '{"type":"run","run_id":"r"}'),
        /^Line 8 repeats a run/,
      ],
      [
        "a question that is none",
        (all) => all.splice(9, 0, '{"type":"pending","request":{}}'),
        /^Line 10 request\.question_id: is missing/,
      ],
      [
        "a line that is missing",
        (all) => all.splice(7, 1),
        /^Line 9 says 3 messages and 0 runs, and there are 2 and 0/,
      ],
      ["a line that is doubled", (all) => all.splice(7, 0, message(8)), /^Line 9 has position 5, which is not after 5/],
      ["lines that were moved", (all) => all.splice(6, 2, message(8), message(7)), /^Line 8 has position 4/],
      ["no first line", (all) => all.splice(5, 1), /^Line 6 belongs to no thread/],
      [
        "no last line",
        (all) => all.splice(9, 1),
        /^Line 10 begins the next thread, and the one before has no last line/,
      ],
      [
        "an id that is none",
        (all) => all.splice(5, 1, message(6).replace('"b"', `"${"x".repeat(300)}"`)),
        /^Line 6 The thread id has 300 characters/,
      ],
      [
        "an id with U+0000",
        (all) => all.splice(5, 1, message(6).replace('"b"', '"a\\u0000b"')),
        /^Line 6 The thread id holds U\+0000/,
      ],
      [
        "a newer format",
        (all) => all.splice(5, 1, message(6).replace('"format":1', '"format":3')),
        /^Line 6 is of format 3/,
      ],
      [
        "another's last line",
        (all) => all.splice(9, 1, message(10).replace('"b"', '"x"')),
        /^Line 10 ends another thread, "x"/,
      ],
      [
        "nesting that is too deep",
        (all) =>
          all.splice(
            7,
            1,
            message(8).replace('"metadata":{}', `"metadata":{"a":${"[".repeat(600)}${"]".repeat(600)}}`),
          ),
        /^Line 8 message\.metadata\.a.* nested deeper/,
      ],
    ];
    for (const [what, spoil, problem] of faults) {
      const spoilt = [...good];
      spoil(spoilt);
      const { code, stdout, stderr } = await everthread(["import", "-", "--db", "memory:"], {
        input: spoilt.join("\n"),
      });
      expect(stderr, what).toMatch(problem);
      const bothOthers = what !== "glued to the next thread";
      expect([what, code, stdout]).toEqual([
        what,
        1,
        expect.stringContaining(
          bothOthers ? "2 threads imported (6 messages), 1 problem" : "1 thread imported (3 messages)",
        ),
      ]);
    }
    const latin = Buffer.concat([
      Buffer.from(`${message(1)}\n{"type":"message","message":"`),
      Buffer.from([0xe9]),
      Buffer.from('"}\n'),
    ]);
    expect((await everthread(["import", "-", "--db", "memory:"], { input: latin })).stderr).toMatch(
      /^Line 2 is not UTF-8 text/,
    );
  });

  test("a byte order mark, CRLF, blank lines, and lines in one thread in any order are taken", async () => {
    const { file } = await directory();
    const thread = [
      '{"type":"thread","thread_id":"t"}',
      "",
      '{"type":"message","message":{"role":"user","content":"plain"}}',
      "   \t ",
      '{"type":"run","run_id":"r","completion_seq":1}',
      '{"type":"end","thread_id":"t","messages":1,"runs":1}',
    ];
    writeFileSync(file, `\ufeff${thread.join("\r\n")}\r\n\r\n`);
    expect(await everthread(["import", file, "--db", "memory:"])).toMatchObject({
      code: 0,
      stdout: "1 thread imported (1 message).\n",
    });
    writeFileSync(file, "\n\n");
    expect((await everthread(["import", file, "--db", "memory:"])).stdout).toBe("There was nothing to import.\n");
    expect((await everthread(["import", join(file, "..")], { db: "memory:" })).stderr).toContain("is a directory");
    expect((await everthread(["import", `${file}x`], { db: "memory:" })).stderr).toContain("ENOENT");
  });

  test("E6 a number of more than 2^53 becomes the nearest that JavaScript has, as docs/cli.md says", async () => {
    const { db, open } = await directory();
    const thread = [
      '{"type":"thread","thread_id":"t"}',
      '{"type":"message","message":{"role":"user","content":"x","metadata":{"id":9007199254740993}}}',
      '{"type":"end","thread_id":"t","messages":1,"runs":0}',
    ].join("\n");
    expect((await everthread(["import", "-"], { db, input: thread })).code).toBe(0);
    expect((await (await open("a.db")).load("t"))?.messages[0]?.metadata).toEqual({ id: 9007199254740992 });
    const huge = thread.replace("9007199254740993", "1e400");
    expect((await everthread(["import", "-"], { db, input: huge })).stderr).toContain("message.metadata.id");
    expect(readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8")).toContain("2^53");
  });

  test("E2 half an emoji in a file is mended like everywhere, and importing it again changes nothing", async () => {
    const { db, open } = await directory();
    const thread = [
      '{"type":"thread","thread_id":"t"}',
      String.raw`{"type":"message","message":{"role":"user","content":"cut \ud83d","metadata":{"k\udd11":"\ud83d\ude00"}}}`,
      '{"type":"end","thread_id":"t","messages":1,"runs":0}',
    ].join("\n");
    for (const summary of ["1 thread imported (1 message).\n", "Nothing changed: 1 thread there already.\n"]) {
      expect((await everthread(["import", "-"], { db, input: thread })).stdout).toBe(summary);
    }
    expect((await (await open("a.db")).load("t"))?.messages[0]).toMatchObject({
      content: [{ text: "cut \ufffd" }],
      metadata: { "k\ufffd": "\u{1f600}" },
    });
  });

  test("an import that was killed at any point is made whole by the next one", async () => {
    const { dir, db, file, open } = await directory();
    const source = await open("a.db");
    await story(source, "t");
    expect((await everthread(["export", "t", "-o", file], { db })).code).toBe(0);
    const { messages = [], extra = {} } = (await source.load("t")) ?? {};
    const steps: ((store: SqliteCheckpointer) => Promise<unknown>)[] = [
      (store) => store.claimRun("t", "z-first"),
      (store) => store.claimRun("t", "a-second"),
      (store) => store.claimRun("t", "open"),
      (store) => store.append("t", messages),
      (store) => store.saveExtra("t", extra),
      (store) => store.savePendingRequest("t", request("q"), { runId: "open" }),
      (store) => store.markRunComplete("t", "z-first"),
      (store) => store.markRunComplete("t", "a-second"),
    ];
    for (let done = 1; done <= steps.length; done++) {
      const target = await open(`killed${done}.db`);
      for (const step of steps.slice(0, done)) await step(target);
      const { records, code } = await everthread(["import", file, "--json"], { db: join(dir, `killed${done}.db`) });
      const whole = done === steps.length;
      expect([done, code, records()]).toMatchObject([
        done,
        0,
        [{ continued: whole ? 0 : 1, unchanged: whole ? 1 : 0 }],
      ]);
      expect(await everything(target, "t")).toEqual(await everything(source, "t"));
    }
  });

  test("an import killed with SIGKILL while it reads leaves whole threads only, and goes on when it is run again", async () => {
    const { db, copy, file, open } = await directory();
    const source = await open("a.db");
    for (const id of ["a", "b", "c"]) await story(source, id);
    expect((await everthread(["export", "--all", "-o", file], { db })).code).toBe(0);
    const child = start(["import", "-"], { db: copy });
    const ended = outcome(child);
    child.stdin?.write(lines(file).slice(0, 15).join("\n"));
    const target = await open("b.db");
    await expect.poll(async () => (await target.listRuns("a")).items.filter((run) => run.completedAt).length).toBe(2);
    child.kill("SIGKILL");
    expect((await ended).code).toBe(null);
    expect((await target.listThreads()).items.map(({ threadId }) => threadId)).toEqual(["a"]);
    expect((await everthread(["import", file], { db: copy })).stdout).toBe(
      "2 threads imported (12 messages), 1 there already.\n",
    );
    for (const id of ["a", "b", "c"]) expect(await everything(target, id)).toEqual(await everything(source, id));
  });

  test("a large thread is exported in bounded memory", async () => {
    const { db, file, open } = await directory();
    const store = await open("a.db");
    const big = userMessage("x".repeat(1_000_000));
    for (let i = 0; i < 15; i++)
      await store.append(
        "t",
        Array.from({ length: 20 }, () => big),
      );
    const env = { NODE_OPTIONS: "--max-old-space-size=160" };
    expect((await everthread(["export", "t", "-o", file], { db, env })).stderr).toBe(
      `Exported 1 thread (300 messages) to ${file}.\n`,
    );
    expect(statSync(file).size).toBeGreaterThan(300_000_000);
    expect((await everthread(["show", "t", "--last", "1", "--json"], { db, env })).records()).toHaveLength(3);
  });

  test("an export that is stopped leaves no half file", async () => {
    const { dir, db, file, open } = await directory();
    await (await open("a.db")).append(
      "t",
      Array.from({ length: 20_000 }, (_, i) => userMessage(`${i} ${"x".repeat(2000)}`)),
    );
    const child = start(["export", "t", "-o", file], { db });
    await expect.poll(() => existsSync(file)).toBe(true);
    child.kill("SIGINT");
    expect((await outcome(child)).code).toBe(130);
    expect(readdirSync(dir)).toEqual(["a.db"]);
  });
});

describe("fork", () => {
  test("copies up to the run that completed last, or the one that is named, with metadata", async () => {
    const { db, open } = await directory();
    const store = await open("a.db");
    await story(store, "t");
    const forked = await everthread(["fork", "t", "f1", "--json", "--metadata", '{"why":"try"}'], { db });
    expect(forked.records()).toEqual([{ thread_id: "f1", parent_thread_id: "t", after_run_id: "a-second" }]);
    expect(await store.load("f1")).toMatchObject({ parentThreadId: "t", extra: { fork: { why: "try" } } });
    expect((await everthread(["fork", "t…", "../f2", "--after-run", "z-first"], { db })).stdout).toBe(
      "../f2 continues t after run z-first.\n",
    );
    expect((await store.load("../f2"))?.messages).toHaveLength(2);
    await store.append("plain", [userMessage("hi")]);
    for (const [args, code] of [
      [["fork", "t", "f1"], "thread_already_exists"],
      [["fork", "t", "f3", "--after-run", "open"], "run_not_completed"],
      [["fork", "plain", "f3"], "run_not_completed"],
      [["fork", "none", "f3"], "thread_not_found"],
      [["fork", "t", "x".repeat(256)], "invalid_id"],
      [["fork", "t", ""], "invalid_id"],
    ] as const) {
      const refused = await everthread([...args, "--json"], { db });
      expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([1, code]);
    }
  });
});

describe("backup", () => {
  test("copies the store while it is open, to a new file of its owner's only", async () => {
    const { dir, db, copy, open } = await directory();
    await story(await open("a.db"), "t");
    chmodSync(db, 0o640);
    expect((await everthread(["backup", copy, "--json"], { db })).records()).toEqual([
      { file: copy, bytes: statSync(copy).size },
    ]);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(await everything(await open("b.db"), "t")).toMatchObject({
      runs: [
        ["a-second", 2],
        ["open", null],
        ["z-first", 1],
      ],
    });
    const refused = await everthread(["backup", copy], { db });
    expect([refused.code, refused.stderr]).toEqual([1, `error: ${copy} is there already; nothing was overwritten.\n`]);
    expect((await everthread(["backup", db], { db })).code).toBe(1);
    expect((await everthread(["backup", join(dir, "c.db"), "--db", "memory:"])).stderr).toContain("can't do backup");
    expect(readdirSync(dir).sort()).toEqual(["a.db", "b.db"]);
  });
});

test.each(["cubepi-0.13.6", "kinds", "runs", "waiting"])(
  "what CubeLoop wrote comes through an import whole: %s",
  async (name) => {
    const { db, copy, file, open } = await directory();
    copyFileSync(new URL(`../golden/${name}.sqlite3`, import.meta.url), db);
    expect((await everthread(["export", "--all", "-o", file], { db })).code).toBe(0);
    expect((await everthread(["import", file], { db: copy })).code).toBe(0);
    const [source, target] = [await open("a.db"), await open("b.db")];
    const { items } = await source.listThreads({ limit: 1000 });
    expect(items.length).toBeGreaterThan(2);
    for (const { threadId } of items)
      expect(await everything(target, threadId)).toEqual(await everything(source, threadId));
  },
);

test("times, the parent of a fork, and the answers already given come through an import", async () => {
  const { db, copy, file, open } = await directory();
  const source = await open("a.db");
  await story(source, "t");
  await source.fork("t", "fork", { afterRunId: "z-first" });
  await source.saveHitlAnswer("t", "q2", false, { runId: "open" });
  await source.saveHitlAnswer("t", "q1", null);
  const time = Date.parse("2020-02-29T12:00:00.123Z");
  const ageing = new DatabaseSync(db);
  ageing.exec("UPDATE messages SET created_at = julianday('2020-02-29T12:00:00.123')");
  ageing.exec("UPDATE runs SET claimed_at = claimed_at - 100, completed_at = completed_at - 50");
  ageing.close();
  expect((await everthread(["export", "--all", "-o", file], { db })).code).toBe(0);
  expect(lines(file).filter((line) => line.includes('"answer"'))).toEqual([
    '{"type":"answer","run_id":null,"question_id":"q1","answer":null}',
    '{"type":"answer","run_id":"open","question_id":"q2","answer":false}',
  ]);
  expect((await everthread(["show", "t", "--json"], { db })).stdout).toContain('"question_id":"q2","answer":false}');
  expect((await everthread(["import", file], { db: copy })).code).toBe(0);
  const target = await open("b.db");
  expect((await target.load("fork"))?.parentThreadId).toBe("t");
  for (const id of ["t", "fork"]) {
    expect(await target.listHitlAnswers(id)).toEqual(await source.listHitlAnswers(id));
    expect(await target.listRuns(id)).toEqual(await source.listRuns(id));
    const times = (await target.listMessages(id)).items.map(({ createdAt }) => createdAt.getTime());
    expect(times).toEqual(times.map(() => time));
  }
  expect((await everthread(["import", file], { db: copy })).stdout).toBe("Nothing changed: 2 threads there already.\n");
  await target.saveHitlAnswer("t", "q2", true, { runId: "open" });
  expect((await everthread(["import", file], { db: copy })).stderr).toContain("other answers are recorded of it");
});

test("a thread that has gone on since its export goes on where it was imported", async () => {
  const { db, copy, file, open } = await directory();
  const source = await open("a.db");
  await story(source, "t");
  const move = async () => {
    expect((await everthread(["export", "t", "-o", file, "--force"], { db })).code).toBe(0);
    return (await everthread(["import", file, "--json"], { db: copy })).records();
  };
  expect(await move()).toMatchObject([{ imported: 1, messages: 6 }]);
  await source.append("t", [toolResultMessage({ id: "q", name: "look" }, "seen", { run_id: "open" })]);
  await source.savePendingRequest("t", null);
  await source.saveExtra("t", { notes: [] });
  await source.markRunComplete("t", "open");
  expect(await move()).toMatchObject([{ imported: 0, continued: 1, messages: 1, conflicts: [] }]);
  expect(await everything(await open("b.db"), "t")).toEqual(await everything(source, "t"));
});

test("records with a wrong time, answer or parent are named by their line", async () => {
  const begin = '{"type":"thread","thread_id":"t"}';
  const faults: [string, RegExp][] = [
    ['{"type":"message","created_at":"soon","message":{"role":"user","content":"x"}}', /has created_at "soon"/],
    ['{"type":"message","created_at":5,"message":{"role":"user","content":"x"}}', /has created_at 5/],
    ['{"type":"run","run_id":"r","claimed_at":"then"}', /has claimed_at "then"/],
    ['{"type":"run","run_id":"r","completed_at":{},"completion_seq":1}', /has completed_at/],
    ['{"type":"answer","question_id":"q"}', /has no answer/],
    ['{"type":"answer","answer":1}', /question id/],
    ['{"type":"answer","run_id":"","question_id":"q","answer":1}', /run id is empty/],
  ];
  for (const [line, problem] of faults) {
    const input = [begin, line, '{"type":"end","thread_id":"t","messages":0,"runs":0}'].join("\n");
    const { code, stderr } = await everthread(["import", "-", "--db", "memory:"], { input });
    expect([line, code]).toEqual([line, 1]);
    expect(stderr).toMatch(/^Line 2 .*Nothing of thread "t" was written\.\n$/);
    expect(stderr).toMatch(problem);
  }
  const answer = '{"type":"answer","question_id":"q","answer":1}';
  const twice = await everthread(["import", "-", "--db", "memory:"], { input: [begin, answer, answer].join("\n") });
  expect(twice.stderr).toMatch(/^Line 3 is a second answer/);
  const parent = '{"type":"thread","thread_id":"t","parent_thread_id":""}';
  expect((await everthread(["import", "-", "--db", "memory:"], { input: parent })).stderr).toMatch(/^Line 1 .*empty/);
});

test("a result and its call come through an import together", async () => {
  const { db, copy, file, open } = await directory();
  const source = await open("a.db");
  await source.append("t", [
    assistantMessage([toolCall("call_0", "look", {})]),
    toolResultMessage({ id: "call_0", name: "look" }, "seen", { details: { a: [1, { b: null }] } }),
  ]);
  expect((await everthread(["export", "t", "-o", file], { db })).code).toBe(0);
  expect((await everthread(["import", file], { db: copy })).code).toBe(0);
  expect(await everything(await open("b.db"), "t")).toEqual(await everything(source, "t"));
});
