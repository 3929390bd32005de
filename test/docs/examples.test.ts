/** The code in the documentation: it compiles, runs, and prints what the pages say it prints. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anthropicStream, type ProviderServer, startProviderServer } from "../support/provider-server.ts";
import { expectedLines, type Program, programsOf } from "./blocks.ts";

const exec = promisify(execFile);
const PAGES = ["agent", "archives", "sessions", "sqlite", "messages", "models", "errors", "copying", "history"];
const programs = PAGES.flatMap((name) => programsOf(`docs/${name}.md`));
const PACKAGES = ["zod", "valibot", "arktype", "@valibot", "@ai-sdk", "@types"];

/** As strict as a user may have it. */
const TSCONFIG = {
  compilerOptions: {
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    moduleDetection: "force",
    skipLibCheck: true,
    noEmit: true,
  },
  include: PAGES.map((name) => `${name}/*.ts`),
};

/** In place of the sqlite3 program on a machine that has none: FILE SQL, one statement, values with a | between. */
const SQLITE3 = `
const db = new (require("node:sqlite").DatabaseSync)(process.argv[1]);
for (const row of db.prepare(process.argv[2]).all()) console.log(Object.values(row).join("|"));
`;
const hasSqlite3 = () =>
  exec("sqlite3", ["--version"]).then(
    () => true,
    () => false,
  );

/** An empty project in which the package is installed. */
let project: string;
let server: ProviderServer;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "everthread-docs-"));
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  mkdirSync(join(project, "node_modules"));
  symlinkSync(resolve("."), join(project, "node_modules/everthread"));
  for (const name of PACKAGES) symlinkSync(resolve("node_modules", name), join(project, "node_modules", name));
  mkdirSync(join(project, "bin"));
  const bin = join(project, "bin/everthread");
  writeFileSync(bin, `#!/bin/sh\nexec "${process.execPath}" "${resolve("bin/everthread.js")}" "$@"\n`);
  chmodSync(bin, 0o755);
  if (!(await hasSqlite3())) {
    const standIn = join(project, "bin/sqlite3");
    writeFileSync(standIn, `#!/bin/sh\nexec "${process.execPath}" --no-warnings -e '${SQLITE3}' "$@"\n`);
    chmodSync(standIn, 0o755);
  }
  for (const program of programs) {
    mkdirSync(dirname(fileOf(program)), { recursive: true });
    writeFileSync(fileOf(program), program.code);
  }
  server = await startProviderServer();
});
afterAll(async () => {
  await server.close();
  rmSync(project, { recursive: true, force: true });
});

const fileOf = ({ page, line, language }: Program) =>
  join(project, page.replace(/^.*\/|\.md$/g, ""), `line-${line}.${language}`);

test("every TypeScript example type-checks", async () => {
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(TSCONFIG));
  const tsc = resolve("node_modules/typescript/bin/tsc");
  const failure = await exec(process.execPath, [tsc, "-p", project]).then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
  expect(failure).toBe("");
});

describe.each(PAGES)("docs/%s.md", (name) => {
  // In the page's order: a later example may use the file of an earlier one.
  const runnable = programs.filter(({ page, how }) => how === "run" && page === `docs/${name}.md`);
  test.each(runnable)("the example of line $line prints what it says", async (program) => {
    const { language, code } = program;
    if (code.includes("@ai-sdk/anthropic")) {
      server.enqueue(anthropicStream([{ type: "text", text: "You said teal." }]));
    }
    const file = fileOf(program);
    const node = ["--experimental-strip-types", "--no-warnings", file];
    const [command, args] = language === "ts" ? [process.execPath, node] : ["sh", ["-e", file]];
    const { stdout, stderr } = await exec(command, args, {
      cwd: dirname(file),
      env: {
        ...process.env,
        PATH: [join(project, "bin"), dirname(process.execPath), process.env.PATH].join(delimiter),
        ANTHROPIC_API_KEY: "test-key",
        ANTHROPIC_BASE_URL: `${server.url}/v1`,
      },
    });
    const printed = stdout.split("\n").slice(0, -1);
    const expected = expectedLines(code);
    expect({ stderr, lines: printed.length, printed }).toEqual({ stderr: "", lines: expected.length, printed });
    printed.forEach((line, i) => {
      expect(line).toMatch(expected[i] ?? /never/);
    });
  });
});
