/** A configuration as YAML text: parsed whole, with the place of every key. */
import { Alias, type Document, isMap, isScalar, LineCounter, type Node, parseDocument } from "yaml";
import { messageOf } from "../errors.ts";
import type { Locate } from "./config-mapping.ts";
import { SessionConfigError } from "./errors.ts";

export interface ParsedYaml {
  /** The whole document, as plain values. */
  document: Record<string, unknown>;
  locate: Locate;
}

/** Aliases may make a document of so many times their number, and no more: YAML can say a billion things in ten lines. */
const MOST_ALIASES = 100;

/**
 * Parses YAML 1.2 that is one mapping. A byte order mark is passed over.
 *
 * @param file how errors name the text's origin
 * @throws SessionConfigError naming the line for what is no YAML: tabs as indentation, a key given twice, several documents, …
 */
export function parseYaml(text: string, file: string | undefined): ParsedYaml {
  const lines = new LineCounter();
  const document = parse(text, lines, file);
  const first = document.errors[0];
  if (first) {
    const { line, col } = lines.linePos(first.pos[0]);
    throw new SessionConfigError({ key: undefined, file, line, column: col }, problemOf(first.code, first.message));
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    throw new SessionConfigError({ key: undefined, file }, `The YAML can't be read: ${messageOf(error)}.`, {
      cause: error,
    });
  }
  if (value === null || value === undefined) {
    throw new SessionConfigError({ key: "persistence", file }, "is missing: the text is empty.");
  }
  if (!isMap(document.contents)) {
    throw new SessionConfigError({ key: undefined, file }, "The text must be a mapping with the key persistence.");
  }
  return {
    document: value as Record<string, unknown>,
    locate: (path, what) => {
      const offset = offsetOf(document, path, what);
      if (offset === undefined) return { key: path.join("."), file };
      const { line, col } = lines.linePos(offset);
      return { key: path.join("."), file, line, column: col };
    },
  };
}

function parse(text: string, lineCounter: LineCounter, file: string | undefined): Document.Parsed {
  try {
    // Warnings are not printed, and each error carries its offset instead of a drawing of the line.
    return parseDocument(text, { lineCounter, prettyErrors: false, logLevel: "error" });
  } catch (error) {
    throw new SessionConfigError({ key: undefined, file }, `The YAML can't be parsed: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

function problemOf(code: string, message: string): string {
  switch (code) {
    case "TAB_AS_INDENT":
      return "The line is indented with a tab. YAML takes only spaces.";
    case "DUPLICATE_KEY":
      return "The key is given twice. Remove one of the two.";
    case "MULTIPLE_DOCS":
      return "A second document begins here. Keep one document in the file.";
    case "RESOURCE_EXHAUSTION":
      return "The text is nested too deeply.";
    default:
      return `The YAML can't be parsed: ${message}.`;
  }
}

/** Where in the text the key of a path stands, or its value; of what is not there, the innermost mapping that is. */
function offsetOf(document: Document.Parsed, path: readonly string[], what: "key" | "value"): number | undefined {
  let node: unknown = document.contents;
  let offset: number | undefined;
  for (const [i, key] of path.entries()) {
    if (node instanceof Alias) node = node.resolve(document);
    const pair = isMap(node) ? node.items.find((item) => textOf(item.key) === key) : undefined;
    if (!pair) return offset;
    const keyOffset = startOf(pair.key);
    const isLast = i === path.length - 1;
    // A mapping begins at its first key; its own key is where one looks for it.
    offset = isLast && what === "value" && !isMap(pair.value) ? (startOf(pair.value) ?? keyOffset) : keyOffset;
    node = pair.value;
  }
  return offset;
}

function textOf(key: unknown): string {
  const value = isScalar(key) ? key.value : key;
  return value === null ? "" : String(value);
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
