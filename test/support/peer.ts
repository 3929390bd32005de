/** A process of another program that takes calls: one line of JSON each way, one call at a time. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export class PeerProcess implements AsyncDisposable {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #stderr = "";

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#process = spawn(program, args, { env });
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Sends a call and gives its value. Rejects with `<Python's exception>: <message>`. */
  protected async send(call: readonly unknown[]): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify(call)}\n`);
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
