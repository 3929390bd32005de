/** docs/mysql.md: its program runs and prints what it says, and the page names what there is. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as door from "../../src/checkpoint/mysql/checkpointer.ts";
import type { MySqlOptions } from "../../src/checkpoint/mysql/options.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../support/mysql.ts";
import { tempDir } from "../support/temp.ts";

const page = readFileSync("docs/mysql.md", "utf8");

test.skipIf(!hasMysql)(`the program runs and prints what the page says (${mysqlLabel})`, async () => {
  await using database = await testDatabase({ tables: false });
  const program = /```ts run\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const dir = tempDir();
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(resolve("."), join(dir, "node_modules/everthread"));
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
  writeFileSync(join(dir, "program.ts"), program);
  const args = ["--experimental-strip-types", "--no-warnings", join(dir, "program.ts")];
  const env = { ...process.env, DATABASE_URL: database.url };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  const expected = [...program.matchAll(/\/\/ → (.*)/g)].map(([, line]) => line);
  expect(expected.length).toBeGreaterThan(0);
  expect(stdout.trimEnd().split("\n")).toEqual(expected);
});

test("the page names every option and every function", () => {
  const options: Record<keyof MySqlOptions, true> = {
    tablePrefix: true,
    minPoolSize: true,
    maxPoolSize: true,
    connectTimeoutMs: true,
    lockTimeoutMs: true,
  };
  const functions = Object.keys(door).filter((name) => /^[a-z]/.test(name));
  expect(functions.length).toBeGreaterThan(5);
  for (const name of [...Object.keys(options), ...functions]) expect(page).toContain(`\`${name}`);
});
