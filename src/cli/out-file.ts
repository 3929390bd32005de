/** A file that a command writes: for its owner only, never in place of another unless told, and whole or not there. */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../errors.ts";
import { newId } from "../util/ids.ts";
import { CommandError } from "./errors.ts";

export class OutFile {
  /** Where it will be. */
  readonly path: string;
  readonly #writing: string;
  readonly #fd: number;
  readonly #remove: () => void;

  /**
   * A new file takes its name at once, so that two commands never write one file; one that replaces another is written
   * beside it and takes its place at the end.
   *
   * @throws CommandError "output_failed" when it is there and may not be replaced, or can't be made
   */
  constructor(path: string, options: { replace: boolean }) {
    const existing = lstatSync(path, { throwIfNoEntry: false });
    if (existing && !options.replace) throw failed(path, "it is there already; --force replaces it");
    this.path = existing ? realpathOf(path) : resolve(path);
    if (existing) checkReplaceable(this.path);
    this.#writing = existing ? join(dirname(this.path), `.everthread-${newId()}.tmp`) : this.path;
    try {
      this.#fd = openSync(this.#writing, "wx", 0o600);
    } catch (error) {
      throw failed(path, messageOf(error), error);
    }
    this.#remove = () => rmSync(this.#writing, { force: true });
    // Also when the process is told to end.
    process.on("exit", this.#remove);
  }

  write(text: string): void {
    try {
      const bytes = Buffer.from(text);
      for (let written = 0; written < bytes.length; ) written += writeSync(this.#fd, bytes, written);
    } catch (error) {
      throw failed(this.path, messageOf(error), error);
    }
  }

  /** Makes it durable, and gives it its name. */
  finish(): void {
    try {
      fsyncSync(this.#fd);
      closeSync(this.#fd);
      if (this.#writing !== this.path) renameSync(this.#writing, this.path);
    } catch (error) {
      throw failed(this.path, messageOf(error), error);
    }
    process.off("exit", this.#remove);
  }
}

function realpathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw failed(path, messageOf(error), error);
  }
}

/** A slip must not cost the conversations themselves. */
function checkReplaceable(path: string): void {
  if (!lstatSync(path).isFile()) throw failed(path, "it is not a regular file");
  const head = Buffer.alloc(16);
  // Left to the end of the process: closing any handle to a file that SQLite has open ends SQLite's locks on it.
  readSync(openSync(path, "r"), head, 0, 16, 0);
  if (head.toString("latin1") === "SQLite format 3\0") throw failed(path, "it is a database, which is never replaced");
}

function failed(path: string, problem: string, cause?: unknown): CommandError {
  return new CommandError("output_failed", `${path} can't be written: ${problem}.`, { cause });
}
