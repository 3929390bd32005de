/** The Python with Mem0 in it, for tests that run both programs on one file; and a process of it that takes calls. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { PeerProcess } from "../support/peer.ts";

const OWN = fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));
const PEER = fileURLToPath(new URL("./mem0_peer.py", import.meta.url));
const CHECK = "import mem0.memory.storage, importlib.metadata as m; print(m.version('mem0ai'))";
// Importing Mem0 must neither write into the home directory nor call home.
const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", MEM0_TELEMETRY: "False", MEM0_DIR: "/nonexistent" };

/** Named by EVERTHREAD_MEM0_PYTHON, else `.venv/bin/python` here, else `python3`; or why there is none. */
export const mem0Python: { path: string; version: string } | { path: null; reason: string } = find();

function find(): typeof mem0Python {
  const named = process.env.EVERTHREAD_MEM0_PYTHON;
  if (named) {
    const found = check(named);
    // It was asked for by name: skipping would hide that it is wrong.
    if (!found) throw new Error(`EVERTHREAD_MEM0_PYTHON is ${named}, and it can't import mem0.`);
    return found;
  }
  return (
    (existsSync(OWN) ? check(OWN) : undefined) ??
    check("python3") ?? { path: null, reason: "no Python with mem0ai; set EVERTHREAD_MEM0_PYTHON to one" }
  );
}

function check(path: string): { path: string; version: string } | undefined {
  try {
    const version = execFileSync(path, ["-c", CHECK], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], env });
    return { path, version: version.trim() };
  } catch {
    return undefined;
  }
}

/** A running `mem0_peer.py`. */
export class Mem0Peer extends PeerProcess {
  constructor(path: string) {
    if (mem0Python.path === null) throw new Error(mem0Python.reason);
    super(mem0Python.path, [PEER, path], env);
  }

  /** Calls a method, one call at a time. Rejects with `<Python's exception>: <message>`. */
  call(name: string, args: unknown[], keywords: Record<string, unknown> = {}): Promise<unknown> {
    return this.send([name, args, keywords]);
  }
}
