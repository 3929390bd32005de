/** Archives on Postgres beside what the conformance suite asks: tables that are not there, other programs, and deaths on the way. */
import { randomBytes } from "node:crypto";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { ConnectionLostError } from "../../src/checkpoint/errors.ts";
import { migrate, PostgresCheckpointer, schemaSql } from "../../src/checkpoint/postgres/checkpointer.ts";
import { readOnlyView } from "../../src/checkpoint/read-only.ts";
import { assistantMessage, textOf, userMessage } from "../../src/messages/construct.ts";
import { openCheckpointer } from "../../src/open.ts";
import { ended, startChild } from "../support/child.ts";
import { makeDatabase, sql } from "../support/postgres.ts";
import { TcpProxy } from "../support/proxy.ts";

const { url, drop } = await makeDatabase();
afterAll(drop);
const indexed = await makeDatabase();
afterAll(indexed.drop);
await sql(indexed.url, "CREATE EXTENSION pg_trgm");
await migrate(indexed.url);

const COMPACTOR = new URL("./compactor.ts", import.meta.url);
const said = (count: number, from = 1) => Array.from({ length: count }, (_, i) => userMessage(`word ${i + from}`));
const newId = () => randomBytes(6).toString("hex");

function archivesOf(store: PostgresCheckpointer) {
  if (!store.archives) throw new Error("The store keeps no archives.");
  return store.archives;
}

/** A thread of eight messages, the first five set aside. */
async function compacted(store: PostgresCheckpointer, thread: string): Promise<number> {
  const revision = await store.append(thread, said(8));
  await archivesOf(store).compact(thread, { upTo: revision - 3, summary: "five words" });
  return revision;
}

async function texts(store: PostgresCheckpointer, thread: string): Promise<string[]> {
  return ((await store.load(thread))?.messages ?? []).map(textOf);
}

