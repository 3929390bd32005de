/**
 * The contract of a memory history: the log of every change to what is remembered, and for each scope a window of its
 * last messages. Records are the rows of Mem0's `SQLiteManager`, with its names.
 *
 * Order is the order of writing, never that of the times, which a clock set back or a caller may choose freely.
 * Texts are exact, U+0000 included; a lone surrogate becomes U+FFFD. Ids and scopes are compared by code point.
 * What goes in and what comes out are copies. After `close()` every method rejects with StoreClosedError.
 */

/** What a store can do: true, or the reason why not. */
export type HistoryCapability = true | { readonly reason: string };

export interface HistoryCapabilities {
  /** The backend's name: "memory", "sqlite", … */
  readonly backend: string;
  /** What was acknowledged survives the end of the process. */
  readonly durable: HistoryCapability;
  /** Several processes may use one store at once. */
  readonly multiProcess: HistoryCapability;
}

/** A time: a Date, milliseconds since 1970, or ISO 8601 text; text without an offset is UTC. */
export type TimeInput = Date | number | string;

/** One change to one memory, as the log holds it. */
export interface HistoryRecord {
  /** The change's own id. */
  id: string;
  /** The memory that changed. */
  memory_id: string;
  /** Its value before; null when there was none. */
  old_memory: string | null;
  /** Its value after; null when there is none. */
  new_memory: string | null;
  /** "ADD", "UPDATE", "DELETE", or any other word, which is kept as it is. */
  event: string;
  /** When the memory came to be, in ISO 8601; null where the writer gave none. */
  created_at: string | null;
  /** When it was changed; null for the first change, and where the writer gave none. */
  updated_at: string | null;
  is_deleted: boolean;
  /** Who changed it. */
  actor_id: string | null;
  /** The role of who changed it, such as "user". */
  role: string | null;
}

/** A change to be added. Only `memory_id` and `event` must be given. */
export interface NewHistoryRecord {
  /** (Default: a new UUID) */
  id?: string | undefined;
  memory_id: string;
  old_memory?: string | null | undefined;
  new_memory?: string | null | undefined;
  event: string;
  /** (Default: now; null for none) */
  created_at?: TimeInput | null | undefined;
  /** (Default: none) */
  updated_at?: TimeInput | null | undefined;
  /** (Default: whether the event is "DELETE") */
  is_deleted?: boolean | undefined;
  actor_id?: string | null | undefined;
  role?: string | null | undefined;
}

/** A message in a scope's window. */
export interface WindowMessage {
  role: string;
  content: string | null;
  /** Who said it, where a role is not enough. */
  name: string | null;
  created_at: string | null;
}

export interface NewWindowMessage {
  role: string;
  content: string | null;
  name?: string | null | undefined;
  /** For display: the order is that of writing. (Default: now; null for none) */
  created_at?: TimeInput | null | undefined;
}

/** One page; hand `next` back as `after` for the following one. Null when there is no more. */
export interface HistoryPage<T, Cursor> {
  items: T[];
  next: Cursor | null;
}

export interface HistoryListOptions {
  /** Only changes to this memory. (Default: to any) */
  memoryId?: string | undefined;
  /** Only changes by this actor; null for those without one. (Default: by anyone) */
  actorId?: string | null | undefined;
  /** Only this event. (Default: any) */
  event?: string | undefined;
  /**
   * Only changes at this time or later, and before that one. A change's time is its `updated_at`, else its `created_at`;
   * one without a time is left out. (Default: at any time)
   */
  since?: TimeInput | undefined;
  until?: TimeInput | undefined;
  /** Only what follows this position, the `next` of an earlier page. (Default: from the start) */
  after?: number | undefined;
  /** How many at most, 0 to 10,000. (Default: 100) */
  limit?: number | undefined;
}

export interface MemoryHistory extends AsyncDisposable {
  readonly capabilities: HistoryCapabilities;

  /**
   * Logs one change, and gives it as it is stored.
   *
   * @throws InvalidRecordError, InvalidIdError, DuplicateRecordError when its id is in the log
   */
  add(record: NewHistoryRecord): Promise<HistoryRecord>;

  /** As {@link MemoryHistory.add} for many, all or none, in their order. @throws as add, naming the record by its index */
  addBatch(records: readonly NewHistoryRecord[]): Promise<HistoryRecord[]>;

  /** Every change to a memory, in the order written; empty when there is none. */
  get(memoryId: string): Promise<HistoryRecord[]>;

  /** Changes to all memories in the order written, a page at a time. @throws InvalidArgumentError, InvalidRecordError */
  list(options?: HistoryListOptions): Promise<HistoryPage<HistoryRecord, number>>;

  /**
   * The value that a memory had at a time, from its log: that of the last change written whose time is not later.
   * Undefined when it did not exist then, or had been deleted.
   */
  restoreAt(memoryId: string, time: TimeInput): Promise<string | undefined>;

  /**
   * Adds messages to a scope's window, all or none, and then removes all but its newest.
   *
   * @param scope 1 to 1,024 characters; no other scope is touched
   * @param options.keep how many the window holds, 0 to 10,000 (Default: 10)
   */
  saveMessages(
    scope: string,
    messages: readonly NewWindowMessage[],
    options?: { keep?: number | undefined },
  ): Promise<void>;

  /** The newest messages of a scope, oldest first. @param options.limit at most, 0 to 10,000 (Default: 10) */
  recentMessages(scope: string, options?: { limit?: number | undefined }): Promise<WindowMessage[]>;

  /** The scopes that hold messages, in code point order; the cursor is a scope. */
  listScopes(page?: {
    after?: string | undefined;
    limit?: number | undefined;
  }): Promise<HistoryPage<{ scope: string; messageCount: number }, string>>;

  /** Erases everything, the log and all windows. The store stays open and can be used. */
  reset(): Promise<void>;

  /** Waits for work in flight and closes. Closing twice is harmless. */
  close(): Promise<void>;
}
