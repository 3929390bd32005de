/**
 * A disk that is full, fails, or becomes read-only in the middle: what was acknowledged stays, what was not is a typed error, and
 * the store goes on when it can.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Checkpointer } from "../../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../../src/checkpoint/json/checkpointer.ts";
import { SqliteCheckpointer } from "../../../src/checkpoint/sqlite/checkpointer.ts";
import { EverthreadError } from "../../../src/errors.ts";
import { textOf, userMessage } from "../../../src/messages/construct.ts";
import type { Message } from "../../../src/messages/schema.ts";
import { tempDir } from "../../support/temp.ts";
import { mountExt4, mountTmpfs, noExt4, noTmpfs } from "./mounts.ts";
import { observe } from "./observe.ts";
import type { Op, Said, StoreAt } from "./ops.ts";
import { Writer } from "./process.ts";
import { noStrace, recordWriter } from "./trace.ts";

const MODES = ["delete", "truncate", "persist", "wal"] as const;
const atIn = (directory: string, mode: (typeof MODES)[number] | "json"): StoreAt =>
  mode === "json"
    ? { kind: "json", state: join(directory, "state.json"), memory: join(directory, "memory") }
    : { kind: "sqlite", path: join(directory, "state.db"), journalMode: mode };
const skipped = (reason: string | undefined) => (reason ? `; skipped: ${reason}` : "");

function openAt(at: StoreAt): Promise<Checkpointer> {
  if (at.kind === "json") return JsonCheckpointer.open({ state: at.state, memory: at.memory });
  if (at.kind === "sqlite") return SqliteCheckpointer.open(at.path, { journalMode: at.journalMode });
  throw new Error("There is no such store here.");
}

const sized = (name: string, bytes: number): Message => userMessage(`${name} ${"x".repeat(bytes)}`, { timestamp: 1 });
const nameOf = (message: Message) => textOf(message).split(" ", 1)[0];

describe.concurrent("a full disk", () => {
  for (const mode of [...MODES, "json"] as const) {
    test.skipIf(noTmpfs)(
      `at every fill level (${mode}${skipped(noTmpfs)})`,
      async ({ onTestFinished }) => {
        const mount = mountTmpfs("1m");
        onTestFinished(() => mount.remove());
        const at = atIn(mount.directory, mode);
        const ballast = join(mount.directory, "ballast");
        const store = await openAt(at);
        const stored: string[] = [];
        let [refused, archives, level] = [0, 0, 0];
        const attempt = async (run: () => Promise<unknown>): Promise<boolean> => {
          try {
            await run();
            return true;
          } catch (error) {
            expect(error).toBeInstanceOf(EverthreadError);
            expect((error as EverthreadError).code).not.toBe("");
            refused++;
            return false;
          }
        };
        await store.append("t", [sized("first", 100)]);
        stored.push("first");

        for (const free of [0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96]) {
          fill(ballast, free * 1024);
          level++;
          for (const [i, bytes] of [10, 3000, 20_000].entries()) {
            const name = `m-${level}-${i}`;
            if (await attempt(() => store.append("t", [sized(name, bytes)]))) stored.push(name);
          }
          const upTo = await store.load("t").then(
            (loaded) => loaded?.revision ?? 0,
            () => undefined,
          );
          if (upTo !== undefined && level % 3 === 0) {
            if (await attempt(() => store.archives?.compact("t", { upTo, summary: "s" }) ?? Promise.resolve()))
              archives++;
          }
          await attempt(() => store.saveExtra("t", { level }));

          rmSync(ballast);
          // There is room again: the store that was refused goes on, and shows what was acknowledged and no more.
          await store.append("t", [sized(`after-${level}`, 10)]);
          stored.push(`after-${level}`);
          const all = (await store.listMessages("t", { limit: 1000 })).items;
          expect(all.map(({ message }) => message && nameOf(message))).toEqual(stored);
        }
        await store.close();
        expect(refused).toBeGreaterThan(5);
        const seen = (await observe(at, false)).threads.get("t");
        expect(seen?.all.map(nameOf)).toEqual(stored);
        expect(seen?.archives).toHaveLength(archives);
      },
      120_000,
    );
  }
});

/** Fills the file system but for so many bytes. */
function fill(path: string, free: number): void {
  const block = Buffer.alloc(4096);
  let size = 0;
  try {
    for (;;) {
      writeFileSync(path, block, { flag: "a" });
      size += block.length;
    }
  } catch {
    // It is full.
  }
  writeFileSync(path, Buffer.alloc(Math.max(0, size - free)));
}

/** Appends on one lane, which may each be refused: none needs the one before. */
const appends = (count: number): Op[] =>
  Array.from({ length: count }, (_, i) => ({
    op: "append",
    thread: "t",
    messages: [sized(`m-${i}`, i % 5 === 0 ? 9000 : 100)],
    expected: false,
  }));

