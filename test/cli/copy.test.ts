/** copy: threads from one store to another, by the command line. */
import { execFile, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { fill, whole } from "../copy/stores.ts";
import { tempDir } from "../support/temp.ts";
import { BIN, everthread, outcome, plainEnv, start } from "./support.ts";

const REPORT = { copied: 0, continued: 0, unchanged: 0, messages: 0, conflicts: [], damaged: [], differences: [] };
const SAME = " What was copied was compared, and is the same.\n";

async function directory() {
  const dir = tempDir(onTestFinished);
  const open = async (name: string) => {
    const store = await SqliteCheckpointer.open(join(dir, name));
    onTestFinished(() => store.close());
    return store;
  };
  return { dir, a: join(dir, "a.db"), b: join(dir, "b.db"), open };
}

test("G10 a whole store is copied to a new file of its owner's only; again changes nothing", async () => {
  const { a, b, open } = await directory();
  const source = await open("a.db");
  for (const id of ["t", "../evil", "…"]) await fill(source, id);
  expect(await everthread(["copy", a, b])).toMatchObject({
    code: 0,
    stdout: `3 threads copied, 21 messages.${SAME}`,
    stderr: "",
  });
  expect(statSync(b).mode & 0o777).toBe(0o600);
  const target = await open("b.db");
  expect(await whole(target)).toEqual(await whole(source));
  expect(await everthread(["copy", `sqlite:${a}`, pathToFileURL(b).href])).toMatchObject({
    code: 0,
    stdout: "Nothing changed: 3 threads there already.\n",
  });
  await source.append("t", [userMessage("more")]);
  await source.append("new", [userMessage("new")]);
  const grown = await everthread(["copy", a, b, "--no-verify"]);
  expect(grown.stdout).toBe("1 thread copied, 1 continued, 2 there already, 2 messages.\n");
  expect((await everthread(["copy", "--json", a, b])).records()).toEqual([{ ...REPORT, unchanged: 4 }]);
});

test("named threads only, by shortened ids; what is not there is an error, and no target is made", async () => {
  const { a, b, open } = await directory();
  const source = await open("a.db");
  for (const id of ["user-1", "user-2", "other"]) await source.append(id, [userMessage(id)]);
  expect((await everthread(["copy", a, b, "oth…", "user-2", "--json"])).records()).toEqual([
    { ...REPORT, copied: 2, messages: 2 },
  ]);
  expect((await (await open("b.db")).listThreads()).items.map(({ threadId }) => threadId)).toEqual(["other", "user-2"]);
  const none = await everthread(["copy", a, `${b}2`, "none", "--json"]);
  expect([none.code, JSON.parse(none.stderr).error.code]).toEqual([1, "thread_not_found"]);
  expect(existsSync(`${b}2`)).toBe(false);
});

test("an empty store, and a store in memory", async () => {
  const { a, b, open } = await directory();
  await open("a.db");
  expect(await everthread(["copy", a, b])).toMatchObject({ code: 0, stdout: "There was nothing to copy.\n" });
  await fill(await open("a.db"), "t");
  expect((await everthread(["copy", a, "memory:"])).stdout).toBe(`1 thread copied, 7 messages.${SAME}`);
});

test("conflicts and damaged rows are listed with exit code 1, and the rest is copied", async () => {
  const { a, b, open } = await directory();
  const source = await open("a.db");
  for (const id of ["bad", "good", "mine"]) await source.append(id, [userMessage("1"), userMessage("2")]);
  const damaging = new DatabaseSync(a);
  damaging.exec("UPDATE messages SET message_json = 'non\u001bsense' WHERE id = 2");
  damaging.close();
  await (await open("b.db")).append("mine", [userMessage("other")]);
  const { code, stdout, stderr } = await everthread(["copy", a, b]);
  expect([code, stdout]).toEqual([1, `1 thread copied, 2 messages, 1 conflict, 1 damaged.${SAME}`]);
  expect(stderr.trimEnd().split("\n")).toEqual([
    'Conflict: thread "mine" is there already: the store has another message 1.',
    expect.stringMatching(/^Damaged: thread "bad", messages\.id=2: .*non␛sense.* Nothing of it was copied\.$/),
  ]);
  const json = await everthread(["copy", a, b, "--json"]);
  expect([json.code, json.stderr]).toEqual([1, ""]);
  expect(json.records()).toMatchObject([
    {
      unchanged: 1,
      conflicts: [{ thread_id: "mine", reason: "the store has another message 1" }],
      damaged: [{ thread_id: "bad", row_ref: "messages.id=2" }],
    },
  ]);
});

test("a store is not copied onto itself, by whichever name, and nothing is written", async () => {
  const { dir, a, open } = await directory();
  copyFileSync(new URL("../golden/cubepi-0.1.0.sqlite3", import.meta.url), a);
  symlinkSync(a, join(dir, "soft.db"));
  linkSync(a, join(dir, "hard.db"));
  const bytes = readFileSync(a);
  for (const to of [a, `sqlite:${a}`, join(dir, ".", "soft.db"), join(dir, "hard.db"), pathToFileURL(a).href]) {
    const refused = await everthread(["copy", a, to]);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      `error: ${to} is the store that is copied from. Name another one to copy to.\n`,
    ]);
  }
  expect((await everthread(["copy", "memory:", "memory:"])).code).toBe(2);
  // The source is an old file: it is read as it is, and stays so.
  expect((await everthread(["copy", a, join(dir, "b.db")])).code).toBe(0);
  expect(readFileSync(a).equals(bytes)).toBe(true);
  expect(readdirSync(dir).sort()).toEqual(["a.db", "b.db", "hard.db", "soft.db"]);
  expect((await (await open("b.db")).listThreads()).items.length).toBeGreaterThan(10);
});

