/** The command line as a whole: help, versions of Node, wrong usage, exit codes, errors. */
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempDir } from "../support/temp.ts";
import { BIN, everthread, plainEnv } from "./support.ts";

const COMMANDS = [
  "chat",
  "threads",
  "show",
  "fork",
  "pending",
  "respond",
  "export",
  "import",
  "copy",
  "backup",
  "history",
  "doctor",
  "migrate",
];
const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
const docs = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");

/** A Node older than what is supported, if this machine has one. */
const oldNode = (process.env.PATH ?? "")
  .split(":")
  .concat("/usr/bin", "/usr/local/bin")
  .map((directory) => join(directory, "node"))
  .find((node) => {
    const [major = 99, minor = 0] =
      spawnSync(node, ["-p", "process.versions.node"], { encoding: "utf8" }).stdout?.split(".").map(Number) ?? [];
    return major < 22 || (major === 22 && minor < 13);
  });

describe("help", () => {
  test("lists every command", () => {
    const help = execFileSync(process.execPath, [BIN, "--help"], { encoding: "utf8" });
    for (const command of COMMANDS) expect(help).toMatch(new RegExp(`^  ${command}\\b`, "m"));
  });

  test("every command and option is in docs/cli.md", async () => {
    const listed: string[] = [];
    for (const command of ["", ...COMMANDS]) {
      const { stdout } = await everthread([...(command ? [command] : []), "--help"], { env: { COLUMNS: "200" } });
      listed.push(
        ...(stdout.match(/^ {2}(?:-\w, )?--?[\w-]+/gm) ?? []).map((flag) => flag.trim().split(", ").at(-1) ?? ""),
      );
      if (command) expect(docs, command).toContain(`## \`everthread ${command}`);
    }
    expect(new Set(listed).size).toBeGreaterThan(25);
    expect([...new Set(listed)].filter((flag) => !docs.includes(`\`${flag}`))).toEqual([]);
  });

  test("the version is the package's", async () => {
    expect((await everthread(["--version"])).stdout).toBe(`${manifest.version}\n`);
  });
});