describe("tables", () => {
  test("without those of archives a store works as before, says what to run, and creates nothing", async () => {
    const bare = await makeDatabase({ empty: true });
    onTestFinished(bare.drop);
    await sql(bare.url, schemaSql());
    await using store = await PostgresCheckpointer.open(bare.url);
    const reason =
      "There is no table everthread_archives: run `everthread migrate <url> --apply`, or the SQL of archiveSchemaSql().";
    expect(store.capabilities).toMatchObject({ archives: { reason }, search: { reason } });
    expect(store.archives).toBeUndefined();
    await store.claimRun("t", "r");
    const revision = await store.append("t", [userMessage("hi", { run_id: "r" })]);
    await store.markRunComplete("t", "r");
    await store.fork("t", "fork", { afterRunId: "r" });
    expect((await store.load("fork", { after: 0 }))?.tail).toBe(true);
    expect(await store.snapshot("t", { afterRunId: "r" })).toHaveLength(1);
    const archive = {
      archiveId: "a1",
      createdAt: new Date(),
      messageCount: 1,
      summary: "",
      system: null,
      extra: {},
      prunedAt: null,
    };
    await expect(store.importThread("t", { archives: [archive] })).rejects.toMatchObject({ code: "unsupported" });
    expect(await store.importThread("t", { archives: [] })).toBe(revision);
    const own = await sql(bare.url, "SELECT relname FROM pg_class WHERE relname LIKE 'everthread%'");
    expect(own).toEqual([]);
    await migrate(bare.url);
    await using later = await PostgresCheckpointer.open(bare.url);
    expect(later.capabilities.archives).toBe(true);
    // The one that was opened before goes on as it is, and sees the whole log.
    await archivesOf(later).compact("t", { upTo: revision, summary: "all" });
    expect(await texts(store, "t")).toEqual(["hi"]);
    expect(await texts(later, "t")).toEqual([]);
  });

  test("a role without rights on them opens the store, without archives", async () => {
    const role = `agents_${newId()}`;
    await sql(
      url,
      `CREATE ROLE ${role} LOGIN PASSWORD 'change-me'; GRANT USAGE ON SCHEMA public TO ${role};
       GRANT SELECT ON cubepi_threads, cubepi_messages, cubepi_runs, cubepi_hitl_answers, cubepi_schema_version TO ${role}`,
    );
    onTestFinished(async () => {
      await sql(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });
    const as = new URL(url);
    as.username = role;
    as.password = "change-me";
    await using store = await PostgresCheckpointer.open(as.href);
    expect(store.capabilities.archives).toMatchObject({ reason: expect.stringContaining("GRANT") });
    expect(await store.load("none")).toBeUndefined();
  });

  test("a schema and a prefix of the host's", async () => {
    const names = { schema: "Chat", tablePrefix: "talk_" };
    await sql(url, 'CREATE SCHEMA "Chat"');
    await migrate(url, names);
    await using store = await PostgresCheckpointer.open(url, names);
    await compacted(store, "t");
    expect(await texts(store, "t")).toEqual(["word 6", "word 7", "word 8"]);
    expect((await archivesOf(store).search("word 2")).hits).toHaveLength(1);
    expect(await sql(url, 'SELECT archive_no::int FROM "Chat".talk_archives')).toEqual([{ archive_no: 1 }]);
  });

  test("a store that only reads takes no compaction, and reads and searches archives", async () => {
    const id = newId();
    await using store = await PostgresCheckpointer.open(url);
    const revision = await compacted(store, id);
    await using reader = await openCheckpointer(url, { readOnly: true });
    const archives = reader.archives;
    if (!archives) throw new Error("No archives.");
    await expect(archives.compact(id, { upTo: revision, summary: "" })).rejects.toMatchObject({
      code: "store_read_only",
    });
    await expect(archives.prune(id, { keep: 1 })).rejects.toMatchObject({ code: "store_read_only" });
    expect((await archives.list(id)).items).toHaveLength(1);
    expect((await archives.search("word 3", { threadId: id })).hits).toHaveLength(1);
    expect(readOnlyView(store).capabilities.archives).toBe(true);
  });
});

for (const [name, at] of Object.entries({ "a scan": url, "an index": indexed.url })) {
  describe(`with ${name}`, () => {
    test("S12 S14 a thread's row deleted by SQL takes its archives along: none comes back with a thread of its id", async () => {
      const id = newId();
      await using store = await PostgresCheckpointer.open(at);
      await compacted(store, id);
      await sql(at, "DELETE FROM cubepi_threads WHERE thread_id = $1", [id]);
      const revision = await store.append(id, said(8, 101));
      expect(await store.load(id)).toMatchObject({ messages: { length: 8 }, revision });
      expect((await store.load(id))?.summary).toBeUndefined();
      const archives = archivesOf(store);
      expect((await archives.list(id)).items).toEqual([]);
      expect((await archives.search("word", { threadId: id })).hits).toEqual([]);
      expect((await archives.compact(id, { upTo: revision - 1, summary: "new" })).archiveId).toBe("a1");
      expect((await archives.search("word 1", { threadId: id, limit: 100 })).hits).toHaveLength(7);
    });

    test("only its messages deleted by SQL, and begun anew at 1: what is written is never hidden by the old archives", async () => {
      const id = newId();
      await using store = await PostgresCheckpointer.open(at);
      await store.claimRun(id, "r");
      await compacted(store, id);
      await sql(at, "DELETE FROM cubepi_messages WHERE thread_id = $1", [id]);
      const archives = archivesOf(store);
      // Fewer than were archived, exactly so many, and more.
      for (const count of [3, 5, 9]) {
        const have = (await texts(store, id)).length;
        await store.append(id, said(count - have, 101 + have));
        const loaded = await store.load(id);
        expect([loaded?.messages.length, loaded?.summary, loaded?.compactedUpTo]).toEqual([
          count,
          undefined,
          undefined,
        ]);
        expect((await archives.list(id)).items).toEqual([]);
        await expect(archives.read(id, "a1")).rejects.toMatchObject({ code: "archive_not_found" });
        expect((await archives.search("word", { threadId: id })).hits).toEqual([]);
        expect((await archives.search("word 10")).hits.filter((hit) => hit.thread_id === id)).toEqual([]);
        expect(await archives.prune(id, { keep: 1 })).toEqual({ pruned: [], protected: [] });
      }
      await store.append(id, [assistantMessage("done", { run_id: "r" })]);
      await store.markRunComplete(id, "r");
      await store.fork(id, `${id} fork`, { afterRunId: "r" });
      expect((await archives.list(`${id} fork`)).items).toEqual([]);
      const upTo = (await store.load(id))?.revision ?? 0;
      expect(await archives.compact(id, { upTo, summary: "new" })).toMatchObject({ archiveId: "a1", messageCount: 10 });
      expect((await archives.search("word 3", { threadId: id })).hits).toEqual([]);
      expect((await archives.search("word 10", { threadId: id, limit: 100 })).hits).toHaveLength(9);
    });

    test("old messages deleted by SQL, as a host's retention does: the summary stands for them all the same", async () => {
      const id = newId();
      await using store = await PostgresCheckpointer.open(at);
      await compacted(store, id);
      await sql(at, "DELETE FROM cubepi_messages WHERE thread_id = $1 AND seq <= 6", [id]);
      expect(await store.load(id)).toMatchObject({ summary: "five words", messages: { length: 2 } });
      expect((await archivesOf(store).search("word", { threadId: id })).hits).toEqual([]);
    });

    test("D13 killed at each answer of the server, a compaction is there or not, and made again it is there once", async () => {
      for (let n = 1, killed = true; killed; n++) {
        const id = newId();
        await using store = await PostgresCheckpointer.open(at);
        const revision = await store.append(id, said(8));
        await using proxy = await TcpProxy.before(at);
        killed = false;
        const child = startChild(COMPACTOR, [proxy.url(at), id, String(revision - 3)]);
        proxy.loseAnswer(n, async () => {
          killed = true;
          child.kill("SIGKILL");
        });
        const { code, stderr } = await ended(child);
        expect([code, stderr]).toEqual([killed ? null : 0, ""]);

        const archives = archivesOf(store);
        const [active, archived] = [await texts(store, id), (await archives.list(id)).items];
        expect(active.length).toBe(archived.length === 0 ? 8 : 3);
        const again = archives.compact(id, { upTo: revision - 3, summary: "again" });
        if (archived.length === 0) await again;
        else await expect(again).rejects.toMatchObject({ code: "compaction_conflict", compactedUpTo: revision - 3 });
        expect(await texts(store, id)).toEqual(["word 6", "word 7", "word 8"]);
        expect((await archives.read(id, "a1")).messages.map(({ message }) => message && textOf(message))).toEqual(
          said(5).map(textOf),
        );
        for (let word = 1; word <= 8; word++) {
          const { hits } = await archives.search(`word ${word}`, { threadId: id });
          expect(hits.map((hit) => hit.preview)).toEqual(word <= 5 ? [`word ${word}`] : []);
        }
        if (!killed) expect(n).toBeGreaterThan(3);
      }
    }, 60_000);

    test("C11 the answer to a compaction is lost: that is said, and a second try says that the first one succeeded", async () => {
      const id = newId();
      await using proxy = await TcpProxy.before(at);
      await using store = await PostgresCheckpointer.open(proxy.url(at));
      const revision = await store.append(id, said(8));
      const compact = () =>
        archivesOf(store).compact(id, { upTo: revision - 3, summary: "s", expectedRevision: revision });
      proxy.loseNextAnswer();
      const error = await compact().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConnectionLostError);
      expect(error).toMatchObject({ outcome: "unknown" });
      await expect(compact()).rejects.toMatchObject({ code: "compaction_conflict" });
      expect((await archivesOf(store).list(id)).items).toHaveLength(1);
    });

    test("a search that waits on the server ends at its limit, or when it is told to", async () => {
      const id = newId();
      await using store = await PostgresCheckpointer.open(at);
      await compacted(store, id);
      const archives = archivesOf(store);
      await using blocker = await lockTable(at, "everthread_archives");
      const start = performance.now();
      await expect(archives.search("word", { timeLimitMs: 100 })).rejects.toMatchObject({ code: "search_timeout" });
      // The server has stopped it by itself.
      const waiting =
        "SELECT query FROM pg_stat_activity WHERE query LIKE '%octet_length(m.payload)%' AND wait_event_type = 'Lock'";
      await expect.poll(() => sql(at, waiting)).toEqual([]);
      const abort = new AbortController();
      const stopped = archives.search("word", { threadId: id, signal: abort.signal });
      abort.abort(new Error("enough"));
      await expect(stopped).rejects.toThrow("enough");
      expect(performance.now() - start).toBeLessThan(1500);
      await blocker.release();
      expect((await archives.search("word 1", { threadId: id })).hits).toHaveLength(1);
    });

    test("a load of a compacted thread takes one round trip, as of any other", async () => {
      const id = newId();
      await using proxy = await TcpProxy.before(at);
      await using store = await PostgresCheckpointer.open(proxy.url(at));
      await compacted(store, id);
      const before = proxy.roundTrips;
      await store.load(id);
      expect(proxy.roundTrips - before).toBe(1);
    });
  });
}

