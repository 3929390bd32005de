/**
 * A state.json as a store: reading, and writing in groups. It knows no message.
 *
 * What the file holds is held in memory too, and is read again whenever the file was changed by somebody else. Writes asked for at
 * the same time share one snapshot, each undone alone when it fails; they settle when the snapshot is in place, and until then
 * nobody reads it here. What they made of archives is written before the snapshot that refers to it, and what they removed goes after.
 */
import { constants } from "node:buffer";
import * as fs from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { StoreError, StoreOpenError, StoreReadOnlyError } from "../../db/errors.ts";
import { LockWait } from "../../db/lock-wait.ts";
import { WorkInFlight } from "../../db/work.ts";
import { EverthreadError, messageOf } from "../../errors.ts";
import { FileWriteError, writeFileAtomic } from "../../util/atomic-file.ts";
import { newId } from "../../util/ids.ts";
import { CheckpointCorruptionError } from "../errors.ts";
import { type ArchiveContent, archiveFileOf, readArchive, removeArchive, writeArchive } from "./archive-file.ts";
import { type Claim, removeOldClaims, takeClaim } from "./claim.ts";
import { Draft, type Place } from "./draft.ts";
import { readState, stateText } from "./format.ts";
import { corrupt, type JsonArchive, newState, type State } from "./state.ts";
import { decodeText } from "./text.ts";

export interface StorePlace {
  /** The absolute path of the state.json. */
  path: string;
  /** The absolute path of the directory of archives. */
  memory: string;
  ownThreadId: string;
  readOnly: boolean;
  /** How long another program may be in the middle of a write, in ms. */
  busyTimeoutMs: number;
}

interface Write {
  run: (draft: Draft) => unknown;
  settle: PromiseWithResolvers<unknown>;
  outcome?: { value: unknown } | { error: unknown };
}

/** How much of the file is compared, in bytes: the name of the snapshot is in it. */
const HEAD = 128;
/** Identities that no file has. */
const NO_FILE = "no file";
const UNKNOWN = "unknown";

export class JsonStore {
  readonly place: StorePlace & Place;
  readonly #work = new WorkInFlight();
  #state = newState();
  /** Tells whether the file is still the one that `#state` was read from. */
  #identity = UNKNOWN;
  /** Once there was a file, a missing one is a fault. */
  #found = false;
  #refreshing: Promise<void> | undefined;
  #queue: Write[] = [];
  #flushing = false;
  /** How many snapshots were put in place here. */
  #commits = 0;
  /** A snapshot is being put in place. Until it is, what was there before holds. */
  #replacing = false;

  private constructor(place: StorePlace) {
    const readOne = (threadId: string, archive: JsonArchive) => this.#readArchive(threadId, archive);
    this.place = { ...place, readArchive: readOne };
  }

