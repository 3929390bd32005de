/** File systems of a test's own: one that is soon full, and one that can be made to fail. They take root and mount. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Mount {
  directory: string;
  /** Makes it read-only at once, as the kernel does after an error of the disk: what was not synced is lost. */
  fail(): void;
  /** Takes it out and puts it in again, whereby its journal is played. */
  again(): void;
  remove(): void;
}

function run(program: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
}

/** A file system in memory. @param size such as "512k" */
export function mountTmpfs(size: string): Mount {
  const directory = mkdtempSync(join(tmpdir(), "everthread-tmpfs-"));
  run("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", directory);
  const impossible = () => {
    throw new Error("A tmpfs can't do that.");
  };
  const remove = () => {
    run("umount", directory);
    rmSync(directory, { recursive: true });
  };
  return { directory, fail: impossible, again: impossible, remove };
}

/** An ext4 in a file. @param megabytes its size */
export function mountExt4(megabytes: number): Mount {
  const work = mkdtempSync(join(tmpdir(), "everthread-ext4-"));
  const [image, directory] = [join(work, "image"), join(work, "mounted")];
  mkdirSync(directory);
  writeFileSync(image, "");
  truncateSync(image, megabytes * 1024 * 1024);
  run("mkfs.ext4", "-q", image);
  const mount = () => run("mount", "-o", "loop", image, directory);
  mount();
  return {
    directory,
    fail: () => run("mount", "-o", "remount,abort", directory),
    again: () => {
      run("umount", directory);
      mount();
    },
    remove: () => {
      run("umount", directory);
      rmSync(work, { recursive: true });
    },
  };
}

function reasonAgainst(mount: () => Mount): string | undefined {
  try {
    mount().remove();
    return undefined;
  } catch (error) {
    return `no mount here: ${error instanceof Error ? error.message.split("\n")[0] : error}`;
  }
}

/** Why there is none here; undefined when there can be. */
export const noTmpfs = reasonAgainst(() => mountTmpfs("64k"));
export const noExt4 = reasonAgainst(() => mountExt4(8));
