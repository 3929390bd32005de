/** The real CubeLoop with its MySQL backend, when there is a Python that has it. */
import { execFile, execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PeerProcess } from "../support/peer.ts";
import { python } from "../support/python.ts";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Whether that Python can speak to MySQL. */
export const hasCubeloop = python.path !== null && canImport(python.path);
/** What to add to the name of a suite that needs it. */
export const cubeloopLabel =
  python.path === null
    ? `skipped: ${python.reason}`
    : hasCubeloop
      ? `cubeloop ${python.version}`
      : "skipped: the Python has no cubeloop[mysql]";

function canImport(path: string): boolean {
  try {
    execFileSync(path, ["-c", "import aiomysql, cubeloop.checkpointer.mysql"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** The statements that make CubeLoop's own tables. */
export async function cubeloopSchema(): Promise<string[]> {
  const { stdout } = await promisify(execFile)(String(python.path), [here("cubeloop_schema.py")]);
  return JSON.parse(stdout) as string[];
}

/** A running cubeloop_peer.py: CubeLoop's checkpointer on one database, called by name. */
export class CubeloopPeer extends PeerProcess {
  constructor(url: string) {
    super(String(python.path), [here("cubeloop_peer.py"), url], { ...process.env, PYTHONDONTWRITEBYTECODE: "1" });
  }

  /** Calls a function of the peer, one call at a time. Rejects with `<Python's exception>: <message>`. */
  call(name: string, ...args: unknown[]): Promise<unknown> {
    return this.send([name, ...args]);
  }
}
