/**
 * A thread as its agent holds it: the messages and the extra in memory, and behind them the store. Each append passes the
 * revision it follows, so that this agent and another writer never interleave.
 */
import { archiveIdOf } from "../checkpoint/archive-rules.ts";
import type { ArchiveInfo } from "../checkpoint/archives.ts";
import type { Checkpoint, Checkpointer, LogEntry, Page } from "../checkpoint/checkpointer.ts";
import { ThreadConflictError, UnsupportedError } from "../checkpoint/errors.ts";
import { admitMessage, admitMessages } from "../messages/admit.ts";
import { copyJsonObject, type JsonObject, setOwn } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";

export interface Store {
  checkpointer: Checkpointer;
  threadId: string;
}

const EMPTY: Checkpoint = { messages: [], extra: {}, revision: 0, parentThreadId: null, tail: false };
const PAGE = 1000;

export class ThreadLog {
  /** The active messages, as the store has them. */
  messages: Message[] = [];
  /** What stands for the messages before them; undefined while nothing was set aside. */
  summary: string | undefined;
  /** How many of the messages, from the first, were there when the last compaction was made. */
  kept = 0;
  /** The thread's JSON state: one object for the agent's life, since hooks and tools keep it. */
  readonly extra: JsonObject = {};
  readonly store: Store | undefined;
  #revision: number | undefined;
  #compactedUpTo: number | undefined;
  /** Without a store: how many compactions there were, and the last message that they dropped. */
  #dropped: { times: number; last: Message | undefined } = { times: 0, last: undefined };
  #savedExtra = new Map<string, string>();
  #queue: { message: Message; settle: PromiseWithResolvers<void> }[] = [];
  #writing = false;
  #refreshing: Promise<void> | undefined;

  /**
   * @param store where the thread is kept; without one it lives in memory
   * @param begins what it begins with, where nothing is stored (Default: nothing)
   */
  constructor(store: Store | undefined, begins: Pick<Checkpoint, "messages" | "summary" | "kept" | "extra"> = EMPTY) {
    this.store = store;
    this.#adoptContext(begins);
    this.#adoptExtra(begins.extra);
  }

  /**
   * Brings the memory up to the store: the first time all of the active context, later what another process added.
   *
   * @throws ThreadConflictError when the thread was deleted under this agent, CheckpointCorruptionError
   */
  async refresh(): Promise<void> {
    // Two at once would both add the same tail.
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    if (!this.store) return;
    const { checkpointer, threadId } = this.store;
    const known = this.#revision;
    let loaded = await checkpointer.load(threadId, { after: known });
    const isTail = loaded?.tail && known !== undefined && this.#isCompactedAs(loaded);
    // Another process has compacted it: what is in memory begins too early.
    if (loaded?.tail && known !== undefined && !isTail) loaded = await checkpointer.load(threadId);
    if (!loaded && known) throw new ThreadConflictError(threadId, known, 0);
    const checkpoint = loaded ?? EMPTY;
    if (isTail) this.messages = [...this.messages, ...checkpoint.messages];
    else this.#adoptContext(checkpoint);
    this.#revision = checkpoint.revision;
    this.#adoptExtra(checkpoint.extra);
  }