  /** @throws StoreOpenError, SchemaMismatchError, LockTimeoutError, StoreError */
  static async open(place: StorePlace): Promise<JsonStore> {
    const store = new JsonStore(place);
    await store.#refresh();
    if (place.readOnly) {
      if (store.#identity === NO_FILE) {
        throw new StoreOpenError(`There is no file ${place.path}, and reading creates none.`);
      }
      return store;
    }
    // The first snapshot shows at once whether the directory can be written.
    if (store.#identity === NO_FILE) await store.#write((draft) => draft.touch());
    else await removeOldClaims(await targetOf(place.path), async () => (await store.#current()).snapshot);
    return store;
  }

  /**
   * Reads: `run` gets what is there now. When an archive is missing since the file was changed meanwhile, it is tried again.
   */
  async read<T>(operation: string, run: (state: State) => T | Promise<T>): Promise<T> {
    this.assertOpen(operation);
    return await this.#work.track(this.#readNow(run));
  }

  async #readNow<T>(run: (state: State) => T | Promise<T>): Promise<T> {
    for (;;) {
      const state = await this.#current();
      try {
        return await run(state);
      } catch (error) {
        if (!(error instanceof CheckpointCorruptionError) || (await this.#current()) === state) throw error;
      }
    }
  }

  /** Writes: what `run` did to the draft is undone when it throws. Resolves once it is durable. */
  async write<T>(operation: string, run: (draft: Draft) => T | Promise<T>): Promise<T> {
    this.assertOpen(operation);
    if (this.place.readOnly) throw new StoreReadOnlyError(operation);
    return await this.#work.track(this.#write(run));
  }

  async #write<T>(run: (draft: Draft) => T | Promise<T>): Promise<T> {
    const settle = Promise.withResolvers<unknown>();
    this.#queue.push({ run, settle });
    if (!this.#flushing) void this.#flush();
    return (await settle.promise) as T;
  }

  close(): Promise<void> {
    return this.#work.close(() => {});
  }

  /** @throws StoreClosedError naming the method that was called too late */
  assertOpen(operation: string): void {
    this.#work.assertOpen(operation);
  }

  async #readArchive(threadId: string, archive: JsonArchive): Promise<ArchiveContent> {
    const { memory } = this.place;
    try {
      return await readArchive(memory, threadId, archive);
    } catch (cause) {
      throw corrupt(threadId, archiveFileOf(memory, archive.directory), cause);
    }
  }

  /** What is there now, as far as it is durable. */
  async #current(): Promise<State> {
    if (!this.#replacing) await this.#refresh();
    return this.#state;
  }

  /** Reads the file again if it is another one. Those who ask at the same time share an answer, which is not older than the question. */
  async #refresh(): Promise<void> {
    await this.#refreshing?.catch(() => {});
    this.#refreshing ??= this.#readFile().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
  }

  async #readFile(): Promise<void> {
    const { path } = this.place;
    const begun = this.#commits;
    let file: fs.FileHandle;
    try {
      file = await fs.open(path, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw cantRead(path, error);
      if (this.#found) {
        throw new StoreError(
          `${path} is gone. Nothing was written in its place: put it back, or open the store again.`,
        );
      }
      this.#identity = NO_FILE;
      return;
    }
    this.#found = true;
    try {
      const identity = await identityOf(file);
      if (identity === this.#identity) return;
      const bytes = await file.readFile();
      // What was read before a write of ours is not what is there now.
      if (this.#commits !== begun) return;
      // A file that was changed and can't be read must not be taken for the one that was there.
      this.#identity = UNKNOWN;
      this.#state = readState(decodeText(bytes), path);
      this.#identity = identity;
    } catch (error) {
      throw cantRead(path, error);
    } finally {
      await file.close();
    }
  }

  /** Writes what is queued until nothing is. Every failure goes to the writes it concerns; this never throws. */
  async #flush(): Promise<void> {
    this.#flushing = true;
    await nextTurn();
    while (this.#queue.length > 0) await this.#commitTogether(this.#queue.splice(0));
    this.#flushing = false;
  }

  async #commitTogether(batch: Write[]): Promise<void> {
    let claim: Claim | undefined;
    let failure: unknown;
    let replaced = false;
    try {
      let draft: Draft | undefined;
      while (!draft) {
        claim = await this.#claim();
        draft = await this.#attempt(batch);
        if (!draft) await claim.release(false);
      }
      if (draft.changed) {
        await this.#replace(draft);
        replaced = true;
      }
    } catch (error) {
      failure = wrapped(this.place.path, error);
    }
    this.#replacing = false;
    // One that can't be removed is passed over, here at once and elsewhere once this process has ended.
    await claim?.release(replaced).catch(() => {});
    for (const { settle, outcome } of batch) {
      if (failure !== undefined) settle.reject(failure);
      else if (outcome && "value" in outcome) settle.resolve(outcome.value);
      else settle.reject(outcome?.error);
    }
  }

  /** Waits until nobody else is in the middle of a write, and the snapshot here is the last one. */
  async #claim(): Promise<Claim> {
    let wait: LockWait | undefined;
    for (;;) {
      await this.#refresh();
      const { snapshot } = this.#state;
      const claim = await takeClaim(await targetOf(this.place.path), snapshot);
      if (claim) {
        const isLast = await this.#refresh().then(
          () => this.#state.snapshot === snapshot,
          async (error: unknown) => {
            await claim.release(false);
            throw error;
          },
        );
        if (isLast) return claim;
        await claim.release(false);
      } else {
        wait ??= new LockWait(this.place.path, this.place.busyTimeoutMs);
        const expired = wait.expired(undefined);
        if (expired) throw expired;
        await sleep(wait.nextDelay());
      }
    }
  }

  /** Runs the writes of a batch, each on what those before it left. Undefined when a person edited the file meanwhile. */
  async #attempt(batch: readonly Write[]): Promise<Draft | undefined> {
    const base = this.#state;
    let draft = new Draft(this.place, base);
    for (const write of batch) {
      const next = new Draft(this.place, base, draft);
      try {
        write.outcome = { value: await write.run(next) };
        draft = next;
      } catch (error) {
        write.outcome = { error };
      }
    }
    await this.#refresh();
    return this.#state === base ? draft : undefined;
  }

