/** Command lines made from the program's own commands and options, and garbage. */
import type { Command, Option } from "commander";
import * as fc from "fast-check";
import { buildProgram } from "../../src/cli/program.ts";
import { Terminal } from "../../src/cli/terminal.ts";
import { IDS, text } from "./texts.ts";

/** Files of the directory that a command is run in. */
const PATHS = [
  "threads.db",
  "session",
  "session/state.sqlite3",
  "session/state/state.sqlite3",
  "history.db",
  "garbage",
  "empty",
  "missing",
  "missing/file.db",
  "directory",
  "config.yaml",
  "export.jsonl",
  "broken.jsonl",
  "new.db",
  ".",
  "..",
  "../threads.db",
];
const URLS = [
  "memory:",
  "sqlite:threads.db",
  "sqlite:",
  "postgres://127.0.0.1:1/none",
  "mysql://127.0.0.1:1/none",
  "postgres://user:secret@[::1",
  "http://127.0.0.1:1/",
  "file:threads.db",
];
const WORDS = [
  "a",
  "fork",
  "a1",
  "a2",
  "r1",
  "r2",
  "q",
  "list",
  "show",
  "export",
  "offline",
  "none",
  "all",
  "openai:x",
  "anthropic:",
  "ADD",
];
const NUMBERS = ["0", "1", "50", "-1", "1.5", "1e3", "999999999", "99999999999", "NaN", "0x10", " 1"];
const JSONS = ["{}", "[]", "null", '{"a":1}', '{"q":"yes"}', "{", '"', '{"__proto__":1}', "[".repeat(600)];
const OPTIONS = [
  "--",
  "-",
  "--json",
  "--jsn",
  "--help",
  "-h",
  "--version",
  "--db",
  "--db=",
  "--thread=",
  "--no-such",
  "-x",
  "--=",
  "help",
];

/** Arguments hold no U+0000: no program can be given one. */
const garbage = fc.oneof(text, fc.constantFrom(...IDS)).map((value) => value.replaceAll("\0", ""));
const value = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...WORDS) },
  { weight: 2, arbitrary: fc.constantFrom(...PATHS) },
  fc.constantFrom(...URLS),
  fc.constantFrom(...NUMBERS),
  fc.constantFrom(...JSONS),
  garbage,
);

const program = buildProgram(new Terminal(false), () => undefined);

/** The commands by the words that name them, those within others too. */
function commandsOf(command: Command, words: string[] = []): [words: string[], command: Command][] {
  return command.commands.flatMap((one) => {
    const named = [...words, one.name()];
    return [[named, one] as [string[], Command], ...commandsOf(one, named)];
  });
}

const option = ({ long, short, required, optional }: Option): fc.Arbitrary<string[]> => {
  const name = long ?? short ?? "";
  if (!required && !optional) return fc.constant([name]);
  return fc.oneof(
    value.map((one) => [name, one]),
    value.map((one) => [`${name}=${one}`]),
  );
};

const store = fc.oneof<fc.MaybeWeightedArbitrary<string[]>[]>(
  { weight: 6, arbitrary: fc.constant(["--db", "threads.db"]) },
  { weight: 2, arbitrary: fc.constant(["--session", "session"]) },
  { weight: 1, arbitrary: fc.constant(["--config", "config.yaml"]) },
  { weight: 1, arbitrary: fc.constantFrom(...PATHS, ...URLS).map((one) => ["--db", one]) },
  { weight: 1, arbitrary: fc.constantFrom(...PATHS).map((one) => ["--session", one]) },
  { weight: 1, arbitrary: fc.constantFrom(...PATHS).map((one) => ["--config", one]) },
  { weight: 1, arbitrary: fc.constant([]) },
);

function lineOf([words, command]: [string[], Command]): fc.Arbitrary<string[]> {
  const own = command.options.map(option);
  const options =
    own.length === 0 ? fc.constant([]) : fc.array(fc.oneof(...own), { maxLength: 3 }).map((list) => list.flat());
  const most = command.registeredArguments.length + 1;
  const values = fc.oneof(
    { weight: 4, arbitrary: fc.array(value, { minLength: Math.max(0, most - 2), maxLength: most - 1 }) },
    { weight: 1, arbitrary: fc.array(value, { maxLength: most + 1 }) },
  );
  const stray = fc.oneof(
    { weight: 6, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.constantFrom(...OPTIONS).map((one) => [one]) },
  );
  return fc
    .tuple(store, fc.boolean(), values, options, stray)
    .map(([where, json, given, some, more]) => [
      ...where,
      ...(json ? ["--json"] : []),
      ...words,
      ...given,
      ...some,
      ...more,
    ]);
}

export const commandLines: fc.Arbitrary<string[]> = fc.oneof(
  { weight: 12, arbitrary: fc.oneof(...commandsOf(program).map(lineOf)) },
  { weight: 1, arbitrary: fc.array(fc.oneof(value, fc.constantFrom(...OPTIONS)), { maxLength: 5 }) },
);

/** Commands that only read; the others may write what they are told to. */
const READING = ["threads", "show", "search", "archives", "archive", "pending", "doctor", "read-state"];

/** Whether a line can't be meant to write anything. */
export function onlyReads(argv: readonly string[]): boolean {
  const command = argv.find((word) => allNames.has(word));
  if (command === undefined) return true;
  if (command === "export" || command === "history") return !argv.some((word) => /^(-o|--output|import)/.test(word));
  return READING.includes(command);
}

const allNames = new Set(program.commands.map((command) => command.name()));
