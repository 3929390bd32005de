/** The example's files: one for each thread, replaced as a whole. */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { CheckpointCorruptionError } from "everthread";
import { BACKEND, emptyRecord, type ThreadRecord } from "./thread-record.ts";

export class ThreadFiles {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** @param directory it is made when it is not there */
  static async open(directory: string): Promise<ThreadFiles> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return new ThreadFiles(directory);
  }

  /** An id may be any text, and a file system may fold its case: so the file is named by a hash of it. */
  pathOf(threadId: string): string {
    return join(this.#directory, `${createHash("sha256").update(threadId).digest("hex")}.json`);
  }

  async read(threadId: string): Promise<ThreadRecord> {
    const path = this.pathOf(threadId);
    const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    return text === undefined ? emptyRecord(threadId) : { ...parse(path, text), threadId };
  }

  async readAll(): Promise<ThreadRecord[]> {
    const records: ThreadRecord[] = [];
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      if (name.endsWith(".json")) records.push(parse(path, await readFile(path, "utf8")));
    }
    return records;
  }

  /** Replaces a thread's file and forces it to disk: after a crash there is the old one or the new one, whole. */
  async write(record: ThreadRecord): Promise<void> {
    await this.#replace(this.pathOf(record.threadId), record);
  }

  /** Leaves a file without id and content. It keeps the last position, so that a thread begun anew repeats none. */
  async erase(record: ThreadRecord): Promise<void> {
    await this.#replace(this.pathOf(record.threadId), emptyRecord("", record.lastPosition));
  }

  async #replace(path: string, record: ThreadRecord): Promise<void> {
    const temporary = `${path}.${randomUUID()}.tmp`;
    try {
      await using file = await open(temporary, "wx", 0o600);
      await file.writeFile(JSON.stringify(record));
      await file.sync();
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    // The new name is durable once its directory is; on Windows a directory can't be opened.
    if (process.platform === "win32") return;
    await using directory = await open(this.#directory);
    await directory.sync();
  }
}

function parse(path: string, text: string): ThreadRecord {
  try {
    return JSON.parse(text) as ThreadRecord;
  } catch (cause) {
    throw new CheckpointCorruptionError({ threadId: "(unknown)", backend: BACKEND, rowRef: path, cause });
  }
}
