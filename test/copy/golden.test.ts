/** Files that CubeLoop wrote, copied into stores of every kind: what CubeLoop loads from them is what the copies hold. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { copyThreads } from "../../src/copy/copy.ts";
import { expectedOf, NAMES, TestDirectory } from "../interop/files.ts";
import { everything, idsOf, makeStore, whole } from "./stores.ts";

let directory: TestDirectory;
beforeEach(() => {
  directory = new TestDirectory();
});
afterEach(() => directory[Symbol.dispose]());

describe.each(NAMES)("%s", (name) => {
  test.each(["sqlite", "memory", "file"] as const)(
    "L32 G10 comes whole into %s, and is left as it is",
    async (kind) => {
      const path = directory.golden(name);
      const before = readFileSync(path);
      const expected = expectedOf(name);
      await using source = await SqliteCheckpointer.open(path, { readOnly: true });
      const target = await makeStore(kind);
      const report = await copyThreads(source, target);
      expect(report).toMatchObject({ copied: expected.length, conflicts: [], damaged: [], differences: [] });
      expect(new Set(await idsOf(target))).toEqual(new Set(expected.map(([threadId]) => threadId)));
      for (const [threadId, thread] of expected) {
        expect(await everything(target, threadId)).toEqual(await everything(source, threadId));
        const ofTarget = await target.listRuns(threadId);
        expect(ofTarget.items.map((run) => [run.runId, run.completionSeq])).toEqual(
          thread.runs.map((run) => [run.run_id, run.completion_seq]),
        );
        for (const afterRunId of Object.keys(thread.snapshots)) {
          expect(await target.snapshot(threadId, { afterRunId })).toEqual(
            await source.snapshot(threadId, { afterRunId }),
          );
        }
      }
      expect(await copyThreads(source, target)).toMatchObject({ unchanged: expected.length, messages: 0 });
      expect(readFileSync(path).equals(before)).toBe(true);
    },
  );
});

test("a row of Python's NaN, which is not JSON, is named", async () => {
  await using source = await SqliteCheckpointer.open(directory.golden("not-json"), { readOnly: true });
  const target = await makeStore("sqlite");
  const { damaged, conflicts } = await copyThreads(source, target);
  expect(conflicts).toEqual([]);
  expect(damaged).toMatchObject([{ rowRef: expect.stringMatching(/^messages\.id=\d+$/) }]);
  expect(await idsOf(target)).not.toContain(damaged[0]?.threadId);
});

test("from SQLite to another backend and back, every thread is as CubeLoop left it", async () => {
  await using source = await SqliteCheckpointer.open(directory.golden("runs"), { readOnly: true });
  const between = await makeStore("file");
  await using back = await SqliteCheckpointer.open(join(directory.path, "back.db"));
  await copyThreads(source, between);
  await copyThreads(between, back);
  expect(await whole(back)).toEqual(await whole(source));
});
