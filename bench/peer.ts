/** Another program under a measure, in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Peer {
  /** Has it do what a line names, and gives how many milliseconds that took. */
  ask(line: string): Promise<number>;
  /** Ends it, and waits for its end. */
  end(): Promise<void>;
}

/** Starts a program that does what each line of its input names and prints how many milliseconds it took. */
export function startPeer(command: string, args: readonly string[]): Peer {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  process.on("exit", () => child.kill());
  child.unref();
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`${command} ${args[0]} has ended.`);
      return Number(value);
    },
    async end() {
      child.stdin.end();
      await closed;
    },
  };
}
