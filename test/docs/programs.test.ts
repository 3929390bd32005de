/** The programs in examples/, each run as a user would. */
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { tempDir } from "../support/temp.ts";

async function example(name: string, cwd: string, ...args: string[]): Promise<string[]> {
  const node = ["--experimental-strip-types", "--no-warnings", resolve("examples", name), ...args];
  const { stdout } = await promisify(execFile)(process.execPath, node, { cwd });
  return stdout.split("\n").slice(0, -1);
}

test("examples/basic.ts remembers, and goes on when it is run again", async () => {
  const dir = tempDir();
  expect(await example("basic.ts", dir)).toEqual(["The thread holds 0 messages.", "You said teal."]);
  expect(await example("basic.ts", dir)).toEqual(["The thread holds 4 messages.", "You said teal."]);
});

test("examples/approvals.ts asks in one process and runs the tool in another, once", async () => {
  const dir = tempDir();
  const payload = /"kind":"approve","tool_name":"delete_files","tool_call_id":"call_\w+","args":{"path":".\/tmp"}/;
  const [asked] = await example("approvals.ts", dir);
  expect(asked).toMatch(/^suspended: /);
  expect(asked).toMatch(payload);
  expect((await example("approvals.ts", dir))[0]).toMatch(payload);
  expect(await example("approvals.ts", dir, "approve")).toEqual([
    "(delete_files runs: ./tmp)",
    "completed: delete_files said: deleted ./tmp",
  ]);
  await example("approvals.ts", dir);
  expect(await example("approvals.ts", dir, "deny", "not today")).toEqual([
    "completed: delete_files failed: The user denied this call: not today",
  ]);
});
