// Packs the numbered .sql files of each engine into one module beside them, so that nothing reads files at run time.
// `--check` fails when the committed module is behind its sources.
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const engines = globSync("src/*/*/sql", { cwd: fileURLToPath(new URL("..", import.meta.url)) })
  .map((folder) => folder.replaceAll("\\", "/").replace(/\/sql$/, ""))
  .sort();
const check = process.argv.includes("--check");
let behind = false;

for (const engine of engines) {
  const folder = new URL(`../${engine}/sql/`, import.meta.url);
  const names = readdirSync(folder)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name))
    .sort();
  const entries = names.map((name) => {
    const body = readFileSync(new URL(name, folder), "utf8")
      .replaceAll("\\", "\\\\")
      .replaceAll("`", "\\`")
      .replaceAll("${", "\\${");
    return `  ${JSON.stringify(name.replace(/\.sql$/, ""))}: \`${body}\`,`;
  });
  const module = `// Packed from sql/*.sql by scripts/pack-sql.mjs. Change those files, then run \`npm run pack-sql\`.\nexport const SQL = {\n${entries.join("\n")}\n} as const;\n`;
  const target = new URL(`../${engine}/sql.ts`, import.meta.url);
  if (!check) writeFileSync(target, module);
  else if (!existsSync(target) || readFileSync(target, "utf8") !== module) {
    behind = true;
    console.error(`${engine}/sql.ts is behind its .sql files. Run \`npm run pack-sql\`.`);
  }
}
process.exitCode = behind ? 1 : 0;
