/** Several writers, and people, at one JSON store. It is meant for one worker; a second one still loses and undoes nothing. */
import * as fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { hostname } from "node:os";
import { describe, expect, onTestFinished, test } from "vitest";
import { conformanceCases } from "../../src/conformance/index.ts";
import { ended, startChild } from "../support/child.ts";
import { code, filesIn, logOf, makeStore, open, read, says, textsOf } from "./support.ts";

const APPENDER = new URL("./appender.ts", import.meta.url);

describe("what stores that several processes share must do, it does", () => {
  const shared = conformanceCases.filter(({ needs }) => needs.includes("multiProcess") && !needs.includes("search"));
  test.each(shared.map((one) => [one.name, one] as const))("%s", async (_, { run }) => {
    await run(async () => {
      const files = filesIn();
      return { checkpointer: await open(files), reopen: () => open(files) };
    });
  });

  test("there are such cases", () => {
    expect(shared.length).toBeGreaterThan(3);
  });
});

test("C4 C9 C10 four processes append 50 messages each: all are there, each writer's in order", async () => {
  const files = filesIn();
  const names = ["a", "b", "c", "d"];
  const children = names.map((name) => ended(startChild(APPENDER, [files.state, files.memory, name, "50"])));
  for (const { code: exit, stderr } of await Promise.all(children)) expect([exit, stderr]).toEqual([0, ""]);
  await using store = await open(files);
  const log = await logOf(store);
  expect(log).toHaveLength(200);
  for (const name of names) {
    expect(log.filter((text) => text?.startsWith(name))).toEqual(Array.from({ length: 50 }, (_, i) => `${name}: ${i}`));
  }
  const positions = (await store.listMessages("session", { limit: 1000 })).items.map(({ position }) => position);
  expect(positions).toEqual(positions.map((_, i) => i + 1));
  expect(fs.readdirSync(files.dir)).toEqual(["state.json"]);
}, 60_000);

test("C1 many stores opened on a new path at once are one store", async () => {
  const files = filesIn();
  const stores = await Promise.all(Array.from({ length: 25 }, () => open(files)));
  await Promise.all(stores.map((store, i) => store.append(`thread ${i}`, says("one"))));
  for (const store of stores) await store.close();
  await using store = await open(files);
  expect((await store.listThreads()).items).toHaveLength(25);
});

test("C10 two stores write in turn: neither undoes what the other wrote, and a late write is a conflict", async () => {
  const files = filesIn();
  await using one = await open(files);
  await using two = await open(files);
  for (let i = 0; i < 10; i++) {
    await one.append("a", says(`${i}`));
    await two.append("b", says(`${i}`));
    await two.saveExtra("a", { [i]: true });
  }
  expect(await textsOf(two, "a")).toHaveLength(10);
  expect(await textsOf(one, "b")).toHaveLength(10);
  expect(Object.keys((await one.load("a"))?.extra ?? {})).toHaveLength(10);
  const revision = (await one.load("a"))?.revision ?? 0;
  await two.append("a", says("more"), { expectedRevision: revision });
  await expect(one.append("a", says("late"), { expectedRevision: revision })).rejects.toEqual(code("thread_conflict"));
});

test("a reader sees what the worker writes, compacts and prunes", async () => {
  const files = filesIn();
  await using worker = await open(files);
  await using reader = await open(files, { readOnly: true });
  await worker.append("session", says("1", "2", "3"));
  expect(await textsOf(reader)).toEqual(["1", "2", "3"]);
  for (const upTo of [1, 2]) await worker.archives.compact("session", { upTo, summary: `${upTo}` });
  expect(await reader.load("session")).toMatchObject({ summary: "2", kept: 1 });
  expect(await logOf(reader)).toEqual(["1", "2", "3"]);
  await worker.archives.prune("session", { keep: 1 });
  await expect(reader.archives.read("session", "a1")).rejects.toEqual(code("archive_pruned"));
  expect(await logOf(reader)).toEqual(["2", "3"]);
  await worker.deleteThread("session");
  expect(await reader.load("session")).toBeUndefined();
});

test("a reader is never in the way of a worker that compacts and prunes, nor misled by it", async () => {
  const files = filesIn();
  await makeStore(files, ["0"]);
  await using worker = await open(files);
  await using reader = await open(files, { readOnly: true });
  let working = true;
  const reading = (async () => {
    let reads = 0;
    for (; working; reads++) {
      const log = (await logOf(reader)).map(Number);
      // A run of numbers without a gap, whatever was pruned before it.
      expect(log).toEqual(log.map((_, i) => (log[0] ?? 0) + i));
    }
    return reads;
  })();
  for (let i = 1; i <= 30; i++) {
    const upTo = (await worker.append("session", says(`${i}`))) - 1;
    await worker.archives.compact("session", { upTo, summary: `${i}` });
    await worker.archives.prune("session", { keep: 2 });
  }
  working = false;
  expect(await reading).toBeGreaterThan(10);
  expect(await logOf(reader)).toEqual(["28", "29", "30"]);
});

