/** Everthread and the real CubeLoop on one file: what one writes the other reads, in turns and at once. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RunAlreadyClaimedError, RunAlreadyCompletedError, ThreadConflictError } from "../../src/checkpoint/errors.ts";
import type { PendingRequest } from "../../src/checkpoint/pending.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import {
  assistantMessage,
  image,
  text,
  textOf,
  thinking,
  toolCall,
  toolResultMessage,
  userMessage,
} from "../../src/messages/construct.ts";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import type { Message } from "../../src/messages/schema.ts";
import { PythonPeer, python, pythonLabel, runPython } from "../support/python.ts";
import { expectedOf, NAMES, query, TestDirectory } from "./files.ts";

const TEXTS = [
  "",
  " \n\t",
  "🧵 👩‍👩‍👧‍👦 👍🏽 🇩🇪 𠮷",
  "crème brûlée".normalize("NFD"),
  "crème brûlée".normalize("NFC"),
  "nul \0 after \x07 \x1b[31m \x7f",
  "שלום \u200fمرحبا\u202e reversed",
  "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
  "\u2028 \u2029 \ufeff \ufffd \uffff",
  "quotes \" ' ` \\ / </script>",
];
const VALUES: JsonValue[] = [
  ...[null, true, false, 0, -1, 1.5, 0.1, 1e300, 5e-324, 1e21, 1e-7, 2 ** 53, -(2 ** 53), "", "text"],
  ...[[], {}, [null], [[[]], { a: {} }], { a: null, b: [], c: {} }],
  { zeta: 1, a: 2, "10": 3, "2": 4, "": 5, "\0": 6, "😀": 7 },
  JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}') as JsonValue,
  { lc: 1, type: "constructor", id: ["x", "Y"], kwargs: {} },
];
const EXTRA = { ...Object.fromEntries(VALUES.map((value, i) => [`value ${i}`, value])), "ключ 🗝": TEXTS };

/** Messages of every kind and block, with everything that a field can hold. */
const EVERY_KIND: Message[] = [
  userMessage("plain"),
  userMessage([text("with a picture"), image("iVBORw0KGgo=", "image/png")], { metadata: EXTRA, timestamp: null }),
  ...TEXTS.map((item) => userMessage(item, { metadata: { [item]: item } })),
  assistantMessage(
    [thinking(" hm\n"), text("I call."), ...VALUES.map((value, i) => toolCall(`call_${i}`, "t", { value }))],
    {
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 },
      provider_id: "anthropic",
      model_id: "claude",
      response_id: "resp_1",
    },
  ),
  ...VALUES.map((details, i) =>
    toolResultMessage({ id: `call_${i}`, name: "t" }, TEXTS[i % TEXTS.length] ?? "", {
      details,
      is_error: i % 2 === 1,
    }),
  ),
  assistantMessage([], { stop_reason: "error", error_message: "overloaded", timestamp: 0 }),
  assistantMessage("cut", { stop_reason: "aborted", error_message: "" }),
];

// What CubeLoop fills in for fields that a row lacks.
const COMMON = { id: "", timestamp: null, metadata: {}, run_id: null };
const DEFAULTS: Record<Message["role"], JsonObject> = {
  user: COMMON,
  assistant: {
    ...COMMON,
    ...{ stop_reason: "stop", usage: null, provider_id: "", model_id: "", response_id: null, error_message: null },
    ...{
      error_type: null,
      error_code: null,
      status_code: null,
      retry_after: null,
      tokens_in: null,
      context_window: null,
    },
  },
  tool_result: { ...COMMON, details: null, is_error: false },
};
/** Messages as CubeLoop loads them. */
const asCubeLoop = (messages: readonly Message[]) =>
  messages.map((message) => ({ ...DEFAULTS[message.role], ...message }));

