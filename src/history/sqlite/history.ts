/** The SQLite engine: Mem0's file, with the log of all memories and the windows of all scopes. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type SqliteOptions, SqliteStore } from "../../db/sqlite.ts";
import { openSqliteFile } from "../../db/sqlite-file.ts";
import { checkSqliteOptions } from "../../db/sqlite-options.ts";
import { checkLimit } from "../../util/limit.ts";
import { DuplicateRecordError } from "../errors.ts";
import type {
  HistoryCapabilities,
  HistoryListOptions,
  HistoryPage,
  HistoryRecord,
  MemoryHistory,
  NewHistoryRecord,
  NewWindowMessage,
  TimeInput,
  WindowMessage,
} from "../history.ts";
import { newRecordId } from "../record-id.ts";
import {
  admitMessages,
  admitRecord,
  admitRecords,
  type CheckedList,
  checkKeep,
  checkList,
  checkMemoryId,
  checkScope,
  checkWindowLimit,
  isWithin,
} from "../records.ts";
import { valueAt } from "../restore.ts";
import { admitInstant, Clock } from "../times.ts";
import type { Migration } from "./migrate.ts";
import * as Q from "./queries.ts";
import { RowReader } from "./rows.ts";
import { prepareSchema } from "./schema.ts";

export type { Migration, SqliteOptions };

/** How much of the log a listing reads at once: some ten milliseconds' worth. */
const PIECE_SIZE = 5000;

export class SqliteMemoryHistory implements MemoryHistory {
  readonly capabilities: HistoryCapabilities;
  /** The absolute path of the file, or ":memory:". */
  readonly path: string;
  /** What was migrated when it was opened; undefined when the file was up to date. */
  readonly migration: Migration | undefined;
  readonly #store: SqliteStore;
  readonly #rows: RowReader;
  readonly #clock = new Clock();

  private constructor(store: SqliteStore, path: string, migration: Migration | undefined) {
    this.#store = store;
    this.#rows = new RowReader(store);
    this.path = path;
    this.migration = migration;
    const inMemory = path === ":memory:" ? { reason: "It lives in this process's memory (:memory:)." } : true;
    this.capabilities = { backend: "sqlite", durable: inMemory, multiProcess: inMemory };
  }

  /**
   * Opens a history, creating the file and its tables when they are not there, and rebuilding an older `history` table.
   * The directory must exist; a relative path is resolved now. A new file may be read and written by its owner only, and is
   * in WAL mode unless `journalMode` says otherwise; one that is there keeps its mode.
   *
   * @param path a file name, a file: URL, or ":memory:"
   * @throws StoreOpenError, SchemaMismatchError, LockTimeoutError, StoreError, InvalidArgumentError
   */
  static async open(path: string | URL, options: SqliteOptions = {}): Promise<SqliteMemoryHistory> {
    checkSqliteOptions(options, "SqliteMemoryHistory");
    const file = openSqliteFile(path, options.readOnly ?? false);
    const store = await SqliteStore.open(file, options);
    try {
      const migration = await prepareSchema(store, file.path);
      if (options.journalMode) await store.setJournalMode(options.journalMode);
      return new SqliteMemoryHistory(store, file.path, migration);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  async add(record: NewHistoryRecord): Promise<HistoryRecord> {
    this.#store.assertOpen("add");
    const admitted = admitRecord(record, this.#clock);
    await this.#store.write("add", () => this.#insert(admitted));
    return admitted;
  }

  async addBatch(records: readonly NewHistoryRecord[]): Promise<HistoryRecord[]> {
    this.#store.assertOpen("addBatch");
    const admitted = admitRecords(records, this.#clock);
    if (admitted.length === 0) return admitted;
    await this.#store.write("addBatch", () => {
      for (const record of admitted) this.#insert(record);
    });
    return admitted;
  }

  async get(memoryId: string): Promise<HistoryRecord[]> {
    this.#store.assertOpen("get");
    checkMemoryId(memoryId);
    return await this.#store.read("get", () => this.#logOf(memoryId));
  }

  async list(options: HistoryListOptions = {}): Promise<HistoryPage<HistoryRecord, number>> {
    this.#store.assertOpen("list");
    const page = checkList(options);
    const found: { position: number; record: HistoryRecord }[] = [];
    for (let after: number | undefined = page.after; after !== undefined && found.length <= page.limit; ) {
      const start: number = after;
      after = await this.#store.read("list", () => this.#listPiece(page, start, found));
      // Others get their turn between two pieces.
      await nextTurn();
    }
    const items = found.slice(0, page.limit);
    return {
      items: items.map(({ record }) => record),
      next: found.length > page.limit ? (items.at(-1)?.position ?? page.after) : null,
    };
  }

  async restoreAt(memoryId: string, time: TimeInput): Promise<string | undefined> {
    this.#store.assertOpen("restoreAt");
    checkMemoryId(memoryId);
    const instant = admitInstant(time, "time");
    return await this.#store.read("restoreAt", () => valueAt(this.#logOf(memoryId), instant));
  }

  async saveMessages(
    scope: string,
    messages: readonly NewWindowMessage[],
    options: { keep?: number | undefined } = {},
  ): Promise<void> {
    this.#store.assertOpen("saveMessages");
    checkScope(scope);
    const keep = checkKeep(options.keep);
    const admitted = admitMessages(messages, this.#clock);
    if (admitted.length === 0) return;
    // What the window has no room for would be removed at once.
    const rows = admitted.slice(Math.max(0, admitted.length - keep));
    await this.#store.write("saveMessages", () => {
      const insert = this.#store.prepare(Q.INSERT_MESSAGE);
      for (const { role, content, name, created_at } of rows) {
        insert.run(newRecordId(), scope, role, content, name, created_at);
      }
      this.#store.prepare(Q.TRIM_SCOPE).run({ scope, keep });
    });
  }

  async recentMessages(scope: string, options: { limit?: number | undefined } = {}): Promise<WindowMessage[]> {
    this.#store.assertOpen("recentMessages");
    checkScope(scope);
    const limit = checkWindowLimit(options.limit);
    return await this.#store.read("recentMessages", () =>
      this.#rows.messages(Q.RECENT_MESSAGES, { scope, limit }).reverse(),
    );
  }

