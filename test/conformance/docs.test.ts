/** The page about backends: the programs it shows are the ones that run here. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("the suite runs under node:test as well", async ({ skip }) => {
  if (process.version.startsWith("v22.")) skip("Node 22 can't run `await using` as it is written");
  const args = ["--test", "--test-reporter=tap", "--test-name-pattern=fork", "examples/backend/conformance.test.ts"];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toMatch(/^# pass [1-9]/m);
  expect(stdout).toMatch(/^# fail 0$/m);
});

test.each(["examples/backend/conformance.test.ts", "test/conformance/example.test.ts"])(
  "docs/backends.md shows %s as it is",
  async (path) => {
    const program = (await readFile(path, "utf8"))
      .replace(/^\/\*\*.*\n/, "")
      .replace(/"[./a-z]*\/conformance-store/, '"./conformance-store');
    expect(await readFile("docs/backends.md", "utf8")).toContain(`\`\`\`ts\n${program}\`\`\`\n`);
  },
);

test("docs/backends.md names every capability and every part of a ConformanceStore", async () => {
  const page = await readFile("docs/backends.md", "utf8");
  const names = ["durable", "multiProcess", "archives", "search", "backup", "integrityCheck"];
  const parts = ["checkpointer", "reopen", "plantRow", "openCopy", "dispose"];
  for (const name of [...names, ...parts]) expect(page).toContain(`\`${name}`);
});