const approve: PendingRequest = {
  question_id: "call_0",
  thread_id: "approve",
  payload: { kind: "approve", tool_name: "t", tool_call_id: "call_0", args: EXTRA, details: { why: "🧵" } },
  created_at: 1750000000.25,
  timeout_seconds: 1.5,
};
const PENDING: PendingRequest[] = [
  approve,
  {
    question_id: "ask.0",
    thread_id: null,
    payload: {
      kind: "ask",
      questions: [
        {
          key: "colour",
          prompt: "Which? 🎨",
          options: [{ label: "Teal", value: "teal", description: null, allow_input: true }],
          multi_select: true,
          required: false,
        },
        { key: "name", prompt: "Name?", options: null, multi_select: false, required: true },
      ],
    },
    created_at: 1750000001,
    timeout_seconds: null,
  },
  {
    question_id: "confirm.0",
    thread_id: "confirm",
    payload: { kind: "confirm", prompt: "Really?", details: null },
    created_at: 1750000002,
    timeout_seconds: null,
  },
];

describe.skipIf(python.path === null)(`with Python (${pythonLabel})`, () => {
  let directory: TestDirectory;
  let file: string;
  beforeEach(() => {
    directory = new TestDirectory();
    file = directory.file("shared.sqlite3");
  });
  afterEach(() => directory[Symbol.dispose]());

  test("messages of every kind that Everthread wrote are the same in CubeLoop", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await ours.append("t", EVERY_KIND);
    await using theirs = new PythonPeer(file);
    const loaded = (await theirs.call("load", "t")) as { messages: Message[]; extra: JsonObject };
    expect(loaded.messages).toEqual(asCubeLoop(EVERY_KIND));
    expect(loaded.extra).toEqual({});
  });

  test("messages of every kind that CubeLoop wrote are the same in Everthread", async () => {
    await using theirs = new PythonPeer(file);
    await theirs.call("append", "t", EVERY_KIND);
    await using ours = await SqliteCheckpointer.open(file);
    expect((await ours.load("t"))?.messages).toEqual(asCubeLoop(EVERY_KIND));
  });

  test("fields that CubeLoop doesn't know are kept when it forks and goes on", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    const signed = assistantMessage([{ ...thinking("hm"), provider_options: { anthropic: { signature: "sig+/=" } } }]);
    await ours.claimRun("t", "run-1");
    await ours.append("t", [userMessage("hi", { run_id: "run-1" }), { ...signed, run_id: "run-1" }]);
    await ours.markRunComplete("t", "run-1");
    await using theirs = new PythonPeer(file);
    await theirs.call("fork", "t", "fork", "run-1");
    await theirs.call("append", "fork", [{ role: "user", content: [{ type: "text", text: "go on" }] }]);
    expect((await ours.load("fork"))?.messages[1]).toEqual({ ...signed, run_id: "run-1" });
  });

  test("extra is one for both, merged key by key", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    await ours.saveExtra("t", { ...EXTRA, both: "ours", ours: 1 });
    await theirs.call("save_extra", "t", { both: "theirs", theirs: { a: [1.5, null] } });
    const merged = { ...EXTRA, both: "theirs", ours: 1, theirs: { a: [1.5, null] } };
    expect((await ours.load("t"))?.extra).toEqual(merged);
    expect(await theirs.call("load", "t")).toEqual({ messages: [], extra: merged, parent_thread_id: null });
    await ours.saveExtra("t", { both: "ours again" });
    expect(((await theirs.call("load", "t")) as { extra: JsonObject }).extra).toEqual({
      ...merged,
      both: "ours again",
    });
  });

  test("runs, snapshots and forks of one are those of the other, and completion numbers go on", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    const message = (run_id: string) => userMessage(run_id, { run_id });
    for (const runId of ["ours-1", "ours-2"]) {
      await ours.claimRun("t", runId);
      await ours.append("t", [message(runId)]);
    }
    for (const runId of ["theirs-1", "theirs-2"]) {
      await theirs.call("claim_run", "t", runId);
      await theirs.call("append", "t", [message(runId)]);
    }
    await theirs.call("mark_run_complete", "t", "ours-2");
    await ours.markRunComplete("t", "theirs-1");
    await theirs.call("mark_run_complete", "t", "theirs-1");
    await ours.markRunComplete("t", "ours-1");
    const runs = (await ours.listRuns("t")).items;
    expect(runs.map((run) => [run.runId, run.completionSeq])).toEqual([
      ["ours-1", 3],
      ["ours-2", 1],
      ["theirs-1", 2],
      ["theirs-2", null],
    ]);
    await expect(theirs.call("claim_run", "t", "ours-2")).rejects.toThrow(/^RunAlreadyCompletedError/);
    await expect(ours.claimRun("t", "theirs-2")).rejects.toThrow(RunAlreadyClaimedError);
    await expect(ours.append("t", [message("theirs-1")])).rejects.toThrow(RunAlreadyCompletedError);
    await expect(theirs.call("append", "t", [message("ours-1")])).rejects.toThrow(/^RunAlreadyCompletedError/);

    const textsOf = (messages: unknown) => (messages as Message[]).map(textOf);
    const upToSecond = ["ours-2", "theirs-1"];
    expect(textsOf(await ours.snapshot("t", { afterRunId: "theirs-1" }))).toEqual(upToSecond);
    expect(textsOf(await theirs.call("snapshot", "t", "theirs-1"))).toEqual(upToSecond);
    await ours.saveExtra("t", { kept: true });
    await ours.fork("t", "our fork", { afterRunId: "theirs-1", metadata: { by: "🧵", n: null } });
    await theirs.call("fork", "t", "their fork", "theirs-1", { by: "🧵", n: null });
    for (const fork of ["our fork", "their fork"]) {
      const mine = await ours.load(fork);
      expect(mine?.extra).toEqual({ kept: true, fork: { by: "🧵", n: null } });
      expect(mine?.parentThreadId).toBe("t");
      expect(textsOf(mine?.messages ?? [])).toEqual(upToSecond);
      expect(await theirs.call("load", fork)).toEqual({
        messages: asCubeLoop(mine?.messages ?? []),
        extra: mine?.extra,
        parent_thread_id: "t",
      });
      expect((await ours.listRuns(fork)).items.map((run) => [run.runId, run.completionSeq])).toEqual([
        ["ours-2", 1],
        ["theirs-1", 2],
      ]);
    }
    await expect(theirs.call("fork", "t", "our fork", "theirs-1")).rejects.toThrow(/^ThreadAlreadyExistsError/);
  });

  test.each(PENDING.map((request) => [request.payload.kind, request] as const))(
    "a pending %s request of one is that of the other",
    async (_kind, request) => {
      await using ours = await SqliteCheckpointer.open(file);
      await using theirs = new PythonPeer(file);
      await ours.savePendingRequest("ours", request, { runId: "run-1" });
      await theirs.call("save_pending", "theirs", request, "run-1");
      await ours.savePendingRequest("no run", request);
      for (const [thread, runId] of [
        ["ours", "run-1"],
        ["theirs", "run-1"],
        ["no run", null],
      ] as const) {
        expect(await theirs.call("load_pending", thread)).toEqual({ request, run_id: runId });
        expect(await ours.loadPending(thread)).toEqual({ request, runId });
      }
      const questionId = request.question_id;
      expect(await theirs.call("clear_pending_if_matches", "ours", "another", "run-1")).toBe(false);
      expect(await theirs.call("clear_pending_if_matches", "ours", questionId, "run-1")).toBe(true);
      expect(await ours.loadPending("ours")).toBeUndefined();
      expect(await ours.clearPendingRequestIfMatches("theirs", { questionId, runId: "another" })).toBe(false);
      expect(await ours.answerPending("theirs", { questionId, runId: "run-1", answer: { done: true } })).toBe(true);
      expect(await theirs.call("load_pending", "theirs")).toBeNull();
      expect(await theirs.call("load_answer", "theirs", questionId, "run-1")).toEqual({ done: true });
    },
  );

  test("recorded answers of one are those of the other", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    for (const [i, answer] of VALUES.entries()) {
      await ours.saveHitlAnswer("t", `ours ${i}`, answer, { runId: "run-1" });
      await theirs.call("save_answer", "t", `theirs ${i}`, answer, "run-1");
      await theirs.call("save_answer", "t", `no run ${i}`, answer);
      expect(await theirs.call("load_answer", "t", `ours ${i}`, "run-1")).toEqual(answer);
      expect(await ours.loadHitlAnswer("t", `theirs ${i}`, { runId: "run-1" })).toEqual(answer);
      expect(await ours.loadHitlAnswer("t", `no run ${i}`)).toEqual(answer);
      expect(await ours.loadHitlAnswer("t", `theirs ${i}`)).toBeUndefined();
    }
    await theirs.call("clear_answers", "t", ["ours 0"], "run-1");
    expect(await ours.loadHitlAnswer("t", "ours 0", { runId: "run-1" })).toBeUndefined();
    expect(await ours.loadHitlAnswer("t", "ours 1", { runId: "run-1" })).toBe(true);
    await ours.clearHitlAnswers("t", { runId: "run-1" });
    expect(await theirs.call("load_answer", "t", "theirs 1", "run-1")).toBeNull();
    expect(await theirs.call("load_answer", "t", "no run 1")).toBe(true);
  });

  test("ten turns taken in turn on one thread are one conversation in both", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    let revision = 0;
    for (let turn = 0; turn < 10; turn++) {
      const run_id = `run-${turn}`;
      const messages = [userMessage(`question ${turn} 🧵`, { run_id }), assistantMessage(`answer ${turn}`, { run_id })];
      if (turn % 2 === 0) {
        await ours.claimRun("t", run_id);
        revision = await ours.append("t", messages, { expectedRevision: revision });
        await ours.markRunComplete("t", run_id);
      } else {
        await theirs.call("claim_run", "t", run_id);
        await theirs.call("append", "t", messages);
        await theirs.call("mark_run_complete", "t", run_id);
        // What CubeLoop added moves the thread: a program that has not seen it may not append.
        await expect(ours.append("t", messages, { expectedRevision: revision })).rejects.toThrow(ThreadConflictError);
        const tail = await ours.load("t", { after: revision });
        expect(tail?.messages).toEqual(asCubeLoop(messages));
        revision = tail?.revision ?? 0;
      }
    }
    const mine = await ours.load("t");
    const yours = (await theirs.call("load", "t")) as { messages: Message[] };
    const said = Array.from({ length: 10 }, (_, turn) => [`question ${turn} 🧵`, `answer ${turn}`]).flat();
    expect(mine?.messages.map(textOf)).toEqual(said);
    expect(yours.messages).toEqual(asCubeLoop(mine?.messages ?? []));
    const runs = (await ours.listRuns("t")).items.map((run) => [run.runId, run.completionSeq]);
    expect(runs).toEqual(Array.from({ length: 10 }, (_, turn) => [`run-${turn}`, turn + 1]));
    expect(await theirs.call("snapshot", "t", "run-6")).toEqual(
      asCubeLoop(await ours.snapshot("t", { afterRunId: "run-6" })),
    );
  });

  test("processes of both write threads of one new file at once, and nothing is lost", async () => {
    const runs = 15;
    const writer = fileURLToPath(new URL("./writer.ts", import.meta.url));
    const node = ["--experimental-strip-types", "--disable-warning=ExperimentalWarning", writer];
    const threads = ["one", "two", "three"];
    await Promise.all(
      threads.flatMap((thread) => [
        promisify(execFile)(process.execPath, [...node, file, `ours ${thread}`, String(runs)]),
        runPython("writer.py", file, `theirs ${thread}`, String(runs)),
      ]),
    );
    await using ours = await SqliteCheckpointer.open(file);
    const said = Array.from({ length: runs }, (_, i) => [`question ${i}`, `answer ${i}`]).flat();
    for (const thread of threads.flatMap((name) => [`ours ${name}`, `theirs ${name}`])) {
      expect((await ours.load(thread))?.messages.map(textOf)).toEqual(said);
      const seqs = (await ours.listRuns(thread)).items.map((run) => [run.runId, run.completionSeq]);
      expect(new Map(seqs as [string, number][])).toEqual(
        new Map(Array.from({ length: runs }, (_, i) => [`run-${i}`, i + 1])),
      );
    }
    expect(await ours.checkIntegrity()).toEqual([]);
  });

  /** The text of every table and index without differences of white space, and the columns of the tables. */
  function schemaText(path: string): Map<string, unknown> {
    const items = query(path, "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'");
    return new Map(
      items.map(({ type, name, sql }) => [
        `${type} ${name}`,
        {
          sql: String(sql)
            .replace(/\s+/g, " ")
            .replace(/\( /g, "(")
            .replace(/ ([,)])/g, "$1"),
          columns: type === "table" ? query(path, `PRAGMA table_info("${name}")`) : [],
        },
      ]),
    );
  }
  const isOurs = (name: string) => name === "index ix_messages_thread" || /^(table|index) everthread_/.test(name);

  test("the schema that each creates is the same, but for what Everthread adds", async () => {
    const [ours, theirs] = [directory.file("ours.sqlite3"), directory.file("theirs.sqlite3")];
    await (await SqliteCheckpointer.open(ours)).close();
    await using peer = new PythonPeer(theirs);
    await peer.call("load", "t");
    const created = { ours: schemaText(ours), theirs: schemaText(theirs) };
    expect(new Map([...created.ours].filter(([name]) => !isOurs(name)))).toEqual(created.theirs);
    expect(created.ours.get("index ix_messages_thread")).toMatchObject({
      sql: "CREATE INDEX ix_messages_thread ON messages (thread_id, id)",
    });
    // Each opens the other's: CubeLoop changes nothing, Everthread adds what is its own.
    await using other = new PythonPeer(ours);
    await other.call("load", "t");
    expect(schemaText(ours)).toEqual(created.ours);
    await (await SqliteCheckpointer.open(theirs)).close();
    expect(schemaText(theirs)).toEqual(created.ours);
    for (const pragma of ["encoding", "auto_vacuum", "journal_mode", "user_version", "application_id", "page_size"]) {
      expect(query(ours, `PRAGMA ${pragma}`)).toEqual(query(theirs, `PRAGMA ${pragma}`));
    }
  });

  test.each(NAMES)("golden file %s, opened and continued by Everthread, is whole in CubeLoop", async (name) => {
    const path = directory.golden(name);
    await using ours = await SqliteCheckpointer.open(path);
    const added = [userMessage("go on 🧵", { run_id: "ours" }), assistantMessage("gone on", { run_id: "ours" })];
    await using theirs = new PythonPeer(path);
    for (const [thread, expected] of expectedOf(name)) {
      await ours.claimRun(thread, "ours");
      await ours.append(thread, added);
      await ours.markRunComplete(thread, "ours");
      const loaded = await theirs.call("load", thread);
      expect(loaded).toEqual({
        messages: [...asCubeLoop([...expected.messages, ...added])],
        extra: expected.extra,
        parent_thread_id: expected.parent_thread_id,
      });
      expect(await theirs.call("load_pending", thread)).toEqual(expected.pending);
      for (const { question_id, run_id, answer } of expected.answers) {
        expect(await theirs.call("load_answer", thread, question_id, run_id)).toEqual(answer);
      }
    }
  });

  test("values as deep as CubeLoop reads them are read by both; deeper ones only by Everthread", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    const nested = (depth: number) => Array.from({ length: depth }).reduce<JsonValue>((inner) => [inner], "x");
    for (const depth of [254, 255]) {
      const message = toolResultMessage({ id: "c", name: "t" }, "deep", { details: nested(depth) });
      await ours.append(`depth ${depth}`, [message]);
      expect((await ours.load(`depth ${depth}`))?.messages).toEqual([message]);
    }
    expect(await theirs.call("load", "depth 254")).toMatchObject({ messages: [{ details: nested(254) }] });
    await expect(theirs.call("load", "depth 255")).rejects.toThrow(/^CheckpointCorruptionError/);
  });
});
