/** Copies that are killed at any moment, and go on where they were. */
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { fill, idsOf, whole } from "./stores.ts";

const COPIER = new URL("./copier.ts", import.meta.url);

async function makeSource(path: string): Promise<SqliteCheckpointer> {
  const source = await SqliteCheckpointer.open(path, { durability: "off" });
  for (let i = 0; i < 40; i++) await fill(source, `thread ${i}`);
  // Of many batches, and of a run's messages on both sides of a batch's end.
  for (const id of ["long", "other long"]) {
    await source.claimRun(id, "r");
    const messages = Array.from({ length: 2600 }, (_, i) => userMessage(`${id} ${i}`, { run_id: "r" }));
    await source.append(id, messages);
    await source.markRunComplete(id, "r");
    await source.saveExtra(id, { all: true });
  }
  return source;
}

/** Kills a copy after so many lines; gives its report when it came to its end first. */
async function copy(from: string, to: string, killAfter: number): Promise<string | undefined> {
  const child = startChild(COPIER, [from, to]);
  let lines = 0;
  let report: string | undefined;
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  child.on("close", () => resolve());
  if (!child.stdout) throw new Error("The child has no stdout.");
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("{")) report = line;
    else if (++lines === killAfter) child.kill("SIGKILL");
  });
  await promise;
  expect(stderr).toBe("");
  return report;
}

test("G10 a copy killed ten times at any point ends exact: nothing lost, nothing doubled", async () => {
  const directory = tempDir();
  const [from, to] = [join(directory, "a.db"), join(directory, "b.db")];
  await using source = await makeSource(from);
  const expected = await whole(source);
  const messagesOf = new Map(expected.map(([id, { messages }]) => [id, messages]));
  let kills = 0;
  for (let report: string | undefined; report === undefined; ) {
    // At last it may run to its end.
    report = await copy(from, to, kills < 10 ? 1 + ((kills * 5) % 13) : Number.POSITIVE_INFINITY);
    if (report === undefined) kills++;
    else expect(JSON.parse(report)).toMatchObject({ conflicts: [], damaged: [], differences: [] });
    await using target = await SqliteCheckpointer.open(to);
    for (const [id, { messages, runs, extra }] of await whole(target)) {
      const all = messagesOf.get(id) ?? [];
      expect(messages).toEqual(all.slice(0, messages.length));
      // A thread that fits one transaction is whole; of a longer one the rest comes last.
      if (!id.includes("long")) expect(messages).toHaveLength(all.length);
      else if (messages.length < all.length) expect([runs, extra]).toEqual([[], {}]);
    }
  }
  expect(kills).toBe(10);
  await using target = await SqliteCheckpointer.open(to);
  expect(await whole(target)).toEqual(expected);
  expect(await idsOf(target)).toHaveLength(42);
  expect(await target.checkIntegrity()).toEqual([]);
  expect(JSON.parse((await copy(from, to, Number.POSITIVE_INFINITY)) ?? "")).toMatchObject({
    unchanged: 42,
    messages: 0,
  });
  expect(await whole(source)).toEqual(expected);
}, 120_000);

test("two copies at once into one store end exact, whichever wrote what", async () => {
  const directory = tempDir();
  const [from, to] = [join(directory, "a.db"), join(directory, "b.db")];
  await using source = await makeSource(from);
  await (await SqliteCheckpointer.open(to)).close();
  await Promise.all([copy(from, to, Number.POSITIVE_INFINITY), copy(from, to, Number.POSITIVE_INFINITY)]);
  expect(await copy(from, to, Number.POSITIVE_INFINITY)).toContain('"conflicts":[],"damaged":[],"differences":[]');
  await using target = await SqliteCheckpointer.open(to);
  expect(await whole(target)).toEqual(await whole(source));
}, 60_000);