describe("the index", () => {
  const sourcesOf = (id: string) =>
    sql(indexed.url, "SELECT seq::int, folded FROM everthread_archive_sources WHERE thread_id = $1 ORDER BY seq", [id]);

  test("holds the folded text of what is archived, is what a search asks, and follows retention and deletion", async () => {
    const id = newId();
    await using store = await PostgresCheckpointer.open(indexed.url);
    const revision = await store.append(id, [userMessage("Straße 50%\0"), ...said(7)]);
    const archives = archivesOf(store);
    await archives.compact(id, { upTo: revision - 6, summary: "" });
    await archives.compact(id, { upTo: revision - 1, summary: "" });
    const sources = await sourcesOf(id);
    expect(sources.slice(0, 2)).toEqual([
      { seq: 1, folded: "strasse 50%\ufffd" },
      { seq: 2, folded: "word 1" },
    ]);
    expect(sources).toHaveLength(7);
    // What is taken out of it behind our back is not found: nothing was scanned.
    await sql(indexed.url, "DELETE FROM everthread_archive_sources WHERE thread_id = $1 AND seq = 5", [id]);
    expect((await archives.search("WORD", { threadId: id })).hits.map(({ preview }) => preview)).toEqual([
      "word 6",
      "word 5",
      "word 3",
      "word 2",
      "word 1",
    ]);
    await archives.prune(id, { keep: 1 });
    expect((await sourcesOf(id)).map(({ seq }) => seq)).toEqual([3, 4, 6, 7]);
    await store.deleteThread(id);
    expect(await sourcesOf(id)).toEqual([]);
  });

  test("S12 what was archived before there was an index is found, and the thread's next compaction puts it in", async () => {
    const id = newId();
    await using store = await PostgresCheckpointer.open(indexed.url);
    const revision = await compacted(store, id);
    await sql(indexed.url, "DELETE FROM everthread_archive_sources WHERE thread_id = $1", [id]);
    await sql(indexed.url, "UPDATE everthread_archives SET indexed = false WHERE thread_id = $1", [id]);
    const archives = archivesOf(store);
    expect((await archives.search("word", { threadId: id })).hits).toHaveLength(5);
    expect((await archives.search("word 2")).hits.some((hit) => hit.thread_id === id)).toBe(true);
    await archives.compact(id, { upTo: revision, summary: "" });
    expect(await sourcesOf(id)).toHaveLength(8);
    expect((await archives.search("word", { threadId: id })).hits).toHaveLength(8);
  });

  test("a fork copies its part of the index, at the places that the messages have there", async () => {
    const id = newId();
    await using store = await PostgresCheckpointer.open(indexed.url);
    for (const run of ["left out", "one", "two"]) {
      await store.claimRun(id, run);
      await store.append(id, [
        userMessage(`asked ${run}`, { run_id: run }),
        assistantMessage(`said ${run}`, { run_id: run }),
      ]);
      if (run !== "left out") await store.markRunComplete(id, run);
    }
    const revision = (await store.load(id))?.revision ?? 0;
    const archives = archivesOf(store);
    await archives.compact(id, { upTo: revision - 1, summary: "s" });
    await store.fork(id, `${id} fork`, { afterRunId: "two" });
    expect(await sourcesOf(`${id} fork`)).toEqual([
      { seq: 1, folded: "asked one" },
      { seq: 2, folded: "said one" },
      { seq: 3, folded: "asked two" },
    ]);
    const found = (await archives.search("asked", { threadId: `${id} fork` })).hits;
    expect(found.map(({ preview }) => preview)).toEqual(["asked two", "asked one"]);
  });

  test("a damaged message is not indexed, hides no other, and is named when its archive is read", async () => {
    const id = newId();
    await using store = await PostgresCheckpointer.open(indexed.url);
    const revision = await store.append(id, said(3));
    await sql(indexed.url, "UPDATE cubepi_messages SET payload = 'x' WHERE thread_id = $1 AND seq = 2", [id]);
    const archives = archivesOf(store);
    await archives.compact(id, { upTo: revision, summary: "" });
    expect((await archives.search("word", { threadId: id })).hits).toHaveLength(2);
    expect((await archives.search("w", { threadId: id })).hits).toHaveLength(2);
    const [, damaged] = (await archives.read(id, "a1")).messages;
    expect(damaged?.error?.rowRef).toContain("seq=2");
    await expect(archives.fetch(id, { archiveId: "a1", sourceId: String(revision - 1) })).rejects.toMatchObject({
      code: "checkpoint_corruption",
    });
  });
});

/** Holds a table, so that whoever asks for it waits. */
async function lockTable(at: string, table: string) {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: at });
  await client.connect();
  await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  let released = false;
  const release = async () => {
    if (!released) await client.end();
    released = true;
  };
  return { release, [Symbol.asyncDispose]: release };
}
