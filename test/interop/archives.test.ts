/** Compacted threads and the real CubeLoop, which knows no archives, on one file. */
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { PythonPeer, python, pythonLabel } from "../support/python.ts";
import { TestDirectory } from "./files.ts";

/** What a Python program does that erases a thread by SQL, since CubeLoop has no call for that. */
const ERASE = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for table in ("messages", "thread_extra", "runs", "thread_pending_request", "thread_hitl_answers"):
    db.execute(f"DELETE FROM {table} WHERE thread_id = ?", (sys.argv[2],))
db.commit()
`;

describe.skipIf(python.path === null)(`with Python (${pythonLabel})`, () => {
  let directory: TestDirectory;
  let file: string;
  beforeEach(() => {
    directory = new TestDirectory();
    file = directory.file("shared.sqlite3");
  });
  afterEach(() => directory[Symbol.dispose]());

  const words = (texts: string[], run_id: string | null = null) => texts.map((text) => userMessage(text, { run_id }));
  const load = async (peer: PythonPeer, thread: string) =>
    ((await peer.call("load", thread)) as { messages: Message[] } | null)?.messages.map(textOf);
  const found = async (store: SqliteCheckpointer, query: string) =>
    (await store.archives.search(query)).hits.map(({ thread_id, preview }) => [thread_id, preview]);

  test("CubeLoop reads all of a compacted thread, goes on with it, and Everthread goes on after that", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    const revision = await ours.append("t", words(["needle one", "two", "three"]));
    await ours.archives.compact("t", { upTo: revision - 1, summary: "one and two" });
    expect(await load(theirs, "t")).toEqual(["needle one", "two", "three"]);
    await theirs.call("append", "t", words(["needle four"]));
    await theirs.call("save_extra", "t", { theirs: 1 });
    const loaded = await ours.load("t", { after: revision });
    expect(loaded).toMatchObject({ summary: "one and two", kept: 0, tail: true, extra: { theirs: 1 } });
    expect(loaded?.messages.map(textOf)).toEqual(["needle four"]);
    expect(await found(ours, "needle")).toEqual([["t", "needle one"]]);
    await ours.archives.compact("t", { upTo: loaded?.revision ?? 0, summary: "all" });
    expect(await found(ours, "needle")).toEqual([
      ["t", "needle four"],
      ["t", "needle one"],
    ]);
    await ours.archives.prune("t", { keep: 1 });
    expect(await load(theirs, "t")).toEqual(["three", "needle four"]);
  });

  test("a fork that CubeLoop makes holds all of the messages, and no archives", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    await ours.claimRun("t", "run");
    const revision = await ours.append("t", words(["needle one", "two"], "run"));
    await ours.markRunComplete("t", "run");
    await ours.archives.compact("t", { upTo: revision, summary: "all" });
    await theirs.call("fork", "t", "fork", "run");
    const fork = await ours.load("fork");
    expect([fork?.messages.map(textOf), fork?.summary]).toEqual([["needle one", "two"], undefined]);
    expect((await ours.archives.list("fork")).items).toEqual([]);
    expect(await found(ours, "needle")).toEqual([["t", "needle one"]]);
  });

  test("G12 what Python deletes is gone, and a thread that CubeLoop begins anew is whole", async () => {
    await using ours = await SqliteCheckpointer.open(file);
    await using theirs = new PythonPeer(file);
    for (const thread of ["t", "kept"]) {
      const upTo = await ours.append(thread, words([`ghost of ${thread}`, "and more"]));
      await ours.archives.compact(thread, { upTo, summary: `summary of ${thread}` });
    }
    execFileSync(python.path ?? "", ["-c", ERASE, file, "t"]);
    expect(await ours.load("t")).toBeUndefined();
    expect((await ours.listThreads()).items.map(({ threadId }) => threadId)).toEqual(["kept"]);
    expect(await found(ours, "ghost")).toEqual([["kept", "ghost of kept"]]);
    await theirs.call("append", "t", words(["anew", "and on"]));
    const loaded = await ours.load("t");
    expect([loaded?.messages.map(textOf), loaded?.summary]).toEqual([["anew", "and on"], undefined]);
    const { archiveId, messageCount } = await ours.archives.compact("t", {
      upTo: loaded?.revision ?? 0,
      summary: "new",
    });
    expect([archiveId, messageCount]).toEqual(["a1", 2]);
    expect(await found(ours, "ghost")).toEqual([["kept", "ghost of kept"]]);
    expect(await found(ours, "anew")).toEqual([["t", "anew"]]);
    expect(await ours.checkIntegrity()).toEqual([]);
  });
});