describe("Node", () => {
  test.skipIf(!oldNode)("one that is too old is told so in one sentence (skipped where there is none)", () => {
    const run = spawnSync(oldNode ?? "", [BIN, "threads"], { encoding: "utf8" });
    expect(run.stderr).toMatch(/^error: Everthread needs Node 22\.13 or newer, and this is Node [\d.]+\.\n$/);
    expect([run.status, run.stdout]).toEqual([1, ""]);
  });

  test("the door is written for old ones", () => {
    // What Node 12 can't parse: ?., ??, private names, await at the top, and imports by node:.
    expect(readFileSync(BIN, "utf8").replace(/^\s*\/\/.*$/gm, "")).not.toMatch(/\?\.|\?\?|#\w+[;=(]|^await |node:/m);
  });

  test("SQLite's being experimental is not told, and other warnings are", () => {
    const dir = tempDir();
    // As Node 22 warns, wherever this runs.
    const preload =
      "data:text/javascript,setTimeout(()=>{process.emitWarning('SQLite is an experimental feature and might change at any time','ExperimentalWarning');process.emitWarning('Something else')},200)";
    const args = ["--import", preload, BIN, "chat", "--db", join(dir, "a.db"), "wait 500 ms"];
    const run = spawnSync(process.execPath, args, { encoding: "utf8", env: plainEnv({}) });
    expect(run.status).toBe(0);
    expect(run.stderr).not.toContain("SQLite is");
    expect(run.stderr).toContain("Something else");
  });
});

describe("wrong usage", () => {
  test.each([
    ["an unknown option", ["threads", "--frobnicate"], "unknown option '--frobnicate'"],
    ["a mistyped option", ["threads", "--limt", "3"], "Did you mean --limit?"],
    ["an unknown command", ["thread"], "unknown command 'thread'"],
    ["a missing argument", ["fork"], "missing required argument 'thread'"],
    ["one argument too many", ["doctor", "now"], "too many arguments"],
    ["a limit that is no number", ["threads", "--limit", "-1"], "whole number"],
    [
      "no store",
      ["threads"],
      "No store was named: give --db <path|url> or --session <directory>, or set EVERTHREAD_DB.",
    ],
    ["an empty store", ["threads", "--db", ""], "No store was named"],
    ["no threads to export", ["export"], "Name the threads to export, or give --all."],
    ["two answers", ["respond", "t", "--approve", "--deny", "no"], "--approve and --deny are two"],
    ["an answer that is not JSON", ["respond", "t", "--answer", "{"], "--answer takes JSON"],
    ["arguments that are no object", ["respond", "t", "--edit", "[1]"], "--edit takes a JSON object"],
    ["metadata that is no object", ["fork", "a", "b", "--metadata", "1"], "--metadata takes a JSON object"],
    ["an unknown model", ["chat", "hi", "--model", "gpt"], 'There is no model "gpt"'],
    ["a base URL that is none", ["chat", "hi", "--model", "openai:x", "--base-url", "nope"], "--base-url takes a URL"],
    ["no base URL", ["chat", "hi", "--model", "openai-compatible:x"], "needs --base-url"],
    ["an empty message", ["chat", " "], "The message is empty"],
    ["tools that are none", ["chat", "hi", "--approve", "frobnicate"], 'No tool is called "frobnicate"'],
  ])("%s exits with 2, in one line", async (_what, args, problem) => {
    const { code, stdout, stderr } = await everthread(args);
    expect(stderr).toContain(problem);
    expect(stderr).toMatch(/^error: .+\n$/);
    expect([code, stdout]).toEqual([2, ""]);
    const asJson = await everthread([...args, "--json"]);
    expect([asJson.code, asJson.stdout]).toEqual([2, ""]);
    const { error } = JSON.parse(asJson.stderr);
    expect(error.code).toBe("usage");
    expect(error.message).toContain(problem);
  });

  test("without a command it shows the help, on stderr", async () => {
    const { code, stdout, stderr } = await everthread([]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: everthread");
    expect(JSON.parse((await everthread(["--json"])).stderr).error.message).toBe("No command was given.");
  });
});

describe("errors", () => {
  test("are one sentence without a stack, one object under --json, and DEBUG=everthread shows the stack", async () => {
    const db = join(tempDir(), "missing.db");
    const plain = await everthread(["threads", "--db", db]);
    expect(plain.stderr).toMatch(/^error: There is no file .*, and reading creates none\.\n$/);
    expect(plain.code).toBe(1);
    const asJson = await everthread(["threads", "--db", db, "--json"]);
    expect(JSON.parse(asJson.stderr).error.code).toBe("store_open_failed");
    expect((await everthread(["threads", "--db", db], { env: { DEBUG: "everthread" } })).stderr).toMatch(/\n {4}at /);
  });

  test("--db is taken before and after the command, comes before EVERTHREAD_DB, and takes sqlite: and memory:", async () => {
    const dir = tempDir();
    const db = join(dir, "a b#c?d%20.db");
    expect((await everthread(["chat", "--thread", "t", "hi"], { db: `sqlite:${db}` })).code).toBe(0);
    expect(readdirSync(dir)).toEqual(["a b#c?d%20.db"]);
    for (const args of [
      ["--db", db, "threads", "--json"],
      ["threads", "--json", "--db", db],
    ]) {
      const [{ threads } = {}] = (await everthread(args, { db: "/nowhere/else.db" })).records();
      expect(threads).toMatchObject([{ thread_id: "t" }]);
    }
    expect((await everthread(["threads", "--db", "memory:", "--json"])).records()).toEqual([{ threads: [], total: 0 }]);
    expect((await everthread(["threads", "--db", "redis://x"])).stderr).toContain("knows no redis: stores");
  });

  test("X4 X12 commands that need a store make none, and a store that can't be opened is a loud failure", async () => {
    const dir = tempDir();
    const db = join(dir, "none.db");
    for (const args of [
      ["threads"],
      ["show", "t"],
      ["pending"],
      ["doctor"],
      ["export", "--all"],
      ["backup", join(dir, "b.db")],
      ["fork", "a", "b"],
      ["respond", "t", "--approve"],
    ]) {
      expect((await everthread(args, { db, cwd: dir })).code, args[0]).toBe(1);
    }
    expect((await everthread(["chat", "hi"], { db: join(dir, "no", "such.db"), cwd: dir })).stderr).toContain(
      "There is no directory",
    );
    expect((await everthread(["chat", "hi"], { db: dir })).stderr).toContain("is a directory");
    expect(readdirSync(dir)).toEqual([]);
  });
});
