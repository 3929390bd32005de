/**
 * Runs the measures, each in a process of its own, and prints medians with their spread and what they should keep to.
 *
 *     npm run bench                    all but those of servers, as a table
 *     npm run bench -- postgres mysql  those of servers
 *     npm run bench -- load --json     one of them, as JSON
 *
 * A figure that misses its target is marked; the exit code says only whether the measures ran.
 */
import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import type { Figure } from "./measure.ts";

const MEASURES = ["append", "group", "size", "load", "large", "startup", "history", "archives"];
/** Only run when they are named: they start servers. */
const SERVERS = ["postgres", "mysql"];

const { values: options, positionals } = parseArgs({ options: { json: { type: "boolean" } }, allowPositionals: true });
const known = [...MEASURES, ...SERVERS];
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) throw new Error(`There is no measure ${unknown.join(", ")}. There are ${known.join(", ")}.`);

const results: Record<string, Summary[]> = {};
for (const name of positionals.length === 0 ? MEASURES : known.filter((each) => positionals.includes(each))) {
  process.stderr.write(`measuring ${name} …\n`);
  const args = ["--expose-gc", "--no-warnings", fileURLToPath(new URL(`${name}.ts`, import.meta.url))];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  results[name] = (JSON.parse(stdout) as Figure[]).map(summarise);
}

const machine = {
  node: process.version,
  sqlite: process.versions.sqlite,
  platform: process.platform,
  cores: availableParallelism(),
};
if (options.json) console.log(JSON.stringify({ machine, results }, null, 2));
else printTable(results);

interface Summary extends Omit<Figure, "values"> {
  median: number;
  least: number;
  most: number;
  repetitions: number;
  met?: boolean;
}

function summarise({ values, target, ...figure }: Figure): Summary {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const last = sorted.length - 1;
  const median = (at(Math.floor(last / 2)) + at(Math.ceil(last / 2))) / 2;
  const summary = { ...figure, median, least: at(0), most: at(last), repetitions: values.length };
  if (!target) return summary;
  return { ...summary, target, met: "most" in target ? median <= target.most : median >= target.least };
}

function printTable(all: typeof results): void {
  const rows = Object.values(all).flatMap((figures) =>
    figures.map(({ what, unit, median, least, most, repetitions, target, met }) => {
      const spread = repetitions > 1 ? `${round(least)} to ${round(most)}` : "";
      const kept = !target ? "" : `${"most" in target ? "≤" : "≥"} ${"most" in target ? target.most : target.least}`;
      return [what, `${round(median)} ${unit}`, spread, met === false ? `${kept} MISSED` : kept];
    }),
  );
  console.log(`Node ${machine.node}, SQLite ${machine.sqlite}, ${machine.platform}, ${machine.cores} cores\n`);
  const table = [["measure", "median", "spread", "target"], ["-", "-", "-", "-"], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  for (const row of table) {
    const fill = row[0] === "-" ? "-" : " ";
    console.log(`| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(" | ")} |`);
  }
}

function round(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}
