/** The migration tools of docs/migrations.md: each block of the page is run as it stands, and makes exactly the expected tables. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Kysely, MysqlDialect, PostgresDialect } from "kysely";
import { createPool } from "mysql2";
import { runner } from "node-pg-migrate";
import pg from "pg";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { openCheckpointer } from "../../src/open.ts";
import { makeDatabase, sql } from "../support/postgres.ts";
import { tempDir } from "../support/temp.ts";
import { type Database, servers } from "./servers.ts";

const [postgres, mysql] = servers;
if (!postgres || !mysql) throw new Error("There are two servers.");
const exec = promisify(execFile);
const PAGE = readFileSync("docs/migrations.md", "utf8");
const PACKAGES = ["drizzle-orm", "drizzle-kit", "kysely", "node-pg-migrate", "pg", "mysql2", "@types"];

/** The blocks that begin with the name of a file, by that name. */
const blocks = new Map(
  [...PAGE.matchAll(/^```(?:ts|js)\n\/\/ (\S+\.\w+)\n([\s\S]*?)^```$/gm)].map(([, name = "", code = ""]) => [
    name,
    code,
  ]),
);
/** The commands of the block that holds `text`. */
function commands(text: string): string[] {
  const [, block = ""] = [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].find(([, code]) => code?.includes(text)) ?? [];
  return block.split("\n").filter((line) => line !== "");
}

/** A project with the page's files, in which the package and the tools are installed. */
function project(): { dir: string; sh(command: string, url: string): Promise<string> } {
  const dir = tempDir(onTestFinished);
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
  mkdirSync(join(dir, "node_modules/.bin"), { recursive: true });
  symlinkSync(resolve("."), join(dir, "node_modules/everthread"));
  for (const name of PACKAGES) symlinkSync(resolve("node_modules", name), join(dir, "node_modules", name));
  for (const name of ["drizzle-kit", "everthread"]) {
    const file = name === "everthread" ? resolve("bin/everthread.js") : resolve("node_modules", name, "bin.cjs");
    const script = `#!/bin/sh\nexec "${process.execPath}" "${file}" "$@"\n`;
    writeFileSync(join(dir, "node_modules/.bin", name), script, { mode: 0o755 });
  }
  for (const [name, code] of blocks) writeFileSync(join(dir, name), code);
  mkdirSync(join(dir, "migrations"));
  const bin = join(dir, "node_modules/.bin");
  return {
    dir,
    async sh(command, url) {
      const PATH = [bin, resolve("node_modules/node/bin"), process.env.PATH].join(":");
      const env = { ...process.env, PATH, DATABASE_URL: url, EVERTHREAD_DB: url };
      // npx would look for a newer one; what it runs is the same file.
      return (await exec("sh", ["-ec", command.replace(/^npx /, "")], { cwd: dir, env })).stdout;
    },
  };
}

async function isWhole(database: Database, expected: string[]): Promise<void> {
  expect(await database.catalog()).toEqual(expected);
  await (await openCheckpointer(database.url)).close();
}

test("every TypeScript block of the page type-checks", async () => {
  expect([...blocks.keys()]).toHaveLength(9);
  const { dir } = project();
  const options = {
    target: "es2024",
    module: "nodenext",
    types: ["node"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  };
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
  const tsc = resolve("node_modules/typescript/bin/tsc");
  const problems = await exec(process.execPath, [tsc, "-p", dir]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
  expect(problems).toBe("");
});

describe("Postgres", () => {
  let expected: string[];
  beforeAll(async () => {
    expected = await postgres.expected();
  });

  test("Drizzle: what drizzle-kit generates, edited as documented, and applied by it, is the same schema", async () => {
    const database = await postgres.database();
    const { dir, sh } = project();
    const [generate = "", edit = "", apply = ""] = commands("node everthread-partitions.mjs");
    await sh(generate, database.url);
    await sh(edit, database.url);
    await sh(apply, database.url);
    await isWhole(database, expected);
    expect(await sh(generate, database.url)).toContain("No schema changes");
    expect(readdirSync(join(dir, "drizzle")).filter((name) => name.endsWith(".sql"))).toEqual(["0000_everthread.sql"]);
  });

  test("Drizzle: the objects read what a store has written", async () => {
    const { url, drop } = await makeDatabase();
    onTestFinished(drop);
    await using store = await PostgresCheckpointer.open(url);
    await store.saveExtra("t", { a: 1 });
    const { drizzle } = await import("drizzle-orm/node-postgres");
    const tables = await import("../../src/checkpoint/postgres/drizzle.ts");
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const rows = await drizzle(client).select().from(tables.threads);
    await client.end();
    expect(rows).toMatchObject([{ threadId: "t", extra: { a: 1 }, createdAt: expect.any(Date) }]);
  });

  test("a .sql file: what the command prints, run in one transaction", async () => {
    const database = await postgres.database();
    const { dir, sh } = project();
    const [print = ""] = commands("> migrations/0007_everthread.sql");
    await sh(print, database.url);
    // As psql -1 does, which is not on every machine.
    const file = readFileSync(join(dir, "migrations/0007_everthread.sql"), "utf8");
    await sql(database.url, `BEGIN; ${file} COMMIT`);
    await isWhole(database, expected);
  });

  test("Kysely", async () => {
    const database = await postgres.database();
    const { dir } = project();
    const { up } = await import(pathToFileURL(join(dir, "0007_everthread.ts")).href);
    const db = new Kysely<unknown>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: database.url, max: 1 }) }),
    });
    await db.transaction().execute((transaction) => up(transaction));
    await db.destroy();
    await isWhole(database, expected);
  });

  test("node-pg-migrate", async () => {
    const database = await postgres.database();
    const { dir } = project();
    const place = join(dir, "migrations");
    writeFileSync(join(place, "0007_everthread.ts"), blocks.get("0007_everthread-node-pg-migrate.ts") ?? "");
    await runner({
      databaseUrl: database.url,
      dir: place,
      direction: "up",
      migrationsTable: "pgmigrations",
      log: () => {},
    });
    await sql(database.url, "DROP TABLE pgmigrations");
    await isWhole(database, expected);
  });
});

describe.skipIf(mysql.missing)(mysql.label, () => {
  test("Drizzle: what drizzle-kit generates, with the documented statements, is the same schema", async () => {
    const database = await mysql.database();
    const { sh } = project();
    for (const command of commands("node everthread-mysql.mjs")) await sh(command, database.url);
    await database.run("DROP TABLE __drizzle_migrations");
    await isWhole(database, await mysql.expected());
  });

  test("Kysely", async () => {
    const database = await mysql.database();
    const { dir } = project();
    const { up } = await import(pathToFileURL(join(dir, "0007_everthread_mysql.ts")).href);
    const db = new Kysely<unknown>({ dialect: new MysqlDialect({ pool: createPool(database.url) }) });
    await up(db);
    await db.destroy();
    await isWhole(database, await mysql.expected());
  });
});
