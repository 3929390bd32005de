/** The Python with CubeLoop in it, for tests that run both programs on one file; and a process of it that takes calls. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PeerProcess } from "./peer.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const INTEROP = `${ROOT}test/interop/`;
const CHECK = "import aiosqlite, importlib.metadata as m; print(m.version('cubeloop'))";

export interface FoundPython {
  path: string;
  /** The version of cubeloop that it has. */
  version: string;
}

/** The Python to use, or why there is none. Named by EVERTHREAD_PYTHON, else `.venv/bin/python` here, else `python3`. */
export const python: FoundPython | { path: null; reason: string } = findPython();

/** What to add to the name of a suite that needs Python: the version that runs, or why it is skipped. */
export const pythonLabel = python.path === null ? `skipped: ${python.reason}` : `cubeloop ${python.version}`;

/** Whether there is a Python that has this package too, and what to add to the name of a suite that needs it. */
export function pythonWith(name: string): { found: boolean; label: string } {
  if (python.path === null) return { found: false, label: pythonLabel };
  try {
    execFileSync(python.path, ["-c", `import ${name}`], { stdio: "ignore" });
    return { found: true, label: `${pythonLabel}, ${name}` };
  } catch {
    return { found: false, label: `skipped: this Python has no ${name}` };
  }
}

function findPython(): typeof python {
  const named = process.env.EVERTHREAD_PYTHON;
  if (named) {
    const found = check(named);
    // It was asked for by name: skipping would hide that it is wrong.
    if (!found) throw new Error(`EVERTHREAD_PYTHON is ${named}, and it can't import cubeloop and aiosqlite.`);
    return found;
  }
  const own = `${ROOT}.venv/bin/python`;
  return (
    (existsSync(own) ? check(own) : undefined) ??
    check("python3") ?? { path: null, reason: "no Python with cubeloop[sqlite]; set EVERTHREAD_PYTHON to one" }
  );
}

function check(path: string): FoundPython | undefined {
  try {
    const version = execFileSync(path, ["-c", CHECK], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return { path, version: version.trim() };
  } catch {
    return undefined;
  }
}

function pathOfPython(): string {
  if (python.path === null) throw new Error(python.reason);
  return python.path;
}

const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };

/** Runs a script of test/interop to its end and gives the JSON it printed. */
export async function runPython(script: string, ...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(pathOfPython(), [`${INTEROP}${script}`, ...args], { env });
  return JSON.parse(stdout);
}

/** A running `peer.py` or one of its like: CubeLoop's checkpointer on one store, called by name. */
export class PythonPeer extends PeerProcess {
  /** @param script the program of test/interop that opens `path` (Default: "peer.py", for a SQLite file) */
  constructor(path: string, script = "peer.py") {
    super(pathOfPython(), [`${INTEROP}${script}`, path], env);
  }

  /** Calls a function of peer.py, one call at a time. Rejects with `<Python's exception>: <message>`. */
  call(name: string, ...args: unknown[]): Promise<unknown> {
    return this.send([name, ...args]);
  }
}
