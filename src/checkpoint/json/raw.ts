/**
 * JSON taken apart by its text, one level at a time: what isn't changed is written back as it was, with its numbers, the
 * order of its keys, and the fields that this version does not know. The text must be JSON already (JSON.parse took it).
 */

/** The members of an object: name and text of the value, in order. */
export type Fields = Map<string, string>;

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /[^,\]} \t\n\r]*/y;
const BRACKET_OR_QUOTE = /["[\]{}]/g;

/** @throws Error when it is no object, or has two members of one name: one of them would be lost */
export function fieldsOf(text: string): Fields {
  const fields: Fields = new Map();
  for (const [name, value] of members(text, "{", "an object")) {
    const key = JSON.parse(name) as string;
    if (fields.has(key)) throw new Error(`has ${name} twice.`);
    fields.set(key, value);
  }
  return fields;
}

/** The texts of an array's items. @throws Error when it is none */
export function itemsOf(text: string): string[] {
  return members(text, "[", "an array").map(([, value]) => value);
}

/** An object on one line. */
export function objectText(fields: Iterable<readonly [name: string, value: string]>): string {
  return `{${[...fields].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

/** An object of one member a line. @param indent spaces in front of the closing brace */
export function objectLines(fields: Iterable<readonly [name: string, value: string]>, indent: string): string {
  return lines(
    [...fields].map(([name, value]) => `${JSON.stringify(name)}: ${value}`),
    indent,
    "{}",
  );
}

/** An array of one item a line. @param indent spaces in front of the closing bracket */
export function arrayLines(items: readonly string[], indent: string): string {
  return lines(items, indent, "[]");
}

function lines(items: readonly string[], indent: string, [open, close]: string): string {
  const separator = `\n${indent}  `;
  return items.length === 0
    ? `${open}${close}`
    : `${open}${separator}${items.join(`,${separator}`)}\n${indent}${close}`;
}

function members(text: string, open: "{" | "[", kind: string): [name: string, value: string][] {
  let at = skip(SPACE, text, 0);
  if (text[at] !== open) throw new Error(`must be ${kind}.`);
  const found: [string, string][] = [];
  for (at = skip(SPACE, text, at + 1); text[at] !== "}" && text[at] !== "]"; at = skip(SPACE, text, at)) {
    if (text[at] === ",") at = skip(SPACE, text, at + 1);
    let name = "";
    if (open === "{") {
      const end = endOfString(text, at);
      name = text.slice(at, end);
      // Behind the colon.
      at = skip(SPACE, text, skip(SPACE, text, end) + 1);
    }
    const end = endOf(text, at);
    found.push([name, text.slice(at, end)]);
    at = end;
  }
  return found;
}

function endOf(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start);
  if (text[start] !== "{" && text[start] !== "[") return skip(SCALAR, text, start);
  let depth = 0;
  for (let at = start; ; ) {
    BRACKET_OR_QUOTE.lastIndex = at;
    const character = BRACKET_OR_QUOTE.exec(text)?.[0];
    at = BRACKET_OR_QUOTE.lastIndex;
    if (character === '"') at = endOfString(text, at - 1);
    else if (character === "{" || character === "[") depth++;
    else if (--depth === 0) return at;
  }
}

function endOfString(text: string, start: number): number {
  for (let quote = start; ; ) {
    quote = text.indexOf('"', quote + 1);
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
}

function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  pattern.exec(text);
  return pattern.lastIndex;
}
