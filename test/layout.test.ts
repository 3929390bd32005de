/** The rules of the house, held on src/: who may import whom, what the package's entry loads, how long files are, how SQL is made. */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { importsOf, loadedWith, violations } from "./support/imports.ts";

const SRC = new URL("../src/", import.meta.url);
const sources = new Map(
  globSync("**/*.ts", { cwd: fileURLToPath(SRC) })
    .map((file) => file.replaceAll("\\", "/"))
    .sort()
    .map((file) => [file, readFileSync(new URL(file, SRC), "utf8")]),
);

/** Files of more than 400 lines, each with its reason. */
const LONG: Record<string, string> = {
  "agent/agent.ts": "one class: the public face of an agent and the checks at its door, with their documentation",
  "checkpoint/postgres/checkpointer.ts": "as that of SQLite",
  "checkpoint/sqlite/checkpointer.ts":
    "one class with every method of the contract; what can stand alone is in files beside it",
};

/** SQL that holds a name chosen by the code: SQLite takes no parameter in these places. No value comes from outside. */
const NAMES_IN_SQL: Record<string, readonly string[]> = {
  "db/sqlite.ts": ["SYNCHRONOUS[durability]", "mode"],
  "checkpoint/sqlite/schema.ts": ["table", "column", "list"],
  "checkpoint/sqlite/queries.ts": ["table"],
  "checkpoint/sqlite/archive-queries.ts": ["word", "number"],
  "db/mysql.ts": ["seconds"],
  "checkpoint/mysql/schema.ts": ["name", "table", "column", "type", "index", "columns", "version"],
  "checkpoint/postgres/queries.ts": ["allowed"],
  "checkpoint/postgres/schema.ts": ["name", "table", "i", "version"],
  "history/sqlite/schema.ts": ["columns", "rows"],
  "history/sqlite/migrate.ts": ["source", "names", "oldValues", "old", "same", "value", "elsewhere"],
};

describe("src", () => {
  test("imports run one way, and never in a circle", () => {
    expect(sources.size).toBeGreaterThan(50);
    expect(violations(sources)).toEqual([]);
  });

  test("the reader of imports misses none", () => {
    for (const [file, source] of sources) {
      const read = importsOf(source).map(({ specifier }) => specifier);
      // Formatted code begins or ends every import so.
      const plain = [...source.matchAll(/^(?:(?:import|export)\b.*|\} )from "([^"]+)";$/gm)].map(([, name]) => name);
      expect(read, file).toEqual(expect.arrayContaining(plain));
    }
  });

  test("the package's entry loads no driver and no provider", async () => {
    const loaded = [...loadedWith("index.ts", sources)];
    const packages = loaded.filter((name) => !sources.has(name) && !name.startsWith("node:"));
    expect(packages.sort()).toEqual(["@msgpack/msgpack", "valibot"]);
    expect(loaded).not.toContain("node:sqlite");
    // The same of what is built: a part of Node stays in this list once it was loaded.
    const sqliteAfter = async (file: string) => {
      const url = JSON.stringify(new URL(`../dist/${file}`, import.meta.url).href);
      const program = `await import(${url}); console.log(process.moduleLoadList.some((name) => /\\bsqlite\\b/.test(name)))`;
      return (await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program])).stdout.trim();
    };
    expect(await sqliteAfter("index.js")).toBe("false");
    expect(await sqliteAfter("checkpoint/sqlite/checkpointer.js")).toBe("true");
  });

  test("a file of more than 400 lines has a reason", () => {
    const long = [...sources].filter(([, source]) => source.split("\n").length > 401).map(([file]) => file);
    expect(long.filter((file) => !(file in LONG))).toEqual([]);
    expect(Object.keys(LONG).filter((file) => !long.includes(file))).toEqual([]);
  });

  test("no value is written into SQL", () => {
    const found: string[] = [];
    for (const [file, source] of sources) found.push(...valuesInSql(file, source));
    expect(found).toEqual([]);
  });
});

/** Templates and sums that begin like SQL, and what is put into them; constants of the file (IN_CAPITALS) are fine. */
function valuesInSql(file: string, source: string): string[] {
  const found: string[] = [];
  const verb = "\\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|PRAGMA|WITH|ATTACH|VACUUM)\\b";
  for (const [template] of source.matchAll(new RegExp(`\`${verb}(?:\\\\.|[^\`\\\\])*\``, "g"))) {
    for (const [, expression = ""] of template.matchAll(/\$\{([^}]*)\}/g)) {
      if (!/^[A-Z][A-Z_]*$/.test(expression) && !NAMES_IN_SQL[file]?.includes(expression)) {
        found.push(`${file} puts \${${expression}} into SQL: bind a parameter`);
      }
    }
  }
  for (const [sum] of source.matchAll(new RegExp(`["'\`]${verb}[^"'\`]*["'\`]\\s*\\+\\s*[a-z]\\w*`, "g"))) {
    found.push(`${file} adds to SQL: ${sum}`);
  }
  return found;
}

