/** The imports between source files, read from their text, and what breaks the rules of the house about them. */
import { posix } from "node:path";

/** Files by path relative to src/, with slashes: `checkpoint/sqlite/queries.ts`. */
export type Sources = ReadonlyMap<string, string>;

export interface Import {
  /** What the import says: "./errors.ts", "node:fs". */
  specifier: string;
  /** Whether it is there at run time as soon as the file is loaded: not a type, and not `import()`. */
  static: boolean;
}

/** A rank is the parts of src/ that may not see each other; each sees the ranks before its own. */
export const RANKS: readonly (readonly string[])[] = [
  ["errors.ts", "util"],
  ["messages", "db"],
  ["checkpoint", "history", "model"],
  ["session", "agent", "conformance", "copy", "open.ts"],
  ["cli"],
];
/** Re-exports for the outside: it may see every rank but the last, and nobody sees it. */
const ENTRY = "index.ts";
/** Folders with a contract and one folder an engine. */
const STORES = ["checkpoint", "history"];
/** Who may choose an engine. */
const CHOOSERS = ["open.ts", "session"];
/** Re-exports of a contract and its engines for a subpath of the package: nobody inside sees it. */
const DOORS = ["history/index.ts"];

// Comments, strings, templates and regular expressions, so that nothing within one is taken for another.
const TOKENS =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|(?<=(?:^|[(,=:[!&|?{};>]|return|case)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[dgimsuvy]*/g;
const FROM = /(?:^|[;}\n])\s*(?:import|export)\s+(type\s+)?([^"';]*?)\bfrom\s*(?:"([^"]+)"|'([^']+)')/g;
const BARE = /(?:^|[;}\n])\s*import\s*(?:"([^"]+)"|'([^']+)')/g;
const DYNAMIC = /\bimport\s*\(\s*(?:"([^"]+)"|'([^']+)'|`([^`$]+)`)/g;

/** What a file imports or re-exports, types and `import()` included. */
export function importsOf(source: string): Import[] {
  const text = source.replace(TOKENS, (token) => (/^["']/.test(token) || /^`[^$`\n]*`$/.test(token) ? token : " "));
  const found: Import[] = [];
  for (const [, type, names, double, single] of text.matchAll(FROM)) {
    const listed = /^\{(.*)\}$/s.exec((names ?? "").trim())?.[1]?.split(",");
    const onlyTypes = listed?.every((name) => name.trim() === "" || /^type\s/.test(name.trim())) ?? false;
    found.push({ specifier: double ?? single ?? "", static: !type && !onlyTypes });
  }
  for (const [, double, single] of text.matchAll(BARE)) found.push({ specifier: double ?? single ?? "", static: true });
  for (const [, double, single, template] of text.matchAll(DYNAMIC)) {
    found.push({ specifier: double ?? single ?? template ?? "", static: false });
  }
  return found;
}

/** The file that a relative import of `from` names. */
export function resolveImport(from: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(from), specifier) : undefined;
}

/** Every broken rule, each naming the import: an empty list is a sound house. */
export function violations(sources: Sources): string[] {
  const found: string[] = [];
  for (const [file, source] of sources) {
    if (file !== ENTRY && rankOf(file) === undefined) found.push(`${file}: src/${partOf(file)} has no rank`);
    for (const { specifier } of importsOf(source)) {
      const target = resolveImport(file, specifier);
      if (target === undefined) continue;
      const problem = sources.has(target) ? problemOf(file, target) : "there is no such file";
      if (problem) found.push(`${file} imports ${target}: ${problem}`);
    }
  }
  return [...found, ...cycles(sources)];
}

function problemOf(file: string, target: string): string | undefined {
  if (target === ENTRY || DOORS.includes(target)) return "index.ts is for the outside";
  if (file === ENTRY)
    return rankOf(target) === RANKS.length - 1 ? "the package's entry must not load the CLI" : undefined;
  if (target === "errors.ts") return undefined;
  const [part, targetPart] = [partOf(file), partOf(target)];
  if (part !== targetPart) {
    const [rank, targetRank] = [rankOf(file), rankOf(target)];
    if (rank === undefined || targetRank === undefined) return undefined;
    if (targetRank > rank) return `rank ${rank} must not see rank ${targetRank}`;
    if (targetRank === rank) return `${part} and ${targetPart} are of one rank`;
  }
  return engineProblem(file, target);
}

function engineProblem(file: string, target: string): string | undefined {
  const engine = engineOf(target);
  const own = engineOf(file);
  if (engine === undefined || CHOOSERS.includes(partOf(file)) || DOORS.includes(file)) return undefined;
  if (own === undefined) {
    if (partOf(file) === "db") return undefined;
    return STORES.includes(partOf(file))
      ? "a contract must not know an engine"
      : "only open.ts and session/ name engines";
  }
  return own === engine ? undefined : `the engine ${own} must not know the engine ${engine}`;
}

/** `sqlite` of `checkpoint/sqlite/queries.ts` and of `db/sqlite-file.ts`; undefined of `checkpoint/errors.ts`. */
function engineOf(file: string): string | undefined {
  const [part = "", second = "", ...rest] = file.split("/");
  if (STORES.includes(part)) return rest.length > 0 ? second : undefined;
  return part === "db" ? /^(sqlite|postgres|mysql)\b/.exec(second)?.[1] : undefined;
}

function partOf(file: string): string {
  return file.split("/")[0] ?? file;
}

function rankOf(file: string): number | undefined {
  const rank = RANKS.findIndex((parts) => parts.includes(partOf(file)));
  return rank === -1 ? undefined : rank;
}

/** One path around each group of files that import each other. */
function cycles(sources: Sources): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    const start = path.indexOf(file);
    if (start !== -1) {
      found.push(`cycle: ${[...path.slice(start), file].join(" -> ")}`);
      return;
    }
    if (done.has(file)) return;
    path.push(file);
    for (const { specifier } of importsOf(sources.get(file) ?? "")) {
      const target = resolveImport(file, specifier);
      if (target !== undefined && sources.has(target)) visit(target);
    }
    path.pop();
    done.add(file);
  };
  for (const file of sources.keys()) visit(file);
  return found;
}

/** The files and packages that are loaded together with `entry`. */
export function loadedWith(entry: string, sources: Sources): Set<string> {
  const loaded = new Set<string>();
  const visit = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    for (const item of importsOf(sources.get(file) ?? "")) {
      if (item.static) visit(resolveImport(file, item.specifier) ?? item.specifier);
    }
  };
  visit(entry);
  return loaded;
}
