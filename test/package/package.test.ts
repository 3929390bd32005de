/** The package as it is published: what is in the tarball, and that it works where it is installed. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const dir = mkdtempSync(join(tmpdir(), "everthread-package-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** The environment without what `npm test` adds to it, which would make an npm within believe it is at home here. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_(registry|cache|userconfig|globalconfig)$)/.test(name),
  ),
);
const npm = async (cwd: string, ...args: string[]) => (await run("npm", args, { cwd, env })).stdout;

let tarball = "";
let packed: string[] = [];

beforeAll(async () => {
  // The build is there already (test/setup), and other tests run from it.
  const [pack] = JSON.parse(await npm(ROOT, "pack", "--json", "--ignore-scripts", "--pack-destination", dir));
  tarball = join(dir, pack.filename);
  packed = pack.files.map((file: { path: string }) => file.path);
});

describe("the tarball", () => {
  test("holds what the manifest names, and nothing else than the program and its documents", () => {
    const named = [
      ...Object.values(manifest.exports).flatMap((target) => Object.values(Object(target))),
      manifest.bin.everthread,
    ];
    const paths = named.filter((path) => /^\.\//.test(path)).map((path) => path.slice(2));
    expect(packed).toEqual(
      expect.arrayContaining([...paths, "README.md", "LICENSE", "CHANGELOG.md", "schema/message.schema.json"]),
    );
    expect(packed.filter((path) => !/^(bin|dist|docs|schema)\/|^[A-Za-z]+(\.md|\.json)?$/.test(path))).toEqual([]);
    const made = packed.filter((path) => path.startsWith("dist/"));
    expect(
      made.filter((path) => !existsSync(join(ROOT, path.replace(/^dist/, "src").replace(/(\.d)?\.[jt]s$/, ".ts")))),
    ).toEqual([]);
    expect(made.length).toBeGreaterThan(100);
  });

  test("a fresh clone builds what is packed", () => {
    expect(manifest.scripts.prepare).toBe("node scripts/build.mjs");
  });

  test("publint finds nothing", async () => {
    const bytes = readFileSync(tarball);
    const { messages, pkg } = await publint({ pack: { tarball: new Uint8Array(bytes).buffer }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  test("attw finds no wrong types", async () => {
    const attw = join(ROOT, "node_modules/@arethetypeswrong/cli/dist/index.js");
    const args = [attw, tarball, "--profile", "esm-only", "--no-definitely-typed", "--format", "json"];
    // It exits with 1 when it finds any. The list in its JSON holds also what the profile leaves out.
    const { stdout } = await run(process.execPath, args, { cwd: dir });
    const { analysis } = JSON.parse(stdout);
    expect(Object.keys(analysis.entrypoints)).toEqual(Object.keys(manifest.exports));
  });
});

describe("installed into an empty project", () => {
  const project = mkdtempSync(join(dir, "project-"));

  beforeAll(async () => {
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
    const types = `@types/node@${manifest.devDependencies["@types/node"]}`;
    await npm(project, "install", "--prefer-offline", "--no-audit", "--no-fund", tarball, types);
    cpSync(new URL("consumer", import.meta.url), project, { recursive: true });
  }, 240_000);

  test("no optional peer comes along", () => {
    expect(existsSync(join(project, "node_modules/everthread/dist/index.js"))).toBe(true);
    expect(existsSync(join(project, "node_modules/@ai-sdk"))).toBe(false);
  });

  test("a strict program type-checks, libraries included", async () => {
    const options = {
      target: "es2024",
      lib: ["es2024"],
      module: "nodenext",
      types: ["node"],
      strict: true,
      exactOptionalPropertyTypes: true,
    };
    const compilerOptions = {
      ...options,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
      resolveJsonModule: true,
    };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const tsc = run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", project]);
    const { stdout } = await tsc.catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  test("an agent runs on a SQLite file, and every subpath loads", async () => {
    const { stdout, stderr } = await run(process.execPath, ["use.ts", join(project, "agent.db")], { cwd: project });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      first: "completed: How is Lisbon? |  | Sunny in Lisbon. | It is sunny.",
      second: "completed: Thanks | You are welcome.",
      roles: ["user", "assistant", "tool_result", "assistant", "user", "assistant"],
      extra: { asked: "Lisbon" },
      version: manifest.version,
      schema: "Everthread message",
      others: ["function", 100, "system"],
    });
  });

  test("CommonJS can require it", async () => {
    const program =
      'console.log(typeof require("everthread").Agent, typeof require("everthread/sqlite").SqliteCheckpointer)';
    const { stdout } = await run(process.execPath, ["--input-type=commonjs", "-e", program], { cwd: project });
    expect(stdout).toBe("function function\n");
  });

  test("npx everthread --help", async () => {
    expect(await npm(project, "exec", "--no", "--", "everthread", "--help")).toMatch(/Usage: everthread /);
    expect(await npm(project, "exec", "--no", "--", "everthread", "--version")).toBe(`${manifest.version}\n`);
  });
});