  async listScopes(
    page: { after?: string | undefined; limit?: number | undefined } = {},
  ): Promise<HistoryPage<{ scope: string; messageCount: number }, string>> {
    this.#store.assertOpen("listScopes");
    const after = page.after === undefined ? "" : checkScope(page.after);
    const limit = checkLimit(page.limit);
    return await this.#store.read("listScopes", () => {
      const items: { scope: string; messageCount: number }[] = [];
      let scope = this.#scopeAfter(after);
      while (scope !== undefined && items.length < limit) {
        items.push({ scope, messageCount: Number(this.#store.prepare(Q.COUNT_SCOPE).get(scope)?.count) });
        scope = this.#scopeAfter(scope);
      }
      return { items, next: scope === undefined ? null : (items.at(-1)?.scope ?? after) };
    });
  }

  async reset(): Promise<void> {
    await this.#store.write("reset", () => {
      for (const sql of Q.RESET) this.#store.exec(sql);
    });
  }

  /** Copies the whole file to a new one while it is in use. @throws StoreOpenError when `path` exists */
  async backup(path: string): Promise<void> {
    await this.#store.backup(path);
  }

  /** What SQLite's own check finds wrong with the file; empty when it is sound. */
  async checkIntegrity(): Promise<string[]> {
    return await this.#store.checkIntegrity();
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #insert(record: HistoryRecord): void {
    const { id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role } = record;
    const deleted = Number(is_deleted);
    try {
      this.#store
        .prepare(Q.INSERT_RECORD)
        .run(id, memory_id, old_memory, new_memory, event, created_at, updated_at, deleted, actor_id, role);
    } catch (error) {
      if (this.#store.prepare(Q.HAS_RECORD).get(id)) throw new DuplicateRecordError(id);
      throw error;
    }
  }

  #logOf(memoryId: string): HistoryRecord[] {
    return this.#rows.records(Q.RECORDS_OF_MEMORY, { memory: memoryId }).map(({ record }) => record);
  }

  /** Adds what one piece of the log has to what was found. Gives where the next piece begins; undefined at the end. */
  #listPiece(
    page: CheckedList,
    start: number,
    found: { position: number; record: HistoryRecord }[],
  ): number | undefined {
    const { memoryId, actorId, event } = page;
    const piece = { after: start, size: PIECE_SIZE, ...(memoryId === undefined ? {} : { memory: memoryId }) };
    const chosen = {
      anyActor: Number(actorId === undefined),
      actor: actorId ?? null,
      anyEvent: Number(event === undefined),
      event: event ?? null,
    };
    const [endSql, listSql] =
      memoryId === undefined ? [Q.PIECE_END, Q.LIST_PIECE] : [Q.PIECE_OF_MEMORY_END, Q.LIST_PIECE_OF_MEMORY];
    for (const item of this.#rows.records(listSql, { ...piece, ...chosen })) {
      if (isWithin(item.record, page)) found.push(item);
    }
    if (found.length > page.limit) return undefined;
    const end = this.#store.prepare(endSql).get(piece);
    return Number(end?.size) < PIECE_SIZE ? undefined : Number(end?.last);
  }

  #scopeAfter(scope: string): string | undefined {
    return (this.#store.prepare(Q.NEXT_SCOPE).get(scope)?.scope as string | null | undefined) ?? undefined;
  }
}
