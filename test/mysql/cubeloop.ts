/** The real CubeLoop with its MySQL backend, when there is a Python that has it. */
import { type ChildProcessWithoutNullStreams, execFile, execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
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
export class CubeloopPeer implements AsyncDisposable {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #stderr = "";

  constructor(url: string) {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
    this.#process = spawn(String(python.path), [here("cubeloop_peer.py"), url], { env });
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Calls a function of the peer, one call at a time. Rejects with `<Python's exception>: <message>`. */
  async call(name: string, ...args: unknown[]): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify([name, ...args])}\n`);
    const line = await this.#lines.next();
    if (line.done) throw new Error(`Python has ended: ${this.#stderr}`);
    const reply = JSON.parse(line.value) as { value: unknown } | { error: string };
    if ("error" in reply) throw new Error(reply.error);
    return reply.value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once("close", resolve));
    this.#process.stdin.end();
    await ended;
  }
}
