/** Whatever a YAML file says, it is a configuration or a SessionConfigError, soon, and paths do not lead out of the session. */
import { isAbsolute, relative } from "node:path";
import * as fc from "fast-check";
import { expect } from "vitest";
import { parseSessionConfig, type SessionConfig } from "../../src/session/config.ts";
import { SessionConfigError } from "../../src/session/errors.ts";
import { damaged, damages } from "./damage.ts";
import { fuzz } from "./fuzz.ts";
import { text } from "./texts.ts";

const VALID = `# A worker's file.
name: worker
persistence:
  enabled: true
  directory: &here ./data/session
  backend: sqlite
  state: state
  memory: memory
  restore: if_present
  memory_retention: { max_archives: 5 }
  events: false
  readable: false
  compaction:
    trigger_tokens: 100000
    keep_tokens: 20000
  search:
    time_limit_ms: 2000
    max_results: 20
    preview_bytes: 300
    fetch_bytes: 4000
other: *here
`;

const WORDS = [
  "true",
  "null",
  "~",
  "5",
  "-1",
  "1e9",
  "0x10",
  ".inf",
  ".nan",
  "yes",
  "sqlite",
  "json",
  "../up",
  "/abs",
  '"q"',
  "'q'",
  "{}",
  "[]",
];
const PIECES = [
  ...WORDS,
  "persistence",
  "directory",
  "enabled",
  "state",
  "memory",
  "restore",
  "search",
  "__proto__",
  "constructor",
  ":",
  ": ",
  "- ",
  "\n",
  "\n  ",
  "\n    ",
  "\t",
  "#",
  "|",
  ">-",
  "&a ",
  "*a",
  "<<: *a",
  "!!str ",
  "!!binary ",
  "!!timestamp ",
  "!!set ",
  "!!js/function ",
  "---",
  "...",
  "%YAML 1.1",
  "? ",
  "[",
  "]",
  "{",
  "}",
  ",",
  '"',
  "'",
  "\ufeff",
  "\0",
  "\x1b[2J",
  "[".repeat(3000),
  "{a: ".repeat(2000),
];
const piece = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...PIECES) }, { weight: 1, arbitrary: text });

const LINES = VALID.split("\n");
/** The valid file with some lines left out, repeated, indented otherwise or with another value. */
const edited = fc
  .array(fc.record({ line: fc.nat(LINES.length - 1), how: fc.nat(4), piece }), { maxLength: 5 })
  .map((edits) => {
    const lines = [...LINES];
    for (const { line, how, piece: some } of edits) {
      const old = lines[line] ?? "";
      if (how === 0) lines[line] = old.replace(/:.*/, () => `: ${some}`);
      else if (how === 1) lines[line] = `${old}\n${old}`;
      else if (how === 2) lines[line] = ` ${old}`;
      else if (how === 3) lines.splice(line, 1);
      else lines[line] = old.replace(/[\w]+/, () => some);
    }
    return lines.join("\n");
  });
const bytes = damages.map((changes) => damaged(Buffer.from(VALID), changes).toString());
/** Aliases of aliases: what is ten lines long and a billion items wide. */
const laughs = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 })).map(([levels, width]) =>
  Array.from(
    { length: levels },
    (_, i) =>
      `l${i}: &l${i} [${Array(width)
        .fill(i === 0 ? "x" : `*l${i - 1}`)
        .join(", ")}]`,
  )
    .concat(`persistence: { directory: d, extra: *l${levels - 1} }`)
    .join("\n"),
);
const texts = fc.oneof(
  { weight: 4, arbitrary: edited },
  { weight: 3, arbitrary: fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join("")) },
  {
    weight: 2,
    arbitrary: fc.array(piece, { maxLength: 12 }).map((pieces) => `persistence:\n  directory: d\n  ${pieces.join("")}`),
  },
  { weight: 2, arbitrary: bytes },
  { weight: 1, arbitrary: laughs },
);

const tally = { taken: 0, refused: 0 };
const property = fc.asyncProperty(texts, async (yaml) => {
  const start = performance.now();
  let config: SessionConfig | undefined;
  try {
    config = parseSessionConfig(yaml, { file: "/work/worker.yaml", base: "/work" }).config;
    tally.taken++;
  } catch (error) {
    if (!(error instanceof SessionConfigError)) throw error;
    tally.refused++;
    expect(error.message.length).toBeLessThan(20_000);
  }
  expect(performance.now() - start).toBeLessThan(5000);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  if (!config?.enabled) return;
  expect([undefined, "sqlite", "json"]).toContain(config.backend);
  for (const path of [config.state, config.memory]) {
    expect(isAbsolute(path)).toBe(true);
    expect(relative(config.directory, path)).not.toMatch(/^\.\.(\/|$)/);
  }
});
fuzz("any YAML is a configuration or an error that names what is wrong", 200, property, {
  summary: () => `${tally.taken} were taken, ${tally.refused} refused.`,
});
