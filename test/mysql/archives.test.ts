/** Archives on MySQL beside what the conformance suite asks: tables that CubeLoop made, deletions by SQL, and deaths on the way. */
import { randomBytes } from "node:crypto";
import { createPool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ConnectionLostError } from "../../src/checkpoint/errors.ts";
import { MySQLCheckpointer, migrate } from "../../src/checkpoint/mysql/checkpointer.ts";
import { assistantMessage, textOf, userMessage } from "../../src/messages/construct.ts";
import { ended, startChild } from "../support/child.ts";
import { hasMysql, mysqlLabel, type TestDatabase, testDatabase } from "../support/mysql.ts";
import { TcpProxy } from "../support/proxy.ts";
import { cubeloopSchema, hasCubeloop } from "./cubeloop.ts";

/** EVERTHREAD_FULL=1 kills at every answer. */
const STEP = process.env.EVERTHREAD_FULL === "1" ? 1 : 3;
const COMPACTOR = new URL("./compactor.ts", import.meta.url);
const said = (count: number, from = 1) => Array.from({ length: count }, (_, i) => userMessage(`word ${i + from}`));
const newId = () => randomBytes(6).toString("hex");

function archivesOf(store: MySQLCheckpointer) {
  if (!store.archives) throw new Error("The store keeps no archives.");
  return store.archives;
}

/** A thread of eight messages, the first five set aside. */
async function compacted(store: MySQLCheckpointer, thread: string): Promise<number> {
  const revision = await store.append(thread, said(8));
  await archivesOf(store).compact(thread, { upTo: revision - 3, summary: "five words" });
  return revision;
}

async function texts(store: MySQLCheckpointer, thread: string): Promise<string[]> {
  return ((await store.load(thread))?.messages ?? []).map(textOf);
}

