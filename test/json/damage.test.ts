/** Damaged files: each is refused or reported by name, nothing is overwritten, and no history is silently short. */
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { code, filesIn, logOf, makeStore, open, read, says, textsOf } from "./support.ts";

async function refusedAsItIs(content: string | Buffer, error: unknown): Promise<void> {
  const files = filesIn();
  fs.writeFileSync(files.state, content);
  for (const readOnly of [false, true]) {
    await expect(open(files, { readOnly })).rejects.toEqual(error);
    expect(fs.readFileSync(files.state)).toEqual(Buffer.from(content));
    expect(fs.readdirSync(files.dir)).toEqual(["state.json"]);
  }
}

describe("state.json as a whole", () => {
  test("D1 D3 cut at every byte it is refused, by name, and left as it is", async () => {
    const files = filesIn();
    await makeStore(files, ["one", "two é 😀"]);
    const whole = fs.readFileSync(files.state);
    // All but the line feed at its end.
    for (let length = 0; length < whole.length - 1; length++) {
      fs.writeFileSync(files.state, whole.subarray(0, length));
      const error: unknown = await open(files).catch((caught: unknown) => caught);
      expect(error, `${length} bytes`).toEqual(code("store_open_failed"));
      expect(String(error)).toContain(files.state);
      expect(fs.readFileSync(files.state)).toEqual(whole.subarray(0, length));
    }
    fs.writeFileSync(files.state, whole.subarray(0, -1));
    await using store = await open(files);
    expect(await textsOf(store)).toEqual(["one", "two é 😀"]);
  });

  test("D2 D5 zeros, no bytes at all, and what is not UTF-8 are refused", async () => {
    await refusedAsItIs(Buffer.alloc(4096), code("store_open_failed"));
    await refusedAsItIs("", code("store_open_failed"));
    await refusedAsItIs(Buffer.from('{"everthread":1,"x":"\xff"}', "latin1"), code("store_open_failed"));
  });

  test.each([
    ["an array", "[]"],
    ["null", "null"],
    ["another program's", '{"messages":[]}'],
    ["of no version", '{"everthread":"1","revision":0,"threads":{}}'],
    ["without a revision", '{"everthread":1,"threads":{}}'],
    ["of threads in a list", '{"everthread":1,"revision":0,"threads":[]}'],
    ["with two of a key", '{"everthread":1,"revision":0,"threads":{},"threads":{}}'],
    ["with two threads of one id", '{"everthread":1,"revision":0,"threads":{"a":{"revision":0},"a":{"revision":0}}}'],
    ["that names a directory elsewhere", '{"everthread":1,"revision":0,"threads":{},"removed":["../a1"]}'],
    ["of two texts", '{"everthread":1,"revision":0,"threads":{}}{"everthread":1,"revision":0,"threads":{}}'],
  ])("D2 a file %s is refused", async (_, content) => {
    await refusedAsItIs(content, code("store_open_failed"));
  });

  test("G13 a revision that is no whole number is refused", async () => {
    for (const revision of ['"abc"', "007", "1.5", "-1", "null", "1e400"]) {
      await refusedAsItIs(`{"everthread":1,"revision":${revision},"threads":{}}`, code("store_open_failed"));
    }
  });

  test("L32 one of a newer Everthread is refused before any write", async () => {
    const newer = expect.objectContaining({
      ...{ code: "schema_mismatch", expected: 1, actual: 2 },
      message: expect.stringContaining("state.json"),
    });
    await refusedAsItIs('{"everthread":2,"revision":{"new":"form"}}', newer);
  });

  test("a byte order mark is taken", async () => {
    const files = filesIn();
    await makeStore(files, ["one"]);
    fs.writeFileSync(files.state, `\ufeff${read(files.state)}`);
    await using store = await open(files);
    await store.append("session", says("two"));
    expect(await textsOf(store)).toEqual(["one", "two"]);
  });

  test("damaged while the store is open: reading and writing say so, and nothing is overwritten", async () => {
    const files = filesIn();
    await using store = await open(files);
    await store.append("session", says("one"));
    const sound = read(files.state);
    fs.writeFileSync(files.state, sound.slice(0, -20));
    await expect(store.load("session")).rejects.toEqual(code("store_open_failed"));
    await expect(store.append("session", says("two"))).rejects.toEqual(code("store_open_failed"));
    await expect(store.append("session", says("two"))).rejects.toEqual(code("store_open_failed"));
    expect(read(files.state)).toBe(sound.slice(0, -20));
    fs.writeFileSync(files.state, sound);
    await store.append("session", says("two"));
    expect(await textsOf(store)).toEqual(["one", "two"]);
  });
});

