/** The configuration of a session: what is taken, and how each mistake is told. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { checkSessionConfig, parseSessionConfig, readSessionConfig } from "../../src/session/config.ts";
import { SessionConfigError } from "../../src/session/errors.ts";
import { tempDir } from "../support/temp.ts";

const DEFAULTS = {
  restore: "if_present",
  memory_retention: { max_archives: 5 },
  compaction: { trigger_tokens: undefined, keep_tokens: undefined },
  search: { time_limit_ms: 2000, max_results: 20, preview_bytes: 300, fetch_bytes: 4000 },
};

const FULL = `persistence:
  enabled: true
  directory: ./data/session
  backend: sqlite
  state: state
  memory: memory
  restore: if_present
  memory_retention:
    max_archives: 5
`;

function refusal(run: () => unknown): SessionConfigError {
  try {
    run();
  } catch (error) {
    if (error instanceof SessionConfigError) return error;
    throw error;
  }
  throw new Error("It was taken.");
}

describe("what is taken", () => {
  test("the configuration of Simplex, word for word", () => {
    expect(parseSessionConfig(FULL, { base: "/srv" }).config).toEqual({
      enabled: true,
      directory: "/srv/data/session",
      backend: "sqlite",
      state: "/srv/data/session/state",
      memory: "/srv/data/session/memory",
      events: false,
      readable: false,
      ...DEFAULTS,
    });
  });

  test("a directory alone: the defaults, and the backend is left to what is there", () => {
    expect(checkSessionConfig({ directory: "s" })).toEqual({
      enabled: true,
      directory: resolve("s"),
      backend: undefined,
      state: resolve("s/state"),
      memory: resolve("s/memory"),
      events: false,
      readable: false,
      ...DEFAULTS,
    });
  });

  test("every key, in YAML and as an object alike", () => {
    const text = `
persistence: &all
  directory: /s
  backend: json
  state: .
  memory: archives/old
  restore: never
  memory_retention: {max_archives: 0}
  events: true
  readable: true
  compaction: {trigger_tokens: 1000, keep_tokens: 0}
  search: {time_limit_ms: 1, max_results: 1, preview_bytes: 16, fetch_bytes: 16}
`;
    const { config, document } = parseSessionConfig(text);
    expect(checkSessionConfig(document.persistence as object)).toEqual(config);
    expect(config).toMatchObject({
      backend: "json",
      state: "/s",
      memory: "/s/archives/old",
      restore: "never",
      events: true,
      readable: true,
    });
    expect(config).toMatchObject({
      memory_retention: { max_archives: 0 },
      compaction: { trigger_tokens: 1000, keep_tokens: 0 },
    });
    expect(config.search).toEqual({ time_limit_ms: 1, max_results: 1, preview_bytes: 16, fetch_bytes: 16 });
  });

  test("enabled: false needs no directory; what else is there is checked all the same", () => {
    expect(checkSessionConfig({ enabled: false })).toEqual({ enabled: false, ...DEFAULTS });
    expect(refusal(() => checkSessionConfig({ enabled: false, backend: "xml" as "json" })).key).toBe(
      "persistence.backend",
    );
  });

  test("a key that is undefined counts as absent", () => {
    expect(checkSessionConfig({ directory: "/s", state: undefined, search: { max_results: undefined } })).toEqual(
      checkSessionConfig({ directory: "/s" }),
    );
  });

  test("X4 a relative directory starts at the file's own; nothing is created, in the current directory neither", async () => {
    const dir = tempDir();
    const folder = join(dir, "my worker #1?%20");
    mkdirSync(folder);
    const here = readdirSync(".");
    for (const directory of ["data/session", "./data/session", '"../up"', join(dir, "abs olute"), "~x", "a b#c"]) {
      writeFileSync(join(folder, "worker.yaml"), `model: {name: m}\npersistence:\n  directory: ${directory}\n`);
      const { config, document } = await readSessionConfig(join(folder, "worker.yaml"));
      expect(config).toMatchObject({ directory: resolve(folder, directory.replaceAll('"', "")) });
      expect(document.model).toEqual({ name: "m" });
    }
    expect(readdirSync(folder)).toEqual(["worker.yaml"]);
    expect(readdirSync(".")).toEqual(here);
  });

  test.each([
    ["a byte order mark", `\ufeff${FULL}`],
    ["Windows line ends", FULL.replaceAll("\n", "\r\n")],
    ["JSON, which is YAML", '{"persistence": {"directory": "data/session"}}'],
    ["an alias and its anchor", "dir: &d data/session\npersistence:\n  directory: *d\n"],
    ["document marks", `---\n${FULL}...\n`],
    ["keys of others, of any kind", `1: x\n? [a]\n: y\ntools: !custom {a: 1}\n${FULL}`],
  ])("%s", (_what, text) => {
    expect(parseSessionConfig(text, { base: "/b" }).config).toMatchObject({ directory: "/b/data/session" });
  });
});

describe("what is refused, with the key and the line", () => {
  const under = (lines: string) => `# a worker\nmodel: m\npersistence:\n  directory: d\n${lines}`;

  test.each([
    ["an unknown key", "  backand: json", "backand", 5, 3, "Did you mean backend?"],
    [
      "an unknown key within",
      "  memory_retention:\n    max_archive: 3",
      "memory_retention.max_archive",
      6,
      5,
      "Did you mean max_archives?",
    ],
    ["a key in capitals", "  Backend: json", "Backend", 5, 3, "Did you mean backend?"],
    ["__proto__", "  __proto__: {enabled: false}", "__proto__", 5, 3, "is not known"],
    ["a merge key", "  <<: {backend: json}", "<<", 5, 3, "is not known"],
    ["a number as a key", "  7: x", "7", 5, 3, "is not known"],
    ["another backend", "  backend: postgres", "backend", 5, 12, 'must be sqlite or json, not the text "postgres"'],
    ["a backend in capitals", "  backend: SQLite", "backend", 5, 12, "must be sqlite or json"],
    ["an empty backend", "  backend:", "backend", 5, undefined, "not empty"],
    ["yes for true", "  events: yes", "events", 5, 11, 'must be true or false, not the text "yes"'],
    ["true in quotes", '  enabled: "true"', "enabled", 5, 12, "must be true or false"],
    ["another restore", "  restore: always", "restore", 5, 12, "must be if_present or never"],
    ["an empty path", '  state: ""', "state", 5, 10, "is empty"],
    ["a blank path", '  memory: "  "', "memory", 5, 11, "is empty"],
    ["~ alone, which is YAML's null", "  state: ~", "state", 5, 10, "must be a path as text, not empty"],
    ["a number as a path", "  state: 12", "state", 5, 10, "must be a path as text, not 12"],
    ["a list as a path", "  state: [a]", "state", 5, 10, "not a list"],
    ["U+0000 in a path", '  state: "a\\0b"', "state", 5, 10, "holds U+0000"],
    ["half a surrogate pair in a path", '  state: "a\\ud800"', "state", 5, 10, "not well-formed"],
    ["a home directory", "  state: ~/state", "state", 5, 10, "~ is not expanded"],
    ["state outside of the directory", "  state: ../state", "state", 5, 10, "leads out of persistence.directory"],
    ["memory outside of the directory", "  memory: /var/memory", "memory", 5, 11, "leads out of persistence.directory"],
    [
      "one directory for state and memory",
      "  state: x\n  memory: ./x/",
      "memory",
      6,
      11,
      "the same directory as state",
    ],
    [
      "a negative number",
      "  memory_retention:\n    max_archives: -1",
      "memory_retention.max_archives",
      6,
      19,
      "from 0 to 10000, not -1",
    ],
    [
      "a fraction",
      "  memory_retention:\n    max_archives: 1.5",
      "memory_retention.max_archives",
      6,
      19,
      "must be a whole number",
    ],
    ["infinity", "  memory_retention:\n    max_archives: .inf", "memory_retention.max_archives", 6, 19, "not Infinity"],
    ["not a number", "  memory_retention: {max_archives: .nan}", "memory_retention.max_archives", 5, 36, "not NaN"],
    [
      "a number in quotes",
      '  memory_retention: {max_archives: "5"}',
      "memory_retention.max_archives",
      5,
      36,
      'not the text "5"',
    ],
    [
      "a mapping that is a number",
      "  memory_retention: 5",
      "memory_retention",
      5,
      21,
      "must be a mapping of keys to values, not 5",
    ],
    ["a mapping that is empty", "  search:", "search", 5, undefined, "must be a mapping of keys to values, not empty"],
    ["a mapping that is a list", "  search: []", "search", 5, 11, "not a list"],
    ["a limit of nothing", "  search:\n    max_results: 0", "search.max_results", 6, 18, "from 1 to 1000, not 0"],
    ["a limit too long", "  search:\n    time_limit_ms: 600001", "search.time_limit_ms", 6, 20, "from 1 to 600000"],
    [
      "a tail above the trigger",
      "  compaction:\n    trigger_tokens: 2000\n    keep_tokens: 2000",
      "compaction.keep_tokens",
      7,
      18,
      "must be less than trigger_tokens, which is 2000",
    ],
  ] as const)("%s", (_what, lines, key, line, column, problem) => {
    const error = refusal(() => parseSessionConfig(under(lines), { file: "worker.yaml" }));
    expect(error.message).toContain(problem);
    expect(error).toMatchObject({ code: "session_config", key: `persistence.${key}`, file: "worker.yaml", line });
    if (column !== undefined) expect(error.column).toBe(column);
    expect(error.message).toContain(`worker.yaml, line ${line}, column ${error.column}: persistence.${key} `);
  });

  test.each([
    ["~", "must be a path as text, not empty. In YAML, ~ alone"],
    ['""', "is empty"],
    ["~/data", "~ is not expanded"],
    ['":memory:"', "`enabled: false` keeps the session in memory"],
    ["postgres://u:p@h/d", "is a URL"],
    ["file:///tmp/x", "is a URL"],
    ["false", "must be a path as text, not false"],
  ])("X4 directory: %s", (value, problem) => {
    const error = refusal(() => parseSessionConfig(`persistence:\n  directory: ${value}\n`));
    expect(error).toMatchObject({ key: "persistence.directory", line: 2, column: 14 });
    expect(error.message).toContain(problem);
    expect(error.message).not.toContain("u:p");
  });

  test("a directory that is missing is told at the line of persistence", () => {
    const error = refusal(() => parseSessionConfig("a: 1\npersistence:\n  backend: json\n"));
    expect(error).toMatchObject({ key: "persistence.directory", line: 2 });
    expect(error.message).toContain("Name the session's directory");
  });

  test("a value behind an alias is told at a line that is in the file", () => {
    const error = refusal(() => parseSessionConfig("x: &p\n  directory: d\n  backend: xml\npersistence: *p\n"));
    expect(error).toMatchObject({ key: "persistence.backend", line: 3, column: 12 });
  });

  test.each([
    ["a tab", "persistence:\n\tdirectory: d\n", 2, "indented with a tab"],
    ["a key given twice", "persistence:\n  directory: d\n  directory: e\n", 3, "The key is given twice"],
    ["a top-level key given twice", `${FULL}persistence: {}\n`, 10, "The key is given twice"],
    ["two documents", `${FULL}---\n${FULL}`, 10, "A second document begins here"],
    ["a quote that is not closed", 'persistence:\n  directory: "d\n', 3, "can't be parsed"],
    ["nesting without end", `persistence: ${"[".repeat(50_000)}`, 1, "nested too deeply"],
    ["nonsense", "persistence: }{", 1, "can't be parsed"],
  ])("YAML with %s", (_what, text, line, problem) => {
    const error = refusal(() => parseSessionConfig(text, { file: "w.yaml" }));
    expect(error).toMatchObject({ key: undefined, file: "w.yaml", line });
    expect(error.message).toContain(problem);
  });

  test("aliases that would multiply are refused in no time", () => {
    const bomb = [
      "a: &a [x,x,x,x,x,x,x,x,x]",
      ..."bcdefghij".split("").map((name, i) => `${name}: &${name} [${`*${"abcdefghij"[i]},`.repeat(9)}]`),
    ];
    const start = performance.now();
    expect(refusal(() => parseSessionConfig(`${bomb.join("\n")}\n${FULL}`)).message).toContain("alias");
    expect(performance.now() - start).toBeLessThan(2000);
    expect(refusal(() => parseSessionConfig("persistence: *gone\n")).message).toContain("gone");
    expect(refusal(() => parseSessionConfig("persistence: &p\n  directory: *p\n")).key).toBe("persistence.directory");
  });

  test.each([
    ["nothing", "", "the text is empty"],
    ["a comment only", "# nothing\n", "the text is empty"],
    ["a list", "- persistence\n", "must be a mapping"],
    ["a text", "persistence\n", "must be a mapping"],
    ["other keys only", "model: m\n", "persistence is missing at the top level"],
    ["an empty persistence", "persistence:\n", "must be a mapping of keys to values, not empty"],
    ["persistence as a list", "persistence: []\n", "not a list"],
    ["persistence as a text", "persistence: on\n", 'not the text "on"'],
  ])("a file that holds %s", (_what, text, problem) => {
    expect(refusal(() => parseSessionConfig(text)).message).toContain(problem);
  });

  test.each([null, undefined, 1, "x", [], new Date(), new Map(), 7n, () => {}])(
    "a plain object that is %s",
    (value) => {
      expect(refusal(() => checkSessionConfig(value as object))).toMatchObject({ key: "persistence", line: undefined });
    },
  );

  test("a plain object's mistake names the key", () => {
    const error = refusal(() => checkSessionConfig({ directory: "/s", memory_retention: { max_archives: -1 } }));
    expect(error.message).toBe(
      "persistence.memory_retention.max_archives must be a whole number from 0 to 10000, not -1.",
    );
    expect(error).toMatchObject({ key: "persistence.memory_retention.max_archives", file: undefined, line: undefined });
  });
});

describe("files that can't be read", () => {
  test.each([
    ["missing", undefined, "can't be read"],
    ["of another encoding", Buffer.from("persistence:\n  directory: caf\xe9\n", "latin1"), "not UTF-8"],
    ["in UTF-16", Buffer.from(`\ufeff${FULL}`, "utf16le"), "not UTF-8"],
    ["too large", Buffer.alloc(1024 * 1024 + 1, 0x23), "at most 1 MB"],
    ["empty", Buffer.alloc(0), "the text is empty"],
  ])("%s", async (_what, content, problem) => {
    const path = join(tempDir(), "worker.yaml");
    if (content) writeFileSync(path, content);
    const error = await readSessionConfig(path).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SessionConfigError);
    expect(error.file).toBe(path);
    expect(error.message).toContain(problem);
  });

  test("a directory", async () => {
    await expect(readSessionConfig(tempDir())).rejects.toThrow("must be a regular file");
  });
});
