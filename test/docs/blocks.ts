/**
 * The fenced code blocks of a page, as programs. The words after a fence's language say what becomes of the block:
 *
 * - `run`: a program of its own, run in the page's directory. What it prints is what its `→` comments say, in order
 * - `more`: the program of the block before goes on
 * - `check`: is only type-checked, since it needs a key or a server
 * - `skip`: is left alone; a reason follows
 */
import { readFileSync } from "node:fs";

export interface Program {
  page: string;
  /** The line of its first block. */
  line: number;
  language: "ts" | "sh";
  how: "run" | "check" | "skip";
  code: string;
}

const FENCE = /^```(ts|js|sh)\b *(.*)\n([\s\S]*?)^```$/gm;

/** @throws Error for a block that does not say what becomes of it */
export function programsOf(page: string): Program[] {
  const text = readFileSync(page, "utf8");
  const programs: Program[] = [];
  for (const match of text.matchAll(FENCE)) {
    const [, language, words = "", code = ""] = match;
    const line = text.slice(0, match.index).split("\n").length;
    const how = /^(run|more|check|skip)(?: (?<reason>.+))?$/.exec(words);
    const last = programs.at(-1);
    if (how?.[1] === "more" && last && last.language === language) last.code += code;
    else if ((how?.[1] === "run" || how?.[1] === "check" || how?.groups?.reason) && language !== "js") {
      programs.push({ page, line, language: language as "ts" | "sh", how: how[1] as Program["how"], code });
    } else throw new Error(`${page}:${line}: the block says neither run, more, check nor skip with a reason`);
  }
  return programs;
}

/** What a program is to print: the texts after `→` in its comments, as patterns; "…" stands for anything. */
export function expectedLines(code: string): RegExp[] {
  return [...code.matchAll(/(?:\/\/|#) → (.*)$/gm)].map(([, line = ""]) => {
    const pattern = line.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${pattern.join(".*")}$`);
  });
}
