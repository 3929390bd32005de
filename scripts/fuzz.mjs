/**
 * Runs the property tests for long: `npm run fuzz -- --runs 100000`, `-- --minutes 30`, or a failure once more, with the seed and
 * the path that it named. What else is given goes to vitest: `-t sequences`, or a file. (Default: 10 minutes each)
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const OWN = /^--(runs|minutes|seed|path)$/;
const env = { ...process.env };
const rest = [];
const args = process.argv.slice(2).values();
for (const arg of args) {
  const name = OWN.exec(arg)?.[1];
  if (name === undefined) {
    rest.push(arg);
    continue;
  }
  const { value } = args.next();
  // A path is several numbers: which case, and how it was made smaller.
  if (!/^-?\d[\d.:]*$/.test(value ?? "")) {
    console.error(`error: --${name} must be a number.`);
    process.exit(2);
  }
  env[`EVERTHREAD_FUZZ_${name.toUpperCase()}`] = value;
}
if (!env.EVERTHREAD_FUZZ_RUNS && !env.EVERTHREAD_FUZZ_MINUTES) env.EVERTHREAD_FUZZ_MINUTES = "10";

const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const files = rest.some((arg) => arg.startsWith("test/")) ? [] : ["test/fuzz/"];
const { status } = spawnSync(process.execPath, [vitest, "run", ...files, ...rest, "--disable-console-intercept"], {
  stdio: "inherit",
  env,
});
process.exit(status ?? 1);
