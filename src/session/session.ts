/**
 * A session: a directory that belongs to one worker and holds one conversation. Opening it checks the configuration, takes
 * ownership, finds the store that is there or makes one, and gives an agent all that it needs.
 */
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { checkSessionConfig, type PersistenceOptions, type SessionBackend, type SessionConfig } from "./config.ts";
import { checkRestore, type DetectedStore, detectStore } from "./detect.ts";
import { EventsFile } from "./events-file.ts";
import { refuseNetworkFileSystem } from "./file-system.ts";
import { MEMORY_GUIDANCE, type MemoryTool, memoryTools } from "./memory-tools.ts";
import { SessionOwner } from "./owner.ts";
import { eventsPath, makeDirectory, readablePath } from "./paths.ts";
import { ReadableFile } from "./readable-file.ts";

/** The thread of every session. */
export const SESSION_THREAD = "session";
/** Where the older part of the context is set aside when the configuration does not say. */
const TRIGGER_TOKENS = 100_000;

export interface SessionOptions {
  /** Told of what failed without harm to the conversation: recording an event, writing the export for people. (Default: nobody) */
  onProblem?: ((error: Error) => void) | undefined;
  /** Told how far an older store has come with its index. (Default: nobody) */
  onUpgrade?: ((done: number, total: number) => void) | undefined;
}

export class Session implements AsyncDisposable {
  readonly config: SessionConfig;
  /** "memory" when persistence is not enabled. */
  readonly backend: SessionBackend | "memory";
  readonly checkpointer: Checkpointer;
  readonly threadId: string = SESSION_THREAD;
  /** memory_search and memory_fetch; none where the store can't be searched. */
  readonly tools: readonly MemoryTool[];
  readonly #owner: SessionOwner | undefined;
  readonly #events: EventsFile | undefined;
  readonly #readable: ReadableFile | undefined;
  #closed: Promise<void> | undefined;

  private constructor(
    config: SessionConfig,
    backend: SessionBackend | "memory",
    checkpointer: Checkpointer,
    owner: SessionOwner | undefined,
    options: SessionOptions,
  ) {
    this.config = config;
    this.backend = backend;
    this.checkpointer = checkpointer;
    this.#owner = owner;
    const onFailure = options.onProblem;
    if (config.enabled && config.events) this.#events = new EventsFile(eventsPath(config), { onFailure });
    if (config.enabled && config.readable) {
      this.#readable = new ReadableFile(readablePath(config), checkpointer, this.threadId, onFailure);
    }
    // What lives in memory only has no use for archives of what is forgotten with the process.
    const searchable = config.enabled && checkpointer.capabilities.search === true && checkpointer.archives;
    this.tools = searchable ? memoryTools(searchable, this.threadId, config.search) : [];
  }

  /**
   * Opens a session, as its one worker.
   *
   * @param options the configuration under `persistence`, checked already or not
   * @throws SessionConfigError, SessionOwnedError, SessionAmbiguousError, SessionBackendMismatchError, SessionExistsError,
   *   SessionLeftoverError, SessionPathError, and what the store throws
   */
  static async open(options: PersistenceOptions | SessionConfig, about: SessionOptions = {}): Promise<Session> {
    const config = checkSessionConfig(options);
    if (!config.enabled) {
      const { MemoryCheckpointer } = await import("../checkpoint/memory/checkpointer.ts");
      return new Session(config, "memory", new MemoryCheckpointer(), undefined, about);
    }
    await makeDirectory(config.directory);
    const owner = await SessionOwner.acquire(config.directory);
    let checkpointer: Checkpointer | undefined;
    try {
      const store = await detectStore(config);
      await makeDirectory(config.state);
      const opened: Checkpointer = await openStore(store, config.memory, about);
      checkpointer = opened;
      checkRestore(config, store, (await opened.listThreads({ limit: 1 })).items.length === 0);
      return new Session(config, store.backend, opened, owner, about);
    } catch (error) {
      await checkpointer?.close();
      await owner.release();
      throw error;
    }
  }

  /** What an agent takes from its session, for `new Agent({ model, system, ...session.agentOptions(myTools) })`. */
  agentOptions<T = never>(tools: readonly T[] = []) {
    const { trigger_tokens = TRIGGER_TOKENS, keep_tokens } = this.config.compaction;
    return {
      checkpointer: this.checkpointer,
      threadId: this.threadId,
      tools: [...tools, ...this.tools],
      middleware: this.tools.length === 0 ? [] : [{ systemPrompt: withGuidance }],
      compaction: {
        triggerTokens: trigger_tokens,
        ...(keep_tokens === undefined ? {} : { keepTokens: keep_tokens }),
        keepArchives: this.config.memory_retention.max_archives,
      },
      onEvent: (event: { type: string }) => this.record(event),
    };
  }

  /** Takes what an agent reports: into events.jsonl, and at the end of a run into readable.md, where these are wanted. */
  record(event: { type: string }): void {
    this.#events?.write(event);
    if (event.type === "run_end") this.#readable?.update();
  }

  /** Waits for work in flight, closes the store and gives the session up. Again is harmless. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    try {
      await this.#readable?.finish();
      this.#events?.close();
      await this.checkpointer.close();
    } finally {
      await this.#owner?.release();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** As {@link Session.open}. */
export const openSession = (options: PersistenceOptions | SessionConfig, about?: SessionOptions): Promise<Session> =>
  Session.open(options, about);

async function openStore({ backend, path }: DetectedStore, memory: string, about: SessionOptions) {
  if (backend === "json") {
    const { JsonCheckpointer } = await import("../checkpoint/json/checkpointer.ts");
    return await JsonCheckpointer.open({ state: path, memory });
  }
  await refuseNetworkFileSystem(path);
  const { SqliteCheckpointer } = await import("../checkpoint/sqlite/checkpointer.ts");
  return await SqliteCheckpointer.open(path, { journalMode: "wal", onUpgrade: about.onUpgrade });
}

function withGuidance(system: string): string {
  return system === "" ? MEMORY_GUIDANCE : `${system}\n\n${MEMORY_GUIDANCE}`;
}
