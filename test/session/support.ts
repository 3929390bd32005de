/** Directories of the kinds that go wrong: on a full file system, on a read-only one. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { tempDir } from "../support/temp.ts";

/** A small file system of its own in memory; undefined where this user may not mount one. */
export function smallFileSystem(size: string): string | undefined {
  const dir = join(tempDir(), "small");
  mkdirSync(dir);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", dir], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  onTestFinished(() => {
    execFileSync("umount", [dir]);
  });
  return dir;
}

export const NO_MOUNT = "mounting a file system of its own needs root on Linux";

/** Makes a file system from {@link smallFileSystem} read-only, for root too. */
export function makeReadOnly(dir: string): void {
  execFileSync("mount", ["-o", "remount,ro", dir]);
}