describe("the checker itself", () => {
  const house = (files: Record<string, string>) => violations(new Map(Object.entries(files)));

  test("reads imports of every form, and only imports", () => {
    const source = `
      import { a } from "./a.ts";
      import type { B } from "./b.ts";
      import {
        type C,
      } from './c.ts';
      export * from "./d.ts";
      export type { E } from "./e.ts"; import "./f.ts";
      const g = await import("./g.ts"), pattern = /["'\`/*]/, h: import("./h.ts").H = 1;
      // import { no } from "./no-1.ts";
      /* import { no } from "./no-2.ts"; */
      const text = 'import { no } from "./no-3.ts"', url = "https://x.example/*", more = \`\${1} import("./no-4.ts")\`;
      import def, { i } from "./i.ts"; // import("./no-5.ts")
    `;
    const found = importsOf(source).map(({ specifier }) => specifier);
    expect(found.sort()).toEqual(["a", "b", "c", "d", "e", "f", "g", "h", "i"].map((name) => `./${name}.ts`));
    const atRunTime = importsOf(source).filter((item) => item.static);
    expect(atRunTime.map(({ specifier }) => specifier[2]).sort()).toEqual(["a", "d", "f", "i"]);
  });

  test("a sound house has no violation", () => {
    expect(
      house({
        "errors.ts": "",
        "util/ids.ts": 'import { E } from "../errors.ts";',
        "db/sqlite.ts": 'import { E } from "./sqlite-file.ts";',
        "db/sqlite-file.ts": "",
        "checkpoint/errors.ts": 'export * from "../errors.ts";',
        "checkpoint/sqlite/store.ts": 'import "../errors.ts"; import "../../db/sqlite.ts"; import "./sql.ts";',
        "checkpoint/sqlite/sql.ts": "",
        "open.ts": 'await import("./checkpoint/sqlite/store.ts");',
        "cli/main.ts": 'import { open } from "../open.ts";',
        "index.ts": 'export { open } from "./open.ts";',
      }),
    ).toEqual([]);
  });

  test.each([
    [
      "a higher rank",
      { "messages/a.ts": 'import type { X } from "../agent/b.ts";', "agent/b.ts": "" },
      "rank 1 must not see rank 3",
    ],
    [
      "a neighbour",
      { "agent/a.ts": 'import("../session/b.ts");', "session/b.ts": "" },
      "agent and session are of one rank",
    ],
    [
      "the entry",
      { "agent/a.ts": 'import "../index.ts";', "index.ts": "" },
      "agent/a.ts imports index.ts: index.ts is for",
    ],
    ["the CLI from the entry", { "index.ts": 'import "./cli/main.ts";', "cli/main.ts": "" }, "must not load the CLI"],
    [
      "an engine by name",
      { "agent/a.ts": 'import "../checkpoint/json/b.ts";', "checkpoint/json/b.ts": "" },
      "only open.ts",
    ],
    ["an engine's db file", { "cli/a.ts": 'import "../db/sqlite-file.ts";', "db/sqlite-file.ts": "" }, "only open.ts"],
    [
      "an engine in the contract",
      { "history/a.ts": 'import "./sqlite/b.ts";', "history/sqlite/b.ts": "" },
      "must not know an engine",
    ],
    [
      "another engine",
      { "checkpoint/json/a.ts": 'import "../memory/b.ts";', "checkpoint/memory/b.ts": "" },
      "engine json must not",
    ],
    [
      "another engine's db file",
      { "checkpoint/json/a.ts": 'import "../../db/mysql.ts";', "db/mysql.ts": "" },
      "engine json must not",
    ],
    [
      "a circle of types",
      { "util/a.ts": 'import type { B } from "./b.ts";', "util/b.ts": 'export type { A } from "./a.ts";' },
      "cycle: util/a.ts -> util/b.ts -> util/a.ts",
    ],
    ["itself", { "util/a.ts": 'import "./a.ts";' }, "cycle: util/a.ts -> util/a.ts"],
    [
      "a file that is not there",
      { "util/a.ts": 'import "./gone.ts";' },
      "util/a.ts imports util/gone.ts: there is no such file",
    ],
    ["a part without a rank", { "extras/a.ts": "" }, "src/extras has no rank"],
  ])("finds an import of %s", (_what, files, problem) => {
    expect(house(files).join("\n")).toContain(problem);
  });

  test("follows what is loaded, and not types or what is loaded later", () => {
    const files = {
      "index.ts": 'export * from "./a.ts"; export type * from "./b.ts";',
      "a.ts": 'import { x } from "some-package"; const b = () => import("./b.ts");',
      "b.ts": 'import "node:sqlite";',
    };
    expect([...loadedWith("index.ts", new Map(Object.entries(files)))]).toEqual(["index.ts", "a.ts", "some-package"]);
  });

  test("finds values in SQL", () => {
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: source code under test
    expect(valuesInSql("a.ts", "db.exec(`DELETE FROM t WHERE id = '${id}'`)")).toHaveLength(1);
    expect(valuesInSql("a.ts", 'db.exec("SELECT * FROM t WHERE id = " + id)')).toHaveLength(1);
    expect(valuesInSql("a.ts", "db.exec(`SELECT id FROM t WHERE ${TAKEN}`); say(`Selected ${id}`)")).toHaveLength(0);
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: source code under test
  });
});
