/** `everthread/mem0` against the npm package mem0ai: its types, and what it gives for the same calls. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type Mem0HistoryManager, mem0HistoryManager } from "../../src/history/mem0.ts";
import { InMemoryHistory } from "../../src/history/memory/history.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { tempDir } from "../support/temp.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const VERSION = "3.3.1";

/** As a program that uses Mem0 would hand it over: the interface is not exported, but its factory gives it. */
const PROGRAM = `
import { HistoryManagerFactory } from "mem0ai/oss";
import { type Mem0HistoryManager, mem0HistoryManager } from "everthread/mem0";
import { InMemoryHistory } from "everthread/history";

type HistoryManager = ReturnType<typeof HistoryManagerFactory.create>;
const manager: Mem0HistoryManager = mem0HistoryManager(new InMemoryHistory());
export const given: Required<HistoryManager> = manager;
HistoryManagerFactory.create = () => manager;
// @ts-expect-error the types of mem0ai were found, so what is no manager is an error
export const wrong: HistoryManager = {};
`;

test(`has the interface of mem0ai ${VERSION}'s HistoryManager, by that package's own types`, async ({ skip }) => {
  const dir = tempDir();
  try {
    await run("npm", ["pack", `mem0ai@${VERSION}`, "--pack-destination", dir, "--ignore-scripts"], { timeout: 60_000 });
  } catch {
    skip(`mem0ai ${VERSION} can't be fetched from the package registry`);
  }
  const modules = join(dir, "node_modules");
  mkdirSync(join(modules, "mem0ai"), { recursive: true });
  await run("tar", ["-xzf", join(dir, `mem0ai-${VERSION}.tgz`), "-C", join(modules, "mem0ai"), "--strip-components=1"]);
  const compilerOptions = {
    ...{ module: "nodenext", target: "es2024", lib: ["es2024", "esnext.disposable"], strict: true, noEmit: true },
    // What mem0ai itself depends on is not there, and its declarations are not ours to check.
    ...{
      skipLibCheck: true,
      exactOptionalPropertyTypes: true,
      types: ["node"],
      typeRoots: [join(ROOT, "node_modules/@types")],
    },
    paths: {
      "everthread/mem0": [join(ROOT, "dist/history/mem0.d.ts")],
      "everthread/history": [join(ROOT, "dist/history/index.d.ts")],
    },
  };
  writeFileSync(join(dir, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["program.ts"] }));
  writeFileSync(join(dir, "program.ts"), PROGRAM);
  const tsc = run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", dir]);
  expect((await tsc.catch((error: { stdout: string }) => error)).stdout).toBe("");
}, 120_000);

/** The calls of Mem0's Memory, on any manager; what each gave. */
async function story(manager: Mem0HistoryManager) {
  await manager.addHistory("m", null, "Likes tea", "ADD", "2026-01-01T00:00:00.000Z");
  await manager.addHistory(
    "m",
    "Likes tea",
    "Likes coffee",
    "UPDATE",
    "2026-01-01T00:00:00.000Z",
    "2026-01-02T00:00:00.000Z",
  );
  await manager.addHistory("m", "Likes coffee", null, "DELETE", undefined, undefined, 1);
  await manager.batchAddHistory([
    { memoryId: "b", previousValue: null, newValue: "one", action: "ADD" },
    { memoryId: "b", previousValue: "one", newValue: "two", action: "UPDATE", isDeleted: 0 },
  ]);
  await manager.saveMessages(
    Array.from({ length: 3 }, (_, i) => ({ role: "user", content: `${i}` })),
    "s",
  );
  await manager.saveMessages([{ role: "user", content: "named", name: "ada" }], "s");
  await manager.saveMessages([], "s");
  const rows = [
    ...(await manager.getHistory("m")),
    ...(await manager.getHistory("b")),
    ...(await manager.getHistory("x")),
  ];
  const messages = [...(await manager.getLastMessages("s")), ...(await manager.getLastMessages("none"))];
  const last = await manager.getLastMessages("s", 1);
  await manager.reset();
  const after = [await manager.getHistory("m"), await manager.getLastMessages("s")];
  manager.close();
  // Numbers of rows and the moments of calls are each store's own; a time is compared as the instant it is.
  return {
    rows: rows.map(({ id: _, created_at: __, updated_at, ...rest }) => ({
      ...rest,
      updated_at: updated_at && Date.parse(updated_at),
    })),
    messages: messages.map(({ createdAt: _, ...rest }) => rest),
    last: last.map((message) => message.content),
    after,
  };
}

const EXPECTED = {
  rows: [
    {
      memory_id: "m",
      previous_value: "Likes coffee",
      new_value: null,
      action: "DELETE",
      is_deleted: 1,
      updated_at: null,
    },
    {
      ...{ memory_id: "m", previous_value: "Likes tea", new_value: "Likes coffee", action: "UPDATE", is_deleted: 0 },
      updated_at: Date.UTC(2026, 0, 2),
    },
    { memory_id: "m", previous_value: null, new_value: "Likes tea", action: "ADD", is_deleted: 0, updated_at: null },
    { memory_id: "b", previous_value: "one", new_value: "two", action: "UPDATE", is_deleted: 0, updated_at: null },
    { memory_id: "b", previous_value: null, new_value: "one", action: "ADD", is_deleted: 0, updated_at: null },
  ],
  messages: [
    { role: "user", content: "0" },
    { role: "user", content: "1" },
    { role: "user", content: "2" },
    { role: "user", content: "named", name: "ada" },
  ],
  last: ["named"],
  after: [[], []],
};

test("does what Mem0's Memory asks of it", async () => {
  expect(await story(mem0HistoryManager(new InMemoryHistory()))).toEqual(EXPECTED);
  expect(await story(mem0HistoryManager(await SqliteMemoryHistory.open(":memory:")))).toEqual(EXPECTED);
});

test("gives what Mem0's own SQLite store gives for the same calls", async ({ skip }) => {
  const directory = process.env.EVERTHREAD_MEM0_NPM;
  if (!directory) return skip("no installed mem0ai and better-sqlite3; set EVERTHREAD_MEM0_NPM to their directory");
  const { HistoryManagerFactory } = createRequire(join(directory, "package.json"))("mem0ai/oss");
  const config = { provider: "sqlite", config: { historyDbPath: join(tempDir(), "mem0.db") } };
  const { messages, last: _, ...rest } = EXPECTED;
  const theirs = await story(HistoryManagerFactory.create("sqlite", config));
  expect(theirs).toMatchObject(rest);
  // Mem0 orders messages by a time that those of one call share, so any order of them is as good.
  expect(theirs.messages).toHaveLength(messages.length);
  expect(theirs.messages).toEqual(expect.arrayContaining(messages));
});
