/** Everthread and the real CubeLoop on one Postgres: what one writes the other reads. */
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { RunAlreadyClaimedError, RunAlreadyCompletedError } from "../../src/checkpoint/errors.ts";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
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
import { makeDatabase, sql, type TestDatabase } from "../support/postgres.ts";
import { PythonPeer, pythonWith } from "../support/python.ts";

const asyncpg = pythonWith("asyncpg");
const VALUES: JsonValue[] = [
  ...[null, true, false, 0, -1, 1.5, 0.1, 1e300, 5e-324, 1e21, 2 ** 53, "", "text", "🧵 crème"],
  ...[[], {}, [null], [[[]], { a: {} }], { a: null, b: [], c: {} }, { zeta: 1, a: 2, "10": 3, "": 5, "😀": 7 }],
];
const EXTRA: JsonObject = Object.fromEntries(VALUES.map((value, i) => [`value ${i}`, value]));

/** Messages of every kind and block. U+0000 is in the content only: CubeLoop can't write it into metadata. */
const EVERY_KIND: Message[] = [
  userMessage("plain nul \0 after"),
  userMessage([text("with a picture"), image("iVBORw0KGgo=", "image/png")], { metadata: EXTRA, timestamp: null }),
  assistantMessage(
    [
      thinking(" hm\n"),
      text("I call."),
      ...VALUES.map((value, i) => toolCall(`call_${i}`, "t\0", { value, "k\0": 1 })),
    ],
    {
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 },
    },
  ),
  ...VALUES.map((details, i) =>
    toolResultMessage({ id: `call_${i}`, name: "t" }, "ok", { details, is_error: i % 2 === 1 }),
  ),
  assistantMessage([], { stop_reason: "error", error_message: "overloaded", timestamp: 0 }),
];

// What CubeLoop fills in for fields that a row lacks.
const COMMON = { id: "", timestamp: null, metadata: {}, run_id: null };
const NONE = {
  error_type: null,
  error_code: null,
  status_code: null,
  retry_after: null,
  tokens_in: null,
  context_window: null,
};
const DEFAULTS: Record<Message["role"], JsonObject> = {
  user: COMMON,
  assistant: { ...COMMON, ...NONE },
  tool_result: COMMON,
};
const asCubeLoop = (messages: readonly Message[]) =>
  messages.map((message) => ({ ...DEFAULTS[message.role], ...message }));

