/** A directory of a test's own, removed when the test is over. Concurrent tests pass their own `onTestFinished`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export function tempDir(whenFinished: typeof onTestFinished = onTestFinished): string {
  const dir = mkdtempSync(join(tmpdir(), "everthread-"));
  whenFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
