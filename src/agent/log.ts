/**
 * A thread as its agent holds it: the messages and the extra in memory, and behind them the store. Each append passes the
 * revision it follows, so that this agent and another writer never interleave.
 */
import type { Checkpoint, Checkpointer } from "../checkpoint/checkpointer.ts";
import { ThreadConflictError } from "../checkpoint/errors.ts";
import { admitMessage, admitMessages } from "../messages/admit.ts";
import { copyJsonObject, type JsonObject, setOwn } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";

export interface Store {
  checkpointer: Checkpointer;
  threadId: string;
}

export class ThreadLog {
  /** What the thread holds, as the store has it. */
  messages: Message[] = [];
  /** The thread's JSON state: one object for the agent's life, since hooks and tools keep it. */
  readonly extra: JsonObject = {};
  readonly store: Store | undefined;
  #revision: number | undefined;
  #savedExtra = new Map<string, string>();
  #queue: { message: Message; settle: PromiseWithResolvers<void> }[] = [];
  #writing = false;
  #refreshing: Promise<void> | undefined;

  /** @param store where the thread is kept; without one it lives in memory, beginning with `messages` and `extra` */
  constructor(store: Store | undefined, messages: readonly Message[] = [], extra: JsonObject = {}) {
    this.store = store;
    this.messages = [...messages];
    this.#adoptExtra(extra);
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
    const loaded = await checkpointer.load(threadId, { after: known });
    if (!loaded && known) throw new ThreadConflictError(threadId, known, 0);
    const checkpoint: Checkpoint = loaded ?? {
      messages: [],
      extra: {},
      revision: 0,
      parentThreadId: null,
      tail: false,
    };
    this.messages =
      checkpoint.tail && known !== undefined ? [...this.messages, ...checkpoint.messages] : checkpoint.messages;
    this.#revision = checkpoint.revision;
    this.#adoptExtra(checkpoint.extra);
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

  #adoptExtra(extra: JsonObject): void {
    for (const key of Object.keys(this.extra)) delete this.extra[key];
    for (const [key, value] of Object.entries(extra)) setOwn(this.extra, key, value);
    this.#savedExtra = new Map(Object.entries(extra).map(([key, value]) => [key, JSON.stringify(value)]));
  }
}