  async #replace(draft: Draft): Promise<void> {
    const { path, memory } = this.place;
    const state = draft.toState(newId());
    const text = stateText(state);
    this.#replacing = true;
    for (const [directory, content] of draft.files) await writeArchive(memory, directory, content);
    try {
      await writeFileAtomic(path, text);
    } catch (error) {
      // Whatever is there now, it is read again.
      this.#identity = UNKNOWN;
      throw error;
    }
    const identity = await identityAt(path, state.snapshot).catch(() => UNKNOWN);
    this.#found = true;
    this.#state = state;
    this.#identity = identity;
    this.#commits++;
    for (const directory of state.removed) {
      // What can't be removed now is only in the way; the next write tries again.
      const gone = await removeArchive(memory, directory).then(
        () => true,
        () => false,
      );
      if (gone) state.removed.delete(directory);
    }
  }
}

/** The file that a path leads to, through links, whether or not it is there yet. */
async function targetOf(path: string): Promise<string> {
  try {
    return await fs.realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return join(await fs.realpath(dirname(path)), basename(path));
  }
}

/** What tells one state of a file from another. No two snapshots have it in common: each begins with a name of its own. */
async function identityOf(file: fs.FileHandle): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD), 0, HEAD, 0);
  return [dev, ino, size, mtimeNs, ctimeNs, buffer.toString("latin1", 0, bytesRead)].join();
}

/** As above of the file at a path, if it still is the given snapshot. */
async function identityAt(path: string, snapshot: string): Promise<string> {
  const file = await fs.open(path, "r");
  try {
    const identity = await identityOf(file);
    return identity.includes(snapshot) ? identity : UNKNOWN;
  } finally {
    await file.close();
  }
}

function cantRead(path: string, error: unknown): unknown {
  if (error instanceof EverthreadError) return error;
  return new StoreOpenError(
    `${path} can't be read: ${sentence(error)} Nothing was changed. Mend it, or put a backup in its place.`,
    { cause: error },
  );
}

function wrapped(path: string, error: unknown): unknown {
  if (error instanceof FileWriteError) return new StoreError(error.message, { cause: error });
  if (error instanceof EverthreadError) return error;
  const problem =
    error instanceof RangeError
      ? `its text would be longer than a string may be (${constants.MAX_STRING_LENGTH} characters). Compact its threads, or keep them in SQLite.`
      : sentence(error);
  return new StoreError(`${path} can't be written: ${problem} Nothing of this operation was written.`, {
    cause: error,
  });
}

function sentence(error: unknown): string {
  return messageOf(error).replace(/[^.]$/, "$&.");
}
