/** Everthread and the real CubeLoop on one MySQL database: what one writes the other reads, in turns and at once. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MySQLCheckpointer, migrate } from "../../src/checkpoint/mysql/checkpointer.ts";
import type { PendingRequest } from "../../src/checkpoint/pending.ts";
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
import { hasMysql, mysqlLabel, type TestDatabase, testDatabase } from "../support/mysql.ts";
import { CubeloopPeer, cubeloopLabel, cubeloopSchema, hasCubeloop } from "./cubeloop.ts";

const VALUES: JsonValue[] = [
  ...[null, true, false, 0, -1, 1.5, 0.1, 1e300, 5e-324, 1e21, 2 ** 53, "", "nul \0", "🧵 é é"],
  ...[[], {}, [null], [[[]], { a: {} }], { zeta: 1, a: 2, "10": 3, "": 4, "\0": 5, "😀": 6 }],
];
const EXTRA = Object.fromEntries(VALUES.map((value, i) => [`value ${i}`, value]));
const EVERY_KIND: Message[] = [
  userMessage([text("with a picture"), image("iVBORw0KGgo=", "image/png")], { metadata: EXTRA }),
  assistantMessage(
    [thinking(" hm\n"), text("I call."), ...VALUES.map((value, i) => toolCall(`c${i}`, "t", { value }))],
    {
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 },
    },
  ),
  ...VALUES.map((details, i) =>
    toolResultMessage({ id: `c${i}`, name: "t" }, "ok", { details, is_error: i % 2 === 1 }),
  ),
  assistantMessage([], { stop_reason: "error", error_message: "overloaded", timestamp: 0 }),
];
const REQUEST: PendingRequest = {
  question_id: "call_0",
  thread_id: "t",
  payload: { kind: "approve", tool_name: "t", tool_call_id: "call_0", args: EXTRA, details: { why: "🧵" } },
  created_at: 1750000000.25,
  timeout_seconds: 1.5,
};
type Loaded = { messages: Message[]; extra: JsonObject; parent_thread_id: string | null };

const label = `${hasMysql ? cubeloopLabel : mysqlLabel}`;
describe.skipIf(!hasMysql || !hasCubeloop)(`with CubeLoop on MySQL (${label})`, () => {
  let ownTables: TestDatabase;
  let theirTables: TestDatabase;
  beforeAll(async () => {
    ownTables = await testDatabase();
    theirTables = await testDatabase({ tables: false, create: "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" });
    for (const statement of await cubeloopSchema()) await theirTables.sql(statement);
    await migrate(theirTables.url);
  });
  beforeEach(() => Promise.all([ownTables.empty(), theirTables.empty()]));
  afterAll(async () => {
    await ownTables[Symbol.asyncDispose]();
    await theirTables[Symbol.asyncDispose]();
  });

  describe.each(["Everthread's", "CubeLoop's"])("tables that are %s", (whose) => {
    const url = () => (whose === "CubeLoop's" ? theirTables : ownTables).url;

    test("messages of every kind that one wrote are the same in the other", async () => {
      await using ours = await MySQLCheckpointer.open(url());
      await using theirs = new CubeloopPeer(url());
      await ours.append("ours", EVERY_KIND);
      const loaded = (await theirs.call("load", "ours")) as Loaded;
      expect(loaded.messages).toMatchObject(EVERY_KIND as unknown as object[]);
      await theirs.call("append", "theirs", EVERY_KIND);
      expect((await ours.load("theirs"))?.messages).toMatchObject(EVERY_KIND as unknown as object[]);
    });

    test("extra is one for both, merged by top-level keys: null stays, and objects are replaced", async () => {
      await using ours = await MySQLCheckpointer.open(url());
      await using theirs = new CubeloopPeer(url());
      await ours.saveExtra("t", { ...EXTRA, both: { ours: 1, gone: 1 } });
      await theirs.call("save_extra", "t", { both: { theirs: [1.5, null] }, theirs: null });
      const merged = { ...EXTRA, both: { theirs: [1.5, null] }, theirs: null };
      expect((await ours.load("t"))?.extra).toEqual(merged);
      await ours.saveExtra("t", { both: { again: null } });
      expect(((await theirs.call("load", "t")) as Loaded).extra).toEqual({ ...merged, both: { again: null } });
    });

    test("CubeLoop sees the whole log of a compacted thread, goes on in it and forks it; here the summary stands", async () => {
      await using ours = await MySQLCheckpointer.open(url());
      await using theirs = new CubeloopPeer(url());
      await ours.claimRun("t", "run");
      const said = (words: string) => userMessage(words, { run_id: "run" });
      const revision = await ours.append("t", [said("old"), said("older"), said("kept")]);
      await ours.archives?.compact("t", { upTo: revision - 1, summary: "two words" });
      const textsOf = (loaded: unknown) => (loaded as Loaded).messages.map(textOf);
      expect(textsOf(await theirs.call("load", "t"))).toEqual(["old", "older", "kept"]);
      await theirs.call("append", "t", [said("theirs")]);
      const tail = await ours.load("t", { after: revision });
      expect(tail).toMatchObject({ tail: true, summary: "two words", messages: { length: 1 } });
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

    test("runs, snapshots and forks of one are those of the other, and completion numbers go on", async () => {
      await using ours = await MySQLCheckpointer.open(url());
      await using theirs = new CubeloopPeer(url());
      for (const runId of ["ours-1", "ours-2"]) {
        await ours.claimRun("t", runId);
        await ours.append("t", [userMessage(runId, { run_id: runId })]);
      }
      await theirs.call("claim_run", "t", "theirs-1");
      await theirs.call("append", "t", [userMessage("theirs-1", { run_id: "theirs-1" })]);
      await theirs.call("mark_run_complete", "t", "ours-2");
      await ours.markRunComplete("t", "theirs-1");
      expect((await ours.listRuns("t")).items.map((run) => [run.runId, run.completionSeq])).toEqual([
        ["ours-1", null],
        ["ours-2", 1],
        ["theirs-1", 2],
      ]);
      await expect(theirs.call("claim_run", "t", "ours-2")).rejects.toThrow(/^RunAlreadyCompletedError/);
      await expect(ours.append("t", [userMessage("x", { run_id: "theirs-1" })])).rejects.toMatchObject({
        code: "run_already_completed",
      });
      await ours.saveExtra("t", { kept: true });
      await ours.fork("t", "our fork", { afterRunId: "theirs-1", metadata: { by: "🧵" } });
      await theirs.call("fork", "t", "their fork", "theirs-1", { by: "🧵" });
      const upTo = ["ours-2", "theirs-1"];
      expect(((await theirs.call("snapshot", "t", "theirs-1")) as Message[]).map(textOf)).toEqual(upTo);
      for (const fork of ["our fork", "their fork"]) {
        const mine = await ours.load(fork);
        const other = (await theirs.call("load", fork)) as Loaded;
        expect([mine?.messages.map(textOf), other.messages.map(textOf)]).toEqual([upTo, upTo]);
        expect([mine?.extra, other.extra]).toEqual([mine?.extra, { kept: true, fork: { by: "🧵" } }]);
        expect([mine?.parentThreadId, other.parent_thread_id]).toEqual(["t", "t"]);
      }
      await expect(theirs.call("fork", "t", "our fork", "theirs-1")).rejects.toThrow(/^ThreadAlreadyExistsError/);
      await theirs.call("append", "our fork", [userMessage("goes on")]);
      expect((await ours.load("our fork"))?.messages.map(textOf)).toEqual([...upTo, "goes on"]);
    });

    test("a pending request and an answer of one are those of the other", async () => {
      await using ours = await MySQLCheckpointer.open(url());
      await using theirs = new CubeloopPeer(url());
      await ours.savePendingRequest("ours", REQUEST, { runId: "run-1" });
      await theirs.call("save_pending", "theirs", REQUEST, "run-1");
      for (const thread of ["ours", "theirs"]) {
        expect(await theirs.call("load_pending", thread)).toEqual({ request: REQUEST, run_id: "run-1" });
        expect(await ours.loadPending(thread)).toEqual({ request: REQUEST, runId: "run-1" });
      }
      expect(await theirs.call("clear_pending_if_matches", "ours", "call_0", "run-1")).toBe(true);
      const match = { questionId: "call_0", runId: "run-1", answer: false };
      expect(await ours.answerPending("theirs", match)).toBe(true);
      expect(await theirs.call("load_pending", "theirs")).toBeNull();
      expect(await theirs.call("load_answer", "theirs", "call_0", "run-1")).toBe(false);
      await theirs.call("save_answer", "theirs", "q", { choice: [1, null] }, "run-1");
      expect(await ours.loadHitlAnswer("theirs", "q", { runId: "run-1" })).toEqual({ choice: [1, null] });
    });

    test("both append to one thread at once: no gap, nothing lost, in each writer's order, and none fails", async () => {
      await using ours = await MySQLCheckpointer.open(url());
      const peers = ["theirs0", "theirs1"].map((name) => ({ name, peer: new CubeloopPeer(url()) }));
      const append = async (name: string) => {
        for (let i = 0; i < 40; i++) await ours.append("t", [userMessage(`${name} ${i}`)]);
      };
      await Promise.all([
        ...peers.map(({ name, peer }) => peer.call("append_many", "t", name, 40)),
        ...["ours0", "ours1"].map(append),
      ]);
      for (const { peer } of peers) await peer[Symbol.asyncDispose]();
      const { items } = await ours.listMessages("t", { limit: 1000 });
      const first = items[0]?.position ?? 0;
      expect(items.map(({ position }) => position - first)).toEqual(Array.from({ length: 160 }, (_, i) => i));
      const said = items.map(({ message }) => textOf(message ?? userMessage("damaged")));
      for (const name of ["ours0", "ours1", "theirs0", "theirs1"]) {
        const own = said.filter((line) => line.startsWith(`${name} `));
        expect(own).toEqual(Array.from({ length: 40 }, (_, i) => `${name} ${i}`));
      }
    });
  });

  test("what SQL edits in the column metadata, load shows", async () => {
    await using ours = await MySQLCheckpointer.open(ownTables.url);
    await ours.append("t", [
      userMessage("hi", { metadata: { b: 1, a: 2 } }),
      userMessage("two", { metadata: { b: 1, a: 2 } }),
    ]);
    await ownTables.sql(`UPDATE cubepi_messages SET metadata = '{"edited": true}' WHERE thread_id = 't' AND seq = 1`);
    const metadata = (await ours.load("t"))?.messages.map((message) => JSON.stringify(message.metadata));
    expect(metadata).toEqual(['{"edited":true}', '{"b":1,"a":2}']);
  });
});
