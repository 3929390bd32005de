/** docs/postgres.md: its program runs and prints what it says, and the page names what there is. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import * as door from "../../src/checkpoint/postgres/checkpointer.ts";
import type { PostgresOptions } from "../../src/checkpoint/postgres/options.ts";
import { makeDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/temp.ts";

const page = readFileSync("docs/postgres.md", "utf8");
const { url, drop } = await makeDatabase({ empty: true });
afterAll(drop);

test("the program runs and prints what the page says", async () => {
  const program = /```ts run\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const dir = tempDir();
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(resolve("."), join(dir, "node_modules/everthread"));
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
  writeFileSync(join(dir, "program.ts"), program);
  const args = ["--experimental-strip-types", "--no-warnings", join(dir, "program.ts")];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, DATABASE_URL: url } });
  const expected = [...program.matchAll(/\/\/ → (.*)/g)].map(([, line]) => line);
  expect(expected.length).toBeGreaterThan(0);
  expect(stdout.trimEnd().split("\n")).toEqual(expected);
});

test("the page names every option and every function", () => {
  const options: Record<keyof PostgresOptions, true> = {
    schema: true,
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