  /** Takes up a compaction that another process has made, if nobody has added a message; else the next append will tell. */
  async followCompaction(): Promise<void> {
    const loaded = await this.store?.checkpointer.load(this.store.threadId);
    if (loaded && loaded.revision === this.#revision) this.#adoptContext(loaded);
  }

  /** Makes the next refresh read everything: after a failure, what is in memory may be wrong. */
  forget(): void {
    this.#revision = undefined;
  }

  /**
   * Adds one message and gives it as it is stored. Messages that come while one is being written go together in the
   * next write, in the order they came: parallel tools pay for few writes.
   */
  async append<M extends Message>(message: M): Promise<M> {
    const admitted = admitMessage(message);
    const settle = Promise.withResolvers<void>();
    this.#queue.push({ message: admitted, settle });
    if (!this.#writing) void this.#write();
    await settle.promise;
    return admitted as M;
  }

  /**
   * Sets the first `count` messages aside and puts the summary in their place. Only while no append is under way. Without a
   * store they are gone: what it gives is an archive that retention has emptied.
   *
   * @throws ThreadConflictError, CompactionConflictError, and what the store throws; the thread is then as it was
   */
  async compact(count: number, about: { summary: string; system: string | null }): Promise<ArchiveInfo> {
    const archive = this.store ? await this.#archive(this.store, count, about) : this.#drop(count, about.summary);
    this.messages = this.messages.slice(count);
    this.kept = this.messages.length;
    this.summary = archive.summary;
    this.#compactedUpTo = archive.upTo;
    return archive;
  }

  async #archive({ checkpointer, threadId }: Store, count: number, about: { summary: string; system: string | null }) {
    const { archives } = checkpointer;
    if (!archives) throw new UnsupportedError(checkpointer.capabilities.backend, "compaction", "it has no archives.");
    const positions: number[] = [];
    for (let after: number | null = this.#compactedUpTo ?? 0; after !== null; ) {
      const page: Page<LogEntry, number> = await checkpointer.listMessages(threadId, { after, limit: PAGE });
      positions.push(...page.items.map(({ position }) => position));
      after = page.next;
    }
    const [upTo, revision] = [positions[count - 1], positions.at(-1) ?? 0];
    // The store's messages must be those in memory: the summary is of these.
    if (upTo === undefined || positions.length !== this.messages.length || revision !== this.#revision) {
      throw new ThreadConflictError(threadId, this.#revision ?? 0, revision);
    }
    return await archives.compact(threadId, { ...about, upTo, expectedRevision: this.#revision });
  }

  #drop(count: number, summary: string): ArchiveInfo {
    const now = new Date();
    this.#dropped = { times: this.#dropped.times + 1, last: this.messages[count - 1] };
    const before = this.#compactedUpTo ?? 0;
    const place = { upTo: before + count, atRevision: before + this.messages.length };
    const archiveId = archiveIdOf(this.#dropped.times);
    return { archiveId, createdAt: now, ...place, messageCount: 0, summary, prunedAt: now };
  }

  /** The last message, also when a compaction has set it aside; undefined when there is none, or it was pruned. */
  async lastMessage(): Promise<Message | undefined> {
    const last = this.messages.at(-1);
    if (last || this.#compactedUpTo === undefined) return last;
    if (!this.store) return this.#dropped.last;
    const { checkpointer, threadId } = this.store;
    const { items } = await checkpointer.listMessages(threadId, { after: this.#compactedUpTo - 1, limit: 1 });
    return items[0]?.position === this.#compactedUpTo ? items[0].message : undefined;
  }

  /**
   * The messages of a run, in order, also those that a compaction has set aside; without those that retention has removed. When
   * some were set aside this reads the log from `after` on.
   *
   * @param after a position before the run's first message (Default: the start of the log)
   */
  async runMessages(runId: string, after = 0): Promise<Message[]> {
    const isOfRun = (message: Message | undefined): message is Message => message?.run_id === runId;
    const active = this.messages.filter(isOfRun);
    // A run whose first message is active, with another one's before it, is all there.
    const isWhole = active.length > 0 && !isOfRun(this.messages[0]);
    if (!this.store || this.#compactedUpTo === undefined || isWhole) return active;
    const { checkpointer, threadId } = this.store;
    const found: Message[] = [];
    for (let next: number | null = after; next !== null && next < this.#compactedUpTo; ) {
      const page: Page<LogEntry, number> = await checkpointer.listMessages(threadId, { after: next, limit: PAGE });
      for (const { position, message, error } of page.items) {
        if (position > this.#compactedUpTo) break;
        if (error) throw error;
        if (isOfRun(message)) found.push(message);
      }
      next = page.next;
    }
    return [...found, ...active];
  }

  /** Adds several messages, all or none. Only while no other append is under way. */
  async appendAll(messages: readonly Message[]): Promise<Message[]> {
    const admitted = admitMessages(messages);
    if (this.store) {
      const { checkpointer, threadId } = this.store;
      this.#revision = await checkpointer.append(threadId, admitted, { expectedRevision: this.#revision });
    }
    this.messages.push(...admitted);
    return admitted;
  }

  /** Saves the keys of extra that changed since they were last saved or read. */
  async saveExtra(): Promise<void> {
    const changed: JsonObject = {};
    const current = copyJsonObject(this.extra, "extra");
    for (const [key, value] of Object.entries(current)) {
      if (this.#savedExtra.get(key) !== JSON.stringify(value)) setOwn(changed, key, value);
    }
    if (Object.keys(changed).length === 0) return;
    if (this.store) {
      const { checkpointer, threadId } = this.store;
      await checkpointer.saveExtra(threadId, changed, { expectedRevision: this.#revision });
    }
    for (const [key, value] of Object.entries(changed)) this.#savedExtra.set(key, JSON.stringify(value));
  }

  /** The revision of what is in memory; undefined before the first refresh, and where nothing is stored. */
  get revision(): number | undefined {
    return this.#revision;
  }

  /** Every failure goes to the messages it concerns; this never throws. */
  async #write(): Promise<void> {
    this.#writing = true;
    // Calls made in one turn of the event loop are written together.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0);
      try {
        await this.appendAll(batch.map(({ message }) => message));
        for (const { settle } of batch) settle.resolve();
      } catch (error) {
        for (const { settle } of [...batch, ...this.#queue.splice(0)]) settle.reject(error);
      }
    }
    this.#writing = false;
  }

  #isCompactedAs({ compactedUpTo, summary }: Checkpoint): boolean {
    return compactedUpTo === this.#compactedUpTo && summary === this.summary;
  }

  #adoptContext(context: Pick<Checkpoint, "messages" | "summary" | "kept" | "compactedUpTo">): void {
    this.messages = [...context.messages];
    this.summary = context.summary;
    this.kept = context.kept ?? 0;
    this.#compactedUpTo = context.compactedUpTo;
  }

  #adoptExtra(extra: JsonObject): void {
    for (const key of Object.keys(this.extra)) delete this.extra[key];
    for (const [key, value] of Object.entries(extra)) setOwn(this.extra, key, value);
    this.#savedExtra = new Map(Object.entries(extra).map(([key, value]) => [key, JSON.stringify(value)]));
  }
}