/** What the writer says of its appends: which are acknowledged, and which were refused. */
function outcomes(said: Said[]) {
  const done = said.flatMap((one) => (one[0] === "done" ? [one[2]] : []));
  const refused = said.flatMap((one) => (one[0] === "refused" ? [{ n: one[2], ...one[3] }] : []));
  return { done, refused };
}

/** Whether a refusal says that it may have been written all the same, as the failure of a commit's last step must. */
const mayBeThere = ({ message }: { message: string }) => /may have been written|has the new content/.test(message);

/** What is stored: all that was acknowledged, in order. Gives what else there is, which must be among `maybe`. */
async function checkStored(at: StoreAt, done: number[], maybe: number[]): Promise<void> {
  const all = (await observe(at, false)).threads.get("t")?.all.map(nameOf) ?? [];
  const stored = all.map((name) => Number(name?.slice(2)));
  expect(stored).toEqual([...stored].sort((a, b) => a - b));
  expect(new Set(stored).size).toBe(stored.length);
  expect(stored.filter((n) => !maybe.includes(n))).toEqual(done.filter((n) => !maybe.includes(n)));
}

describe.concurrent("a disk that fails", () => {
  const faults = [
    { call: "pwrite64", error: "EIO", on: MODES },
    { call: "fsync,fdatasync", error: "EIO", on: [...MODES, "json"] },
    { call: "unlink", error: "EIO", on: ["delete", "json"] },
    { call: "fsync,unlink", error: "EIO", on: ["json"] },
    { call: "ftruncate", error: "EIO", on: ["truncate", "persist"] },
    { call: "rename", error: "EROFS", on: ["json"] },
  ] as const;
  for (const { call, error, on } of faults) {
    for (const mode of on) {
      for (const lasting of [false, true]) {
        const name = `${error} of ${call}, ${lasting ? "for good" : "once"} (${mode}${skipped(noStrace)})`;
        test.skipIf(noStrace)(
          name,
          async ({ onTestFinished }) => {
            for (const first of lasting ? [33] : [27, 44]) {
              const work = tempDir(onTestFinished);
              const directory = join(work, "store");
              mkdirSync(directory);
              const at = atIn(directory, mode);
              const inject = `inject=${call}:error=${error}:when=${first}${lasting ? "+" : ""}`;
              const script = { store: at, lanes: [appends(20)], goOn: true };
              // A store that could not even be opened has nothing to keep.
              const { said, stderr } = await recordWriter(script, join(work, "trace"), ["-e", inject]);
              expect(stderr).not.toContain("node:internal");
              const { done, refused } = outcomes(said);
              // Least of all does a disk that fails look like another program that holds the lock.
              for (const one of refused) expect(one).toMatchObject({ name: "StoreError", code: expect.any(String) });
              expect(done.length + refused.length === 20 || !said.some(([what]) => what === "open")).toBe(true);
              await checkStored(
                at,
                done,
                refused.filter(mayBeThere).map(({ n }) => n),
              );
            }
          },
          120_000,
        );
      }
    }
  }
});

// Aborting a journal races with the kernel's own answer to an fsync, which may then be wrong: seen once in some fifty runs. So it
// is looked at by people, and not in every run of the suite.
const noAbort = process.env.EVERTHREAD_FULL === "1" ? noExt4 : "only with EVERTHREAD_FULL=1";

describe("a file system that becomes read-only", () => {
  for (const mode of [...MODES, "json"] as const) {
    test.skipIf(noAbort)(
      `in the middle of writing (${mode}${skipped(noAbort)})`,
      async ({ onTestFinished }) => {
        const mount = mountExt4(16);
        onTestFinished(() => mount.remove());
        for (let round = 0; round < 4; round++) {
          const directory = join(mount.directory, `round-${round}`);
          mkdirSync(directory);
          const at = atIn(directory, mode);
          const writer = new Writer(at.kind);
          writer.begin({ store: at, lanes: [appends(60)], goOn: true });
          await writer.acknowledged(5 + 7 * round);
          mount.fail();
          const { said, stderr } = await writer.ended;
          const { done, refused } = outcomes(said);
          expect(refused.length, stderr).toBeGreaterThan(0);
          for (const one of refused) expect(one).toMatchObject({ code: expect.any(String) });
          mount.again();
          for (const { code } of refused) expect(code).not.toBe("lock_timeout");
          await checkStored(
            at,
            done,
            refused.filter(mayBeThere).map(({ n }) => n),
          );
          const store = await openAt(at);
          await store.append("t", [sized("m-100", 10)]);
          await store.close();
        }
      },
      120_000,
    );
  }
});
