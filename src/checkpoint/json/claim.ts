/**
 * The right to replace a snapshot. A file named after the snapshot is made, which only one writer can do; it is gone once the next
 * snapshot is in place. So no two writers build on the same snapshot, and none undoes what another wrote.
 */
import * as fs from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";

/** A claim that is older, in ms, has been left behind on another machine. */
const ABANDONED_AFTER = 60_000;

export interface Claim {
  release(): Promise<void>;
}

/**
 * @param target the real path of the state.json
 * @param snapshot which of its snapshots is to be replaced; "" when there is none yet
 * @returns undefined while another writer has the claim
 */
export async function takeClaim(target: string, snapshot: string): Promise<Claim | undefined> {
  const path = claimPath(target, snapshot);
  try {
    await fs.writeFile(path, `${process.pid} ${hostname()}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // The next try may have it then.
    if (await isAbandoned(path)) await fs.rm(path, { force: true });
    return undefined;
  }
  return { release: () => fs.rm(path, { force: true }) };
}

/** Removes what killed writers left behind: claims to snapshots that are replaced already. */
export async function removeOldClaims(target: string, snapshot: string): Promise<void> {
  const current = basename(claimPath(target, snapshot));
  const names = await fs.readdir(dirname(target));
  const isClaim = (name: string) =>
    name.startsWith(`.${basename(target)}.`) && /\.(?:[0-9a-f]{32}|new)\.claim$/.test(name);
  for (const name of names.filter((one) => isClaim(one) && one !== current)) {
    await fs.rm(join(dirname(target), name), { force: true });
  }
}

function claimPath(target: string, snapshot: string): string {
  const name = /^[0-9a-f]{32}$/.test(snapshot) ? snapshot : "new";
  return join(dirname(target), `.${basename(target)}.${name}.claim`);
}

async function isAbandoned(path: string): Promise<boolean> {
  try {
    const { mtimeMs } = await fs.lstat(path);
    const [pid, host] = (await fs.readFile(path, "utf8")).trim().split(" ");
    return Date.now() - mtimeMs > ABANDONED_AFTER || (host === hostname() && !isAlive(Number(pid)));
  } catch (error) {
    // It was released meanwhile.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