describe.skipIf(!hasMysql)(`archives on MySQL (${mysqlLabel})`, () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test("without their tables a store works as before, says what to run, and creates nothing", async () => {
    await using bare = await testDatabase({ tables: "shared" });
    await using store = await MySQLCheckpointer.open(bare.url);
    expect(store.capabilities.archives).toEqual({
      reason: expect.stringMatching(
        /no table everthread_archives.*`everthread migrate <url> --apply`.*archiveSchemaSql\(\)/,
      ),
    });
    expect(store.capabilities.search).toEqual(store.capabilities.archives);
    expect(store.archives).toBeUndefined();
    await store.claimRun("t", "r");
    const revision = await store.append("t", [userMessage("hi", { run_id: "r" })]);
    await store.markRunComplete("t", "r");
    await store.fork("t", "fork", { afterRunId: "r" });
    expect((await store.load("fork", { after: 0 }))?.tail).toBe(true);
    expect(await store.snapshot("t", { afterRunId: "r" })).toHaveLength(1);
    const part = { messageCount: 1, summary: "", system: null, extra: {}, prunedAt: null };
    const archives = [{ ...part, archiveId: "a1", createdAt: new Date() }];
    await expect(store.importThread("t", { archives })).rejects.toMatchObject({ code: "unsupported" });
    expect(await store.importThread("t", { archives: [] })).toBe(revision);
    expect(await store.deleteThread("fork")).toBe(true);
    expect(await bare.sql("SHOW TABLES LIKE 'everthread%'")).toEqual([]);
    await migrate(bare.url);
    await using later = await MySQLCheckpointer.open(bare.url);
    await archivesOf(later).compact("t", { upTo: revision, summary: "all" });
    // The one that was opened before goes on as it is, and sees the whole log.
    expect([await texts(store, "t"), await texts(later, "t")]).toEqual([["hi"], []]);
  });

  test("with a prefix of the host's", async () => {
    const names = { tablePrefix: "talk_" };
    await migrate(database.url, names);
    await using store = await MySQLCheckpointer.open(database.url, names);
    await compacted(store, "t");
    expect(await texts(store, "t")).toEqual(["word 6", "word 7", "word 8"]);
    expect((await archivesOf(store).search("word 2")).hits).toHaveLength(1);
    expect(await database.sql("SELECT archive_no FROM talk_archives")).toEqual([{ archive_no: 1 }]);
  });

  test.skipIf(!hasCubeloop)("in tables that CubeLoop made, whose ids are compared otherwise than ours", async () => {
    await using theirs = await testDatabase({
      tables: false,
      create: "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    });
    for (const statement of await cubeloopSchema()) await theirs.sql(statement);
    await migrate(theirs.url);
    await using store = await MySQLCheckpointer.open(theirs.url);
    const archives = archivesOf(store);
    for (const id of ["Ä", "b"]) {
      await store.claimRun(id, "run");
      await store.append(id, [
        userMessage(`asked in ${id}`, { run_id: "run" }),
        assistantMessage("said", { run_id: "run" }),
      ]);
      await store.markRunComplete(id, "run");
      const revision = await store.append(id, [userMessage("later")]);
      await archives.compact(id, { upTo: revision - 1, summary: `of ${id}` });
      await store.fork(id, `${id} fork`, { afterRunId: "run" });
      expect((await store.load(`${id} fork`))?.summary).toBe(`of ${id}`);
    }
    const inAll = (await archives.search("ASKED")).hits.map((hit) => hit.thread_id);
    expect(inAll.sort()).toEqual(["b", "b fork", "Ä", "Ä fork"].sort());
    expect((await archives.search("asked", { threadId: "Ä" })).hits).toHaveLength(1);
    expect((await archives.search("asked", { threadId: "ä" })).hits).toEqual([]);
    expect((await archives.list("B")).items).toEqual([]);
    await expect(archives.compact("B", { upTo: 1, summary: "" })).rejects.toMatchObject({ code: "thread_not_found" });
    expect(await archives.prune("b", { keep: 1 })).toEqual({ pruned: [], protected: [] });
    await store.deleteThread("b");
    expect((await archives.search("asked in b")).hits.map((hit) => hit.thread_id)).toEqual(["b fork"]);
  });

  test.each([
    ["S12 S14 a thread deleted by SQL that leaves its archives", ["messages", "runs", "threads"]],
    ["only its messages deleted by SQL", ["messages"]],
  ])("%s, and begun anew: what is written is never hidden, and no archive comes back", async (_what, tables) => {
    const id = newId();
    await using store = await MySQLCheckpointer.open(database.url);
    await store.claimRun(id, "r");
    await compacted(store, id);
    // It was long ago.
    await database.sql("UPDATE cubepi_messages SET created_at = created_at - INTERVAL 1 DAY WHERE thread_id = ?", [id]);
    const aged =
      "UPDATE everthread_archives SET up_to_created_at = up_to_created_at - INTERVAL 1 DAY WHERE thread_id = ?";
    await database.sql(aged, [id]);
    expect((await store.load(id))?.summary).toBe("five words");
    for (const table of tables) await database.sql(`DELETE FROM cubepi_${table} WHERE thread_id = ?`, [id]);
    const archives = archivesOf(store);
    // Fewer than were archived, exactly so many, and more.
    for (const count of [3, 5, 9]) {
      const have = (await texts(store, id)).length;
      await store.append(id, said(count - have, 101 + have));
      const loaded = await store.load(id);
      expect([loaded?.messages.length, loaded?.summary, loaded?.compactedUpTo]).toEqual([count, undefined, undefined]);
      expect((await archives.list(id)).items).toEqual([]);
      await expect(archives.read(id, "a1")).rejects.toMatchObject({ code: "archive_not_found" });
      expect((await archives.search("word", { threadId: id })).hits).toEqual([]);
      expect((await archives.search("word 10")).hits.filter((hit) => hit.thread_id === id)).toEqual([]);
      expect(await archives.prune(id, { keep: 1 })).toEqual({ pruned: [], protected: [] });
    }
    const upTo = (await store.load(id))?.revision ?? 0;
    expect(await archives.compact(id, { upTo, summary: "new" })).toMatchObject({ archiveId: "a1", messageCount: 9 });
    expect((await archives.search("word 10", { threadId: id, limit: 100 })).hits).toHaveLength(9);
    await store.deleteThread(id);
    expect(await database.sql("SELECT 1 FROM everthread_archives WHERE thread_id = ?", [id])).toEqual([]);
  });

  test("old messages deleted by SQL, as a host's retention does: the summary stands for them all the same", async () => {
    const id = newId();
    await using store = await MySQLCheckpointer.open(database.url);
    await compacted(store, id);
    await database.sql("DELETE FROM cubepi_messages WHERE thread_id = ? ORDER BY seq LIMIT 6", [id]);
    expect(await store.load(id)).toMatchObject({ summary: "five words", messages: { length: 2 } });
    expect((await archivesOf(store).search("word", { threadId: id })).hits).toEqual([]);
  });

  test("D13 killed at answers of the server, a compaction is there or not, and made again it is there once", async () => {
    for (let n = 1, killed = true; killed; n += STEP) {
      const id = newId();
      await using store = await MySQLCheckpointer.open(database.url);
      const revision = await store.append(id, said(8));
      await using proxy = await TcpProxy.before(database.url);
      killed = false;
      const child = startChild(COMPACTOR, [proxy.url(database.url), id, String(revision - 3)]);
      proxy.loseAnswer(n, async () => {
        killed = true;
        child.kill("SIGKILL");
      });
      const { code, stderr } = await ended(child);
      expect([code, stderr]).toEqual([killed ? null : 0, ""]);

      const archives = archivesOf(store);
      // The server may be ending what the dead process had begun; whoever writes waits for that.
      const again = await archives
        .compact(id, { upTo: revision - 3, summary: "again" })
        .catch((error: unknown) => error);
      const [first] = (await archives.list(id)).items;
      if (first?.summary === "by the child") expect(again).toMatchObject({ code: "compaction_conflict" });
      else expect(again).toMatchObject({ archiveId: "a1", summary: "again" });
      expect((await archives.list(id)).items).toHaveLength(1);
      expect(await texts(store, id)).toEqual(["word 6", "word 7", "word 8"]);
      const archived = (await archives.read(id, "a1")).messages.map(({ message }) => message && textOf(message));
      expect(archived).toEqual(said(5).map(textOf));
      for (let word = 1; word <= 8; word++) {
        const { hits } = await archives.search(`word ${word}`, { threadId: id });
        expect(hits.map((hit) => hit.preview)).toEqual(word <= 5 ? [`word ${word}`] : []);
      }
      if (!killed) expect(n).toBeGreaterThan(5);
    }
  }, 120_000);

  test("C11 the answer to a compaction's commit is lost: that is said, and a second try says that the first one succeeded", async () => {
    const id = newId();
    await using proxy = await TcpProxy.before(database.url);
    await using store = await MySQLCheckpointer.open(proxy.url(database.url));
    const revision = await store.append(id, said(8));
    const compact = () =>
      archivesOf(store).compact(id, { upTo: revision - 3, summary: "s", expectedRevision: revision });
    const counted = await TcpProxy.before(database.url);
    onTestFinished(() => counted[Symbol.asyncDispose]());
    // How many answers a compaction has is counted on another thread.
    const other = newId();
    await using second = await MySQLCheckpointer.open(counted.url(database.url));
    const at = await second.append(other, said(8));
    const before = counted.roundTrips;
    await archivesOf(second).compact(other, { upTo: at - 3, summary: "s" });
    proxy.loseAnswer(counted.roundTrips - before);
    const error = await compact().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionLostError);
    expect(error).toMatchObject({ outcome: "unknown" });
    await expect(compact()).rejects.toMatchObject({ code: "compaction_conflict" });
    expect((await archivesOf(store).list(id)).items).toHaveLength(1);
  });

  test("a search that waits on the server ends at its limit, or when it is told to", async () => {
    const id = newId();
    await using store = await MySQLCheckpointer.open(database.url);
    await compacted(store, id);
    const archives = archivesOf(store);
    await using blocker = await testDatabase({ tables: false });
    await blocker.sql(`LOCK TABLES \`${database.name}\`.everthread_archives WRITE`);
    const start = performance.now();
    await expect(archives.search("word", { timeLimitMs: 100 })).rejects.toMatchObject({ code: "search_timeout" });
    const abort = new AbortController();
    const stopped = archives.search("word", { threadId: id, signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    expect(performance.now() - start).toBeLessThan(1500);
    await blocker.sql("UNLOCK TABLES");
    expect((await archives.search("word 1", { threadId: id })).hits).toHaveLength(1);
  });

  test("a load of a compacted thread is one round trip, and reads what is active", async () => {
    const id = newId();
    await using proxy = await TcpProxy.before(database.url);
    const pool = createPool({ uri: proxy.url(database.url), connectionLimit: 1 });
    onTestFinished(() => pool.end());
    await using store = await MySQLCheckpointer.open({ pool });
    await compacted(store, id);
    const revision = await store.append(id, said(2000));
    await archivesOf(store).compact(id, { upTo: revision - 3, summary: "" });
    await store.load(id);
    const rowsRead = async () => {
      const [rows] = await pool.query<RowDataPacket[]>("SHOW SESSION STATUS LIKE 'Handler_read_next'");
      return Number(rows[0]?.Value);
    };
    const [trips, read] = [proxy.roundTrips, await rowsRead()];
    expect(await texts(store, id)).toHaveLength(3);
    expect(proxy.roundTrips - trips).toBe(2);
    expect((await rowsRead()) - read).toBeLessThan(100);
  });

  test("a damaged message hides no other from a search, and is named when its archive is read", async () => {
    const id = newId();
    await using store = await MySQLCheckpointer.open(database.url);
    const revision = await store.append(id, said(3));
    const [second] = await database.sql("SELECT seq FROM cubepi_messages WHERE thread_id = ? ORDER BY seq LIMIT 1, 1", [
      id,
    ]);
    const damage = "UPDATE cubepi_messages SET payload = 'x' WHERE thread_id = ? AND seq = ?";
    await database.sql(damage, [id, second?.seq]);
    const archives = archivesOf(store);
    await archives.compact(id, { upTo: revision, summary: "" });
    expect((await archives.search("word", { threadId: id })).hits).toHaveLength(2);
    const [, damaged] = (await archives.read(id, "a1")).messages;
    expect(damaged?.error?.rowRef).toContain(`seq=${second?.seq})`);
  });
});
