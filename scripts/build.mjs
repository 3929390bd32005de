// Builds dist/ from src/ with tsc. Only what changed is replaced, and whole files at once, so programs that run out of
// dist/ meanwhile never see half a file; what no source makes any more is removed, so it is never packed.
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const made = join(dist, `.new-${process.pid}`);

try {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const run = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", made, "--noEmitOnError"], {
    cwd: root,
    stdio: "inherit",
  });
  if (run.error) throw run.error;
  if (run.status === 0) replaceWhatChanged();
  else process.exitCode = 1;
} finally {
  rmSync(made, { recursive: true, force: true });
}

function replaceWhatChanged() {
  const files = globSync("**/*.{js,ts}", { cwd: made });
  for (const file of files) {
    if (read(join(dist, file)) === read(join(made, file))) continue;
    mkdirSync(dirname(join(dist, file)), { recursive: true });
    renameSync(join(made, file), join(dist, file));
  }
  const current = new Set(files);
  for (const file of globSync("**/*.{js,ts}", { cwd: dist })) if (!current.has(file)) rmSync(join(dist, file));
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
