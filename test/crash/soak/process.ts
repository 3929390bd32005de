/** A writer as a process: started ahead, told its script, killed, and asked what it had said until then. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Said, StoreAt, WriterScript } from "./ops.ts";

export const WRITER = fileURLToPath(new URL("./writer.mjs", import.meta.url));

export interface WriterEnd {
  said: Said[];
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
}

export class Writer {
  readonly ended: Promise<WriterEnd>;
  readonly #child: ChildProcess;
  readonly #said: Said[] = [];
  #onSaid: (() => void) | undefined;

  /** Starts a process that waits for its script. It loads the engine meanwhile. */
  constructor(kind: StoreAt["kind"]) {
    const child = spawn(process.execPath, ["--no-warnings", WRITER, kind], { stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    // A killed process may leave half a line, which says nothing.
    let rest = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#said.push(JSON.parse(line));
      this.#onSaid?.();
    });
    child.stdin?.on("error", () => {});
    this.ended = new Promise((resolve) => {
      child.on("close", (code, signal) => resolve({ said: this.#said, code, signal, stderr }));
    });
  }

  /** Gives it its script. */
  begin(script: WriterScript): void {
    this.#child.stdin?.write(`${JSON.stringify(script)}\n`);
  }

  /** Waits until it has said that so many operations are done. */
  acknowledged(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#onSaid = () => {
        if (this.#said.filter(([what]) => what === "done").length >= count) resolve();
      };
      this.#onSaid();
    });
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Writers that are started while others run. */
export class WriterPool {
  readonly #kind: StoreAt["kind"];
  readonly #waiting: Writer[] = [];

  constructor(kind: StoreAt["kind"], ahead: number) {
    this.#kind = kind;
    for (let i = 0; i < ahead; i++) this.#waiting.push(new Writer(kind));
  }

  take(): Writer {
    this.#waiting.push(new Writer(this.#kind));
    return this.#waiting.shift() ?? new Writer(this.#kind);
  }

  async close(): Promise<void> {
    for (const writer of this.#waiting) writer.kill();
    await Promise.all(this.#waiting.map(({ ended }) => ended));
  }
}