describe.skipIf(!asyncpg.found)(`with Python (${asyncpg.label})`, async () => {
  if (!asyncpg.found) return;
  const database: TestDatabase = await makeDatabase();
  const ours = await PostgresCheckpointer.open(database.url);
  const theirs = new PythonPeer(database.url, "postgres_peer.py");
  afterAll(async () => {
    await ours.close();
    await theirs[Symbol.asyncDispose]();
    await database.drop();
  });
  beforeEach(() => sql(database.url, "DELETE FROM cubepi_threads"));

  test("messages of every kind that Everthread wrote are the same in CubeLoop, and go on there", async () => {
    await ours.append("t", EVERY_KIND);
    const loaded = (await theirs.call("load", "t")) as { messages: Message[]; extra: JsonObject };
    expect(loaded.messages).toEqual(asCubeLoop(EVERY_KIND));
    expect(loaded.extra).toEqual({});
    const before = (await ours.load("t"))?.revision ?? 0;
    await theirs.call("append", "t", [userMessage("theirs")]);
    const tail = await ours.load("t", { after: before });
    expect([tail?.messages.map(textOf), tail?.revision, tail?.tail]).toEqual([["theirs"], before + 1, true]);
  });

  test("messages of every kind that CubeLoop wrote are the same in Everthread, and go on there", async () => {
    await theirs.call("append", "t", EVERY_KIND);
    const loaded = await ours.load("t");
    expect(loaded?.messages).toEqual(asCubeLoop(EVERY_KIND));
    const revision = loaded?.revision ?? 0;
    expect(await ours.append("t", [userMessage("ours")], { expectedRevision: revision })).toBe(revision + 1);
    expect(((await theirs.call("load", "t")) as { messages: Message[] }).messages).toHaveLength(EVERY_KIND.length + 1);
  });

  test("metadata that SQL changed is what both show", async () => {
    await ours.append("t", [userMessage("hi", { metadata: { a: 1 } })]);
    await sql(database.url, "UPDATE cubepi_messages SET metadata = metadata || '{\"seen\": true}'");
    const metadata = { a: 1, seen: true };
    expect(await theirs.call("load", "t")).toMatchObject({ messages: [{ metadata }] });
    expect((await ours.load("t"))?.messages[0]?.metadata).toEqual(metadata);
  });

  test("extra is one for both, merged key by key", async () => {
    await ours.saveExtra("t", { ...EXTRA, both: "ours", ours: 1 });
    await theirs.call("save_extra", "t", { both: "theirs", theirs: { a: [1.5, null] } });
    const merged = { ...EXTRA, both: "theirs", ours: 1, theirs: { a: [1.5, null] } };
    expect((await ours.load("t"))?.extra).toEqual(merged);
    expect(await theirs.call("load", "t")).toEqual({ messages: [], extra: merged, parent_thread_id: null });
  });

  test("runs, snapshots and forks of one are those of the other", async () => {
    const message = (run_id: string) => userMessage(run_id, { run_id });
    await ours.claimRun("t", "ours");
    await ours.append("t", [message("ours")]);
    await theirs.call("claim_run", "t", "theirs");
    await theirs.call("append", "t", [message("theirs")]);
    await expect(ours.claimRun("t", "theirs")).rejects.toThrow(RunAlreadyClaimedError);
    await theirs.call("mark_run_complete", "t", "ours");
    await ours.markRunComplete("t", "theirs");
    await expect(ours.append("t", [message("ours")])).rejects.toThrow(RunAlreadyCompletedError);
    await expect(theirs.call("append", "t", [message("theirs")])).rejects.toThrow(/^RunAlreadyCompletedError/);
    const seqs = (await ours.listRuns("t")).items.map((run) => [run.runId, run.completionSeq]);
    expect(seqs).toEqual([
      ["ours", 1],
      ["theirs", 2],
    ]);
    const said = (messages: unknown) => (messages as Message[]).map(textOf);
    expect(said(await theirs.call("snapshot", "t", "ours"))).toEqual(
      said(await ours.snapshot("t", { afterRunId: "ours" })),
    );
    await ours.saveExtra("t", { kept: true });
    await ours.fork("t", "our fork", { afterRunId: "theirs", metadata: { by: "🧵" } });
    await theirs.call("fork", "t", "their fork", "theirs", { by: "🧵" });
    for (const fork of ["our fork", "their fork"]) {
      const mine = await ours.load(fork);
      expect([said(mine?.messages), mine?.extra, mine?.parentThreadId]).toEqual([
        ["ours", "theirs"],
        { kept: true, fork: { by: "🧵" } },
        "t",
      ]);
      expect(await theirs.call("load", fork)).toEqual({
        messages: asCubeLoop(mine?.messages ?? []),
        extra: mine?.extra,
        parent_thread_id: "t",
      });
    }
    await expect(theirs.call("fork", "t", "our fork", "theirs")).rejects.toThrow(/^ThreadAlreadyExistsError/);
  });

  test("CubeLoop sees the whole log of a compacted thread, goes on in it and forks it; here the summary stands", async () => {
    const archives = ours.archives;
    if (!archives) throw new Error("No archives.");
    await ours.claimRun("t", "run");
    const said = (text: string) => userMessage(text, { run_id: "run" });
    const revision = await ours.append("t", [said("old"), said("older"), said("kept")]);
    await archives.compact("t", { upTo: revision - 1, summary: "two words" });
    const textsOf = (loaded: unknown) => (loaded as { messages: Message[] }).messages.map(textOf);
    expect(textsOf(await theirs.call("load", "t"))).toEqual(["old", "older", "kept"]);
    await theirs.call("append", "t", [said("theirs")]);
    expect(await ours.load("t", { after: revision })).toMatchObject({
      tail: true,
      summary: "two words",
      messages: { length: 1 },
    });
    await theirs.call("mark_run_complete", "t", "run");
    await theirs.call("fork", "t", "their fork", "run");
    // A fork of theirs has the messages and no archives; one of ours has both.
    await ours.fork("t", "our fork", { afterRunId: "run" });
    const forks = [await ours.load("their fork"), await ours.load("our fork")];
    expect(forks.map((fork) => [fork?.messages.length, fork?.summary])).toEqual([
      [4, undefined],
      [2, "two words"],
    ]);
    expect(textsOf(await theirs.call("load", "our fork"))).toEqual(["old", "older", "kept", "theirs"]);
  });

  test("a thread that Everthread deleted is gone in CubeLoop, and no revision repeats when CubeLoop begins it anew", async () => {
    const old = await ours.append("t", [userMessage("1"), userMessage("2")]);
    await ours.deleteThread("t");
    expect(await theirs.call("load", "t")).toBeNull();
    await theirs.call("append", "t", [userMessage("1"), userMessage("2")]);
    await expect(ours.append("t", [userMessage("late")], { expectedRevision: old })).rejects.toMatchObject({
      code: "thread_conflict",
    });
    expect((await ours.load("t"))?.revision).toBeGreaterThan(old);
  });

  test("pending requests and recorded answers of one are those of the other", async () => {
    const request = {
      question_id: "call_0",
      thread_id: "t",
      payload: {
        kind: "approve" as const,
        tool_name: "t",
        tool_call_id: "call_0",
        args: EXTRA,
        details: { why: "🧵" },
      },
      created_at: 1750000000.25,
      timeout_seconds: 1.5,
    };
    await ours.savePendingRequest("ours", request, { runId: "run-1" });
    await theirs.call("save_pending", "theirs", request, "run-1");
    for (const thread of ["ours", "theirs"]) {
      expect(await theirs.call("load_pending", thread)).toEqual({ request, run_id: "run-1" });
      expect(await ours.loadPending(thread)).toEqual({ request, runId: "run-1" });
    }
    expect(await theirs.call("clear_pending_if_matches", "ours", "call_0", "run-1")).toBe(true);
    expect(await ours.loadPending("ours")).toBeUndefined();
    const answer = { questionId: "call_0", runId: "run-1", answer: { done: true } };
    expect(await ours.answerPending("theirs", answer)).toBe(true);
    expect(await theirs.call("load_pending", "theirs")).toBeNull();
    expect(await theirs.call("load_answer", "theirs", "call_0", "run-1")).toEqual({ done: true });
    for (const [i, value] of VALUES.entries()) {
      await ours.saveHitlAnswer("t", `ours ${i}`, value, { runId: "run-1" });
      await theirs.call("save_answer", "t", `theirs ${i}`, value);
      expect(await theirs.call("load_answer", "t", `ours ${i}`, "run-1")).toEqual(value);
      expect(await ours.loadHitlAnswer("t", `theirs ${i}`)).toEqual(value);
    }
  });
});
