/** The next snapshot, while it is being made of the one that is there. */
import type { StoredArchive, Thread } from "../thread-state.ts";
import { type ArchiveContent, archiveText, readArchiveText } from "./archive-file.ts";
import { nameArchive } from "./names.ts";
import { copyThread, type JsonArchive, type JsonThread, newThread, type State, soundThread } from "./state.ts";

export interface Place {
  /** The path of the state.json, as errors name it. */
  path: string;
  /** The thread whose archives have plain names. */
  ownThreadId: string;
  /** Reads an archive that the snapshot on disk refers to. */
  readArchive(threadId: string, archive: JsonArchive): Promise<ArchiveContent>;
}

export class Draft {
  readonly threads: Map<string, JsonThread>;
  readonly #place: Place;
  readonly #base: State;
  readonly #removed: Set<string>;
  readonly #files: Map<string, string>;
  #revision: number;
  #changed: boolean;

  /** @param begun what this goes on from, and leaves as it is (Default: the snapshot) */
  constructor(place: Place, base: State, begun?: Draft) {
    this.#place = place;
    this.#base = base;
    this.threads = new Map((begun ?? base).threads);
    this.#removed = new Set(begun ? begun.#removed : base.removed);
    this.#files = new Map(begun ? begun.#files : []);
    this.#changed = begun ? begun.#changed : false;
    this.#revision = begun ? begun.#revision : base.revision;
  }

  /** Whether there is anything to write. */
  get changed(): boolean {
    return this.#changed;
  }

  /** The texts of new archives, by the names of their directories. */
  get files(): ReadonlyMap<string, string> {
    return this.#files;
  }

  /** @param snapshot its name */
  toState(snapshot: string): State {
    return { ...this.#base, snapshot, threads: this.threads, removed: this.#removed, revision: this.#revision };
  }

  /** Has it written even when nothing was changed. */
  touch(): void {
    this.#changed = true;
  }

  /** The next position in the log. */
  readonly nextPosition = (): number => ++this.#revision;

  /** The thread, to be read only. @throws CheckpointCorruptionError */
  get(threadId: string): JsonThread | undefined {
    return soundThread(this, this.#place.path, threadId);
  }

  /** The thread, to be changed; a new one when there is none. @throws CheckpointCorruptionError */
  edit(threadId: string): JsonThread {
    const thread = this.get(threadId);
    const copy = thread ? copyThread(thread) : newThread();
    this.put(threadId, copy);
    return copy;
  }

  put(threadId: string, thread: JsonThread): void {
    this.threads.set(threadId, thread);
    this.#changed = true;
  }

  /** Removes a thread with its archives, damaged or not. */
  remove(threadId: string): void {
    const thread = this.threads.get(threadId);
    if (!this.threads.delete(threadId)) return;
    this.#changed = true;
    for (const { directory } of thread?.archives ?? []) this.removeArchive(directory);
  }

  /** Notes that an archive's directory is to go once the snapshot is in place. */
  removeArchive(directory: string): void {
    this.#files.delete(directory);
    this.#removed.add(directory);
  }

  /** What an archive holds. @throws CheckpointCorruptionError when its file is missing or damaged */
  async readArchive(threadId: string, archive: JsonArchive): Promise<ArchiveContent> {
    const text = this.#files.get(archive.directory);
    if (text !== undefined) return readArchiveText(threadId, archive, text);
    return await this.#place.readArchive(threadId, archive);
  }

  /** Puts an archive into a file of its own, and gives what the thread keeps of it. */
  addArchive(
    threadId: string,
    archive: StoredArchive,
    content: { previousSummary: string | null; messages: Thread["messages"]; rests: JsonThread["rests"] },
  ): JsonArchive {
    const { messages } = content;
    // Nothing that the snapshot on disk refers to may be overwritten: it stands until the next one is in place.
    const taken = new Set(
      [this.#base.threads, this.threads].flatMap((threads) =>
        [...threads.values()].flatMap(({ archives }) => archives.map(({ directory }) => directory)),
      ),
    );
    const isTaken = (name: string) => taken.has(name) || this.#files.has(name);
    const directory = nameArchive(threadId, archive.archiveId, this.#place.ownThreadId, isTaken);
    this.#removed.delete(directory);
    if (!archive.prunedAt) {
      this.#files.set(directory, archiveText(threadId, archive, content.previousSummary, messages, content.rests));
    }
    const { archiveId, createdAt, upTo, atRevision, summary, prunedAt } = archive;
    return {
      ...{ archiveId, createdAt, upTo, atRevision, summary, prunedAt, directory },
      messageCount: messages.length,
      firstAt: messages[0]?.createdAt ?? null,
      lastAt: messages.at(-1)?.createdAt ?? null,
    };
  }
}