describe("a part of state.json", () => {
  const OTHER =
    '{"revision":9,"messages":[{"position":9,"created_at":"2026-01-01T00:00:00Z","message":{"role":"user","content":"fine"}}]}';
  const stateOf = (thread: string) => `{"everthread":1,"revision":9,"threads":{"bad":${thread},"good":${OTHER}}}`;
  const entry = (message: string, position = "1", more = "") =>
    `{"position":${position},"created_at":"2026-01-01T00:00:00Z","message":${message}${more}}`;

  test.each([
    ["no role", '{"content":[]}'],
    ["another role", '{"role":"developer","content":[]}'],
    ["text", '"user: hi"'],
    ["null", "null"],
    ["a broken block", '{"role":"user","content":[{"type":"text"}],  "n": 1.0}'],
  ])("D2 M14 a message of %s is named; it keeps its text, and other threads load", async (_, message) => {
    const files = filesIn();
    const good = '{"role":"user","content":[]}';
    fs.writeFileSync(files.state, stateOf(`{"revision":2,"messages":[${entry(message)},${entry(good, "2")}]}`));
    await using store = await open(files);
    const corrupt = expect.objectContaining({ code: "checkpoint_corruption", rowRef: `${files.state}#position=1` });
    await expect(store.load("bad")).rejects.toEqual(corrupt);
    expect(await textsOf(store, "good")).toEqual(["fine"]);
    await store.append("bad", says("more"));
    await store.append("good", says("more"));
    expect(read(files.state)).toContain(`"message":${message}}`);
    await expect(store.load("bad")).rejects.toEqual(corrupt);
    expect((await store.listMessages("bad")).items.map(({ error }) => error !== undefined)).toEqual([
      true,
      false,
      false,
    ]);
  });

  test.each([
    ["no revision", `{"messages":[${entry("{}")}]}`],
    ["messages that went missing", `{"revision":3,"messages":[${entry("{}")}]}`],
    ["messages in no order", `{"revision":1,"messages":[${entry("{}", "2")},${entry("{}", "1")}]}`],
    ["two messages in one place", `{"revision":1,"messages":[${entry("{}")},${entry("{}")}]}`],
    ["a position that is none", `{"revision":1,"messages":[${entry("{}", '"1"')}]}`],
    ["no time", '{"revision":1,"messages":[{"position":1,"message":{}}]}'],
    ["two of a key", '{"revision":0,"revision":0}'],
    ["extra in a list", '{"revision":0,"extra":[]}'],
    ["a request that is none", '{"revision":0,"pending":{"run_id":null,"request":{}}}'],
    ["an archive elsewhere", '{"revision":0,"archives":[{"archive_id":"a1","directory":"../../etc"}]}'],
    ["no object at all", "7"],
  ])("D2 X10 a thread with %s is named, kept as it is, and can be erased; others load", async (_, thread) => {
    const files = filesIn();
    fs.writeFileSync(files.state, stateOf(thread));
    await using store = await open(files);
    await expect(store.load("bad")).rejects.toEqual(
      expect.objectContaining({ code: "checkpoint_corruption", threadId: "bad", rowRef: files.state }),
    );
    await expect(store.append("bad", says("more"))).rejects.toEqual(code("checkpoint_corruption"));
    await expect(store.fork("bad", "new", { afterRunId: "r" })).rejects.toEqual(code("checkpoint_corruption"));
    expect(await textsOf(store, "good")).toEqual(["fine"]);
    await store.append("good", says("more"));
    expect(read(files.state)).toContain(`"bad": ${thread}`);
    expect((await store.listThreads()).items.map(({ threadId }) => threadId)).toEqual(["bad", "good"]);
    expect(await store.checkIntegrity()).toEqual([expect.stringContaining('thread "bad"')]);
    expect(await store.deleteThread("bad")).toBe(true);
    expect(await store.checkIntegrity()).toEqual([]);
  });

  test("M15 E6 E8 what this version does not know, numbers and the order of keys survive rewriting", async () => {
    const files = filesIn();
    const message =
      '{"role":"user","content":[{"type":"text","text":"hi","zeta":1,"10":2,"2":9007199254740993}],"n":1.0,"__proto__":{"a":1e400}}';
    const run =
      '{"run_id":"r","claimed_at":"2026-01-01T00:00:00.000Z","completed_at":null,"completion_seq":null,"by":"me"}';
    const pending =
      '{"run_id":"r","request":{"question_id":"q","thread_id":null,"payload":{"kind":"ask","questions":[]},"created_at":1.0,"x":1},"note":2}';
    const answer = '{"run_id":null,"question_id":"q0","answer":18446744073709551616,"by":{"a":1}}';
    const thread = `{"revision":1,"extra":{"big":9007199254740993},"runs":[${run}],"pending":${pending},"answers":[${answer}],"messages":[${entry(message, "1", ',"tags":["a"]')}],"title":"Ants"}`;
    fs.writeFileSync(
      files.state,
      `{"note":"by hand","everthread":1,"revision":1,"threads":{"session":${thread}},"future":{"x":[1.50]}}`,
    );
    await using store = await open(files);
    expect((await store.load("session"))?.extra).toEqual({ big: 9007199254740992 });
    await store.append("session", says("more"));
    await store.saveExtra("session", { b: 1 });
    const text = read(files.state);
    for (const kept of [run, pending, answer, '"title": "Ants"', '"note": "by hand"', '"future": {"x":[1.50]}']) {
      expect(text).toContain(kept);
    }
    expect(text).toContain(`"message":${message},"tags":["a"]}`);
    expect(text).toContain('"extra": {"big":9007199254740993,"b":1}');
    await store.archives.compact("session", { upTo: 1, summary: "s" });
    const archived = read(join(files.memory, "a1", "state.json"));
    expect(archived).toContain(`"message":${message},"tags":["a"]}`);
    expect(archived).toContain('"extra": {"big":9007199254740993,"b":1}');
  });

  test("a thread called __proto__ is one like any other", async () => {
    const files = filesIn();
    await makeStore(files, ["one"], "__proto__");
    await using store = await open(files);
    expect(await textsOf(store, "__proto__")).toEqual(["one"]);
    expect((await store.listThreads()).items.map(({ threadId }) => threadId)).toEqual(["__proto__"]);
    expect(await store.load("constructor")).toBeUndefined();
  });
});

