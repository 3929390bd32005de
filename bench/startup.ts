/** Whole processes, from their start to their end: an empty program, one that imports the package, and the CLI's help. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { benchDir, repeat, report, time } from "./measure.ts";

const dir = benchDir();
const fromRoot = (path: string) => new URL(`../${path}`, import.meta.url);
const programs = {
  empty: [join(dir, "empty.mjs")],
  imported: [join(dir, "import.mjs")],
  help: [fileURLToPath(fromRoot("bin/everthread.js")), "--help"],
};
writeFileSync(join(dir, "empty.mjs"), "");
writeFileSync(join(dir, "import.mjs"), `import ${JSON.stringify(fromRoot("dist/index.js").href)};`);

function run(args: string[]): void {
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${stderr}`);
}

const { empty, imported, help } = await repeat(async () => {
  const sums = { empty: 0, imported: 0, help: 0 };
  for (let i = 0; i < 3; i++) {
    sums.empty += (await time(() => run(programs.empty))) / 3;
    sums.imported += (await time(() => run(programs.imported))) / 3;
    sums.help += (await time(() => run(programs.help))) / 3;
  }
  return sums;
});

report([
  { what: "an empty program", unit: "ms", values: empty },
  { what: 'a program that imports "everthread"', unit: "ms", values: imported },
  {
    what: "import, more than empty",
    unit: "ms",
    values: imported.map((ms, i) => ms - (empty[i] ?? 0)),
    target: { most: 60 },
  },
  { what: "everthread --help", unit: "ms", values: help, target: { most: 200 } },
]);
