/** Rows as values: what stands in a file, or the error that names the file and the place in it. */
import { messageFromJson } from "../../messages/codec.ts";
import type { Message } from "../../messages/schema.ts";
import type { LogEntry } from "../checkpointer.ts";
import { logEntry } from "../log-entry.ts";
import type { StoredMessage } from "../thread-state.ts";
import { archiveFileOf } from "./archive-file.ts";
import { corrupt, type JsonThread } from "./state.ts";
import type { StorePlace } from "./store.ts";

export class Rows {
  readonly #threadId: string;
  readonly #thread: JsonThread | undefined;
  readonly #place: Pick<StorePlace, "path" | "memory">;

  constructor(threadId: string, thread: JsonThread | undefined, place: Pick<StorePlace, "path" | "memory">) {
    this.#threadId = threadId;
    this.#thread = thread;
    this.#place = place;
  }

  /** @throws CheckpointCorruptionError */
  readonly message = (stored: StoredMessage): Message =>
    this.read(this.#refOf(stored), () => messageFromJson(stored.json));

  readonly entry = (stored: StoredMessage): LogEntry => {
    const { position, createdAt } = stored;
    const about = { position, rowRef: this.#refOf(stored), createdAt: new Date(createdAt) };
    return logEntry(about, () => this.message(stored));
  };

  /** @throws CheckpointCorruptionError naming the row */
  read<T>(rowRef: string, run: () => T): T {
    try {
      return run();
    } catch (cause) {
      throw corrupt(this.#threadId, rowRef, cause);
    }
  }

  #refOf({ position }: StoredMessage): string {
    const archive = this.#thread?.archives.find(({ upTo }) => position <= upTo);
    const file = archive ? archiveFileOf(this.#place.memory, archive.directory) : this.#place.path;
    return `${file}#position=${position}`;
  }
}
