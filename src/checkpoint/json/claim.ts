/**
 * The right to replace a snapshot. A file named after the snapshot is made, which only one writer can do; it is gone once the next
 * snapshot is in place. So no two writers build on the same snapshot, and none undoes what another wrote.
 */
import * as fs from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";

/** A claim that is older, in ms, has been left behind on another machine. */
const ABANDONED_AFTER = 60_000;
/** The same of one that does not say whose it is: its maker ended just then. */
const NAMELESS_AFTER = 2_000;

/** Claims that this process has given up and could not remove: its disk failed. While it lives, nobody else passes them over. */
const leftBehind = new Set<string>();

export interface Claim {
  /** @param replaced whether another snapshot is in place now */
  release(replaced: boolean): Promise<void>;
}

/**
 * @param target the real path of the state.json
 * @param snapshot which of its snapshots is to be replaced; "" when there is none yet
 * @returns undefined while another writer has the claim
 */
export async function takeClaim(target: string, snapshot: string): Promise<Claim | undefined> {
  // One that was left behind is passed over and not removed: two who find it would both take its place.
  for (let number = 1; ; number++) {
    const path = claimPath(target, snapshot, number);
    if (await makeClaim(path)) {
      return {
        async release(replaced) {
          for (let n = number; n >= (replaced ? 1 : number); n--) await giveUp(claimPath(target, snapshot, n));
        },
      };
    }
    if (!(await isAbandoned(path))) return undefined;
  }
}

async function makeClaim(path: string): Promise<boolean> {
  let file: fs.FileHandle;
  try {
    file = await fs.open(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    await file.writeFile(`${process.pid} ${hostname()}\n`);
    return true;
  } catch (error) {
    // The first failure is the one to tell of.
    await giveUp(path).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

/**
 * Removes what killed writers left behind: claims to snapshots that are replaced already.
 *
 * @param snapshotNow reads the name of the snapshot that is there: after the claims were listed, or one to a newer would go
 */
export async function removeOldClaims(target: string, snapshotNow: () => Promise<string>): Promise<void> {
  const directory = dirname(target);
  const prefix = `.${basename(target)}.`;
  const CLAIM = /^(?:[0-9a-f]{32}|new)\.\d+\.claim$/;
  const claims = (await fs.readdir(directory)).filter(
    (name) => name.startsWith(prefix) && CLAIM.test(name.slice(prefix.length)),
  );
  if (claims.length === 0) return;
  const current = `${prefix}${nameOf(await snapshotNow())}.`;
  for (const name of claims) if (!name.startsWith(current)) await remove(join(directory, name));
}

function claimPath(target: string, snapshot: string, number: number): string {
  return join(dirname(target), `.${basename(target)}.${nameOf(snapshot)}.${number}.claim`);
}

/** A snapshot that a person wrote may have no name, or one that is no file's. */
function nameOf(snapshot: string): string {
  return /^[0-9a-f]{32}$/.test(snapshot) ? snapshot : "new";
}

async function giveUp(path: string): Promise<void> {
  try {
    await remove(path);
    leftBehind.delete(path);
  } catch (error) {
    // Not before: one that is passed over and then goes would let a second writer take its place.
    leftBehind.add(path);
    throw error;
  }
}

function remove(path: string): Promise<void> {
  return fs.rm(path, { force: true });
}

async function isAbandoned(path: string): Promise<boolean> {
  if (leftBehind.has(path)) return true;
  try {
    const { mtimeMs } = await fs.lstat(path);
    const [pid, host] = (await fs.readFile(path, "utf8")).trim().split(" ");
    const limit = host === undefined ? NAMELESS_AFTER : ABANDONED_AFTER;
    return Date.now() - mtimeMs > limit || (host === hostname() && !isAlive(Number(pid)));
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