test("what is no store is said in one line, and --db is not for copy", async () => {
  const { dir, a, b, open } = await directory();
  await fill(await open("a.db"), "t");
  writeFileSync(join(dir, "text"), "This is no database. ".repeat(100));
  const cases: [string[], number][] = [
    [["copy", join(dir, "none.db"), b], 1],
    [["copy", join(dir, "text"), b], 1],
    [["copy", a, join(dir, "text")], 1],
    [["copy", a, join(dir, "no", "b.db")], 1],
    [["copy", a, "redis://host/1"], 1],
    [["copy", a, dir], 1],
    [["copy", a], 2],
    [["copy", a, b, "--db", a], 2],
  ];
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await everthread(args);
    expect([args, code, stdout]).toEqual([args, expected, ""]);
    expect(stderr).toMatch(/^error: [^\n]+\n$/);
  }
  expect(existsSync(b)).toBe(false);
  // EVERTHREAD_DB is for the other commands.
  expect((await everthread(["copy", a, b], { db: join(dir, "none.db") })).code).toBe(0);
});

test("a copy that is stopped by Ctrl-C or killed goes on when it is run again", async () => {
  const { a, b, open } = await directory();
  const source = await open("a.db");
  const messages = (id: string) => Array.from({ length: 3000 }, (_, i) => userMessage(`${id} ${i} ${"x".repeat(300)}`));
  for (let i = 0; i < 10; i++) await source.append(`t${i}`, messages(`t${i}`));
  const target = await open("b.db");
  for (const [i, signal] of (["SIGINT", "SIGKILL", "SIGTERM"] as const).entries()) {
    const child = start(["copy", a, b]);
    const ended = outcome(child);
    const written = async () => (await target.listThreads()).items.reduce((sum, info) => sum + info.messageCount, 0);
    await expect.poll(written, { interval: 5, timeout: 20_000 }).toBeGreaterThan(i * 6000);
    child.kill(signal);
    const { code, stdout, stderr } = await ended;
    expect([code, stdout]).toEqual([{ SIGINT: 130, SIGKILL: null, SIGTERM: 143 }[signal], ""]);
    if (signal === "SIGINT") expect(stderr).toContain("the same command again goes on");
  }
  const { code, records } = await everthread(["copy", a, b, "--json"]);
  expect(code).toBe(0);
  expect(records()).toMatchObject([{ conflicts: [], damaged: [], differences: [] }]);
  expect(await whole(target)).toEqual(await whole(source));
  expect((await everthread(["copy", a, b, "--json"])).records()).toEqual([{ ...REPORT, unchanged: 10 }]);
}, 60_000);

const python = process.env.EVERTHREAD_PYTHON ?? "python3";
const hasTerminal = spawnSync(python, ["-c", "import pty, os; os.waitstatus_to_exitcode"]).status === 0;

test.skipIf(!hasTerminal)(
  "on a terminal a bar shows how far it is, and goes away (skipped without Python's pty)",
  async () => {
    const { a, b, open } = await directory();
    const source = await open("a.db");
    for (let i = 0; i < 30; i++) await fill(source, `t${i}`);
    const script = fileURLToPath(new URL("terminal.py", import.meta.url));
    const copyOn = async (args: string[], env: NodeJS.ProcessEnv) => {
      const argv = [script, "[]", "100", process.execPath, BIN, "copy", ...args];
      const { stdout } = await promisify(execFile)(python, argv, { env: plainEnv({ env }) });
      return (JSON.parse(stdout) as { output: string }).output;
    };
    const output = await copyOn([a, b], { TERM: "xterm" });
    expect(output).toContain("[####################] 30/30 threads, 210 messages copied");
    expect(output).toMatch(/\r\u001b\[K30 threads copied, 210 messages\..*\r\n$/);
    for (const [args, env] of [
      [["--json", a, b], { TERM: "xterm" }],
      [[a, b], { TERM: "dumb" }],
    ] as const) {
      expect(await copyOn([...args], env)).not.toContain("\r\u001b");
    }
  },
);

test("a large thread is copied in bounded memory", async () => {
  const { a, b, open } = await directory();
  const store = await open("a.db");
  const big = Array.from({ length: 20 }, () => userMessage("x".repeat(1_000_000)));
  for (let i = 0; i < 15; i++) await store.append("t", big);
  const { code, stdout } = await everthread(["copy", a, b], { env: { NODE_OPTIONS: "--max-old-space-size=220" } });
  expect([code, stdout]).toEqual([0, `1 thread copied, 300 messages.${SAME}`]);
}, 60_000);