describe("an archive", () => {
  async function compacted() {
    const files = filesIn();
    await using store = await open(files);
    await store.claimRun("session", "r");
    await store.append("session", says("1", "2", "3"));
    await store.markRunComplete("session", "r");
    await store.archives.compact("session", { upTo: 2, summary: "one and two" });
    return { files, file: join(files.memory, "a1", "state.json") };
  }

  test.each([
    ["missing", (file: string) => fs.rmSync(file)],
    ["cut short", (file: string) => fs.truncateSync(file, fs.statSync(file).size - 9)],
    ["empty", (file: string) => fs.truncateSync(file, 0)],
    [
      "short of a message",
      (file: string) => fs.writeFileSync(file, read(file).replace(/\n {4}\{"position":1,.*\n/, "\n")),
    ],
    ["another one", (file: string) => fs.writeFileSync(file, read(file).replace('"up_to": 2', '"up_to": 1'))],
    ["of another thread", (file: string) => fs.writeFileSync(file, read(file).replace('"session"', '"other"'))],
  ])("that is %s is named wherever it is needed, and the active context loads", async (_, damage) => {
    const { files, file } = await compacted();
    damage(file);
    await using store = await open(files);
    const corrupt = expect.objectContaining({ code: "checkpoint_corruption", threadId: "session", rowRef: file });
    expect(await store.load("session")).toMatchObject({ summary: "one and two", kept: 1 });
    await store.append("session", says("4"));
    expect((await store.archives.list("session")).items).toMatchObject([{ archiveId: "a1", messageCount: 2 }]);
    await expect(store.archives.read("session", "a1")).rejects.toEqual(corrupt);
    await expect(store.listMessages("session")).rejects.toEqual(corrupt);
    await expect(store.fork("session", "new", { afterRunId: "r" })).rejects.toEqual(corrupt);
    expect(await store.load("new")).toBeUndefined();
    expect(await store.checkIntegrity()).toEqual([expect.stringContaining(file)]);
    // What is there is copied as it is; what isn't can't be.
    const copy = join(files.dir, "copy");
    const isThere = fs.existsSync(file);
    await store.backup(copy).catch((error: unknown) => expect([isThere, error]).toEqual([false, corrupt]));
    expect(fs.existsSync(copy)).toBe(isThere);
    expect((await store.listMessages("session", { after: 2 })).items).toHaveLength(2);
    expect(await store.deleteThread("session")).toBe(true);
  });

  test("W8 one that can't be read is kept while a run waits, and reported; the rest are pruned", async () => {
    const { files, file } = await compacted();
    await using store = await open(files);
    await store.append("session", says("4", "5"));
    for (const upTo of [3, 4]) await store.archives.compact("session", { upTo, summary: "more" });
    const payload = { kind: "ask" as const, questions: [{ key: "k", prompt: "?" }] };
    const request = { question_id: "q", thread_id: null, payload, created_at: 1 };
    await store.savePendingRequest("session", request, { runId: "waiting" });
    fs.rmSync(file);
    const report = await store.archives.prune("session", { keep: 1 });
    expect(report.pruned).toEqual(["a2"]);
    expect(report.protected).toEqual([{ archiveId: "a1", reason: expect.stringContaining(file) }]);
    await store.savePendingRequest("session", null);
    expect((await store.archives.prune("session", { keep: 1 })).pruned).toEqual(["a1"]);
    expect(await logOf(store)).toEqual(["4", "5"]);
  });
});
