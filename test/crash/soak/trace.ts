/** Records what a writer does to its files with strace, and plays that to a simulated disk. */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { Disk } from "./disk.ts";
import type { Said, WriterScript } from "./ops.ts";
import { WRITER } from "./process.ts";

/** What it needs: strace, and the right to trace. */
export const noStrace: string | undefined = (() => {
  const run = spawnSync("strace", ["-e", "trace=none", "true"], { encoding: "utf8" });
  if (run.status === 0) return undefined;
  return run.error ? "strace is not installed" : `strace can't trace here: ${run.stderr.trim().split("\n")[0]}`;
})();

/** Everything that changes a file or its name. What the simulated disk does not know is an error there. */
const CHANGES =
  "openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,ftruncate,truncate,fallocate,link,linkat,symlink,copy_file_range,sendfile,io_uring_enter";

/** One call, as strace prints it: its texts and paths decoded. */
interface Call {
  name: string;
  /** The path of its file descriptor, if it begins with one. */
  path: string | undefined;
  fd: number;
  texts: Buffer[];
  flags: string;
  numbers: number[];
  result: number;
}

/** Runs a writer to its end, and gives what it did. @param extra more options of strace, such as faults to inject */
export async function recordWriter(
  script: WriterScript,
  file: string,
  extra: readonly string[] = [],
): Promise<{ code: number | null; said: Said[]; stderr: string }> {
  const options = ["-f", "-y", "-xx", "-s", "10000000", "-o", file, "-e", `trace=${CHANGES}`, ...extra];
  const node = [process.execPath, "--no-warnings", WRITER, script.store.kind];
  const child = spawn("strace", [...options, ...node], { stdio: ["pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.end(`${JSON.stringify(script)}\n`);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  const lines = stdout.split("\n").slice(0, -1);
  return { code, said: lines.map((line) => JSON.parse(line)), stderr };
}

/** The calls of a trace that succeeded, in the order in which they ended. */
export function* callsOf(file: string): Generator<Call> {
  const begun = new Map<string, string>();
  for (const line of readFileSync(file, "latin1").split("\n")) {
    const [, process = "", rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (rest.endsWith("<unfinished ...>")) {
      begun.set(process, rest.slice(0, -"<unfinished ...>".length));
      continue;
    }
    const [resumed] = /^<\.\.\. \w+ resumed>/.exec(rest) ?? [];
    const whole = resumed ? `${begun.get(process) ?? ""}${rest.slice(resumed.length)}` : rest;
    const [, name = "", args = "", result = ""] = /^(\w+)\((.*)\) += (-?\d+)/.exec(whole) ?? [];
    if (name === "" || Number(result) < 0) continue;
    const [, fd, path] = /^(\d+)<([^>]*)>/.exec(args) ?? [];
    const plain = args.replace(/"[^"]*"/g, "");
    yield {
      name,
      fd: Number(fd ?? -1),
      path: path === undefined ? undefined : decoded(path).toString(),
      texts: [...args.matchAll(/"([^"]*)"/g)].map(([, text = ""]) => decoded(text)),
      flags: plain,
      numbers: [...plain.replace(/^\d+<[^>]*>/, "").matchAll(/(?<=, )\d+/g)].map(Number),
      result: Number(result),
    };
  }
}

function decoded(text: string): Buffer {
  return Buffer.from(text.replaceAll("\\x", ""), "hex");
}

/** Plays a call to the disk, whose root is a directory that was there and empty. Gives whether it changed what is on it. */
export class Player {
  readonly #disk: Disk;
  readonly #root: string;
  /** Where a plain write to an open file goes on. */
  readonly #offsets = new Map<number, number>();

  constructor(disk: Disk, root: string) {
    this.#disk = disk;
    this.#root = root;
  }

  play(call: Call): boolean {
    const { name, numbers, texts, flags, fd } = call;
    const disk = this.#disk;
    const first = this.#within(call.path ?? texts[0]?.toString());
    if (name === "openat" || name === "open") {
      const path = this.#within(texts[0]?.toString());
      this.#offsets.set(call.result, 0);
      if (path === undefined || !flags.includes("O_CREAT") || disk.has(path))
        return this.#refuseTruncation(path, flags);
      disk.create(path);
      return true;
    }
    if (first === undefined) return false;
    switch (name) {
      case "pwrite64":
        disk.write(first, numbers.at(-1) ?? 0, (texts[0] ?? Buffer.alloc(0)).subarray(0, call.result));
        return true;
      case "write": {
        const offset = this.#offsets.get(fd) ?? 0;
        disk.write(first, offset, (texts[0] ?? Buffer.alloc(0)).subarray(0, call.result));
        this.#offsets.set(fd, offset + call.result);
        return true;
      }
      case "ftruncate":
        disk.truncate(first, numbers[0] ?? 0);
        return true;
      case "fsync":
      case "fdatasync":
        disk.sync(first);
        return true;
      case "unlink":
      case "rmdir":
        disk.remove(first);
        return true;
      case "mkdir":
        disk.makeDirectory(first);
        return true;
      case "rename":
        disk.rename(first, this.#within(texts[1]?.toString()) ?? "");
        return true;
      default:
        throw new Error(`The simulated disk does not know ${name}.`);
    }
  }

  #refuseTruncation(path: string | undefined, flags: string): false {
    if (path !== undefined && flags.includes("O_TRUNC")) throw new Error("The simulated disk does not know O_TRUNC.");
    return false;
  }

  /** The path within the root; undefined outside of it. */
  #within(path: string | undefined): string | undefined {
    if (path === undefined || !(path === this.#root || path.startsWith(`${this.#root}/`))) return undefined;
    return relative(this.#root, path);
  }
}