test("what a person edits in the file is there at the next call, and the next write keeps it", async () => {
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("My name is Ann.", "two"));
  fs.writeFileSync(files.state, read(files.state).replace("Ann", "Bob"));
  expect(await textsOf(store)).toEqual(["My name is Bob.", "two"]);
  await store.append("session", says("three"));
  expect(await textsOf(store)).toEqual(["My name is Bob.", "two", "three"]);
});

test("a file that is taken away is missed, and no empty one takes its place", async () => {
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("one"));
  fs.renameSync(files.state, `${files.state}.away`);
  await expect(store.append("session", says("two"))).rejects.toThrow(/is gone.*put it back/);
  await expect(store.load("session")).rejects.toThrow(/is gone/);
  // Also when it could not be read before.
  fs.writeFileSync(files.state, "{");
  await expect(store.load("session")).rejects.toThrow(/can't be read: .*\. Nothing was changed/);
  fs.rmSync(files.state);
  await expect(store.append("session", says("two"))).rejects.toThrow(/is gone/);
  expect(fs.readdirSync(files.dir)).toEqual(["state.json.away"]);
  fs.renameSync(`${files.state}.away`, files.state);
  await store.append("session", says("two"));
  expect(await textsOf(store)).toEqual(["one", "two"]);
});

describe("a claim to the next snapshot", () => {
  const claimOf = (state: string) => {
    const { snapshot } = JSON.parse(read(state));
    return state.replace("state.json", `.state.json.${snapshot}.1.claim`);
  };

  test("of a living process holds a writer up, until it goes on or gives up", async () => {
    const files = filesIn();
    await makeStore(files, ["one"]);
    await using store = await open(files, { busyTimeoutMs: 100 });
    const claim = claimOf(files.state);
    fs.writeFileSync(claim, `1 somewhere else\n`);
    await expect(store.append("session", says("two"))).rejects.toEqual(code("lock_timeout"));
    expect(await textsOf(store)).toEqual(["one"]);
    await using patient = await open(files);
    const append = patient.append("session", says("two"));
    fs.rmSync(claim);
    await append;
    expect(await textsOf(store)).toEqual(["one", "two"]);
  });

  test("of a dead process, or an old one that names none, holds nobody up", async () => {
    const files = filesIn();
    await makeStore(files, ["one"]);
    await using store = await open(files);
    const child = startChild(APPENDER, [files.state, files.memory, "x", "0"]);
    await ended(child);
    fs.writeFileSync(claimOf(files.state), `${child.pid} ${hostname()}\n`);
    await store.append("session", says("two"));
    fs.writeFileSync(claimOf(files.state), "");
    fs.utimesSync(claimOf(files.state), 1, 1);
    await store.append("session", says("three"));
    expect(await textsOf(store)).toEqual(["one", "two", "three"]);
    expect(fs.readdirSync(files.dir)).toEqual(["state.json"]);
  });
});

test("calls made in one tick share one snapshot, and one that fails takes no other with it", async () => {
  const files = filesIn();
  await using store = await open(files);
  const { rename } = fs.promises;
  let renames = 0;
  fs.promises.rename = (from, to) => {
    renames++;
    return rename(from, to);
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    fs.promises.rename = rename;
    syncBuiltinESMExports();
  });
  const results = await Promise.allSettled([
    store.append("a", says("1")),
    store.append("a", says("2"), { expectedRevision: 99 }),
    store.append("a", says("3")),
    store.fork("a", "b", { afterRunId: "none" }),
    store.saveExtra("b", { x: 1 }),
    // A read sees what is durable.
    store.load("a"),
  ]);
  expect(results).toMatchObject([
    { value: 1 },
    { reason: code("thread_conflict") },
    { value: 2 },
    { reason: code("run_not_completed") },
    { status: "fulfilled" },
    { value: undefined },
  ]);
  expect(renames).toBe(1);
  await using again = await open(files, { readOnly: true });
  expect([await textsOf(again, "a"), (await again.load("b"))?.extra]).toEqual([["1", "3"], { x: 1 }]);
});

test("what was acknowledged is what every later read gives, however many reads are under way", async () => {
  const files = filesIn();
  await using store = await open(files);
  await using other = await open(files);
  let working = true;
  const reading = (async () => {
    while (working) await Promise.all([store.load("session"), store.load("session"), other.load("session")]);
  })();
  for (let i = 1; i <= 40; i++) {
    const writer = i % 3 === 0 ? other : store;
    const revision = await writer.append("session", says(`${i}`), { expectedRevision: i - 1 });
    expect(revision).toBe(i);
    const loads = await Promise.all([store.load("session"), other.load("session")]);
    expect(loads.map((loaded) => loaded?.revision)).toEqual([i, i]);
  }
  working = false;
  await reading;
});
