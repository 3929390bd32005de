/** `everthread/history/postgres`: the Postgres engine, shared by many machines. Each write is one transaction of one round trip. */
import { StoreClosedError, StoreReadOnlyError } from "../../db/errors.ts";
import { PostgresStore, type PostgresTarget, type Row, type Statement, type Value } from "../../db/postgres.ts";
import { escapeText } from "../../db/postgres-text.ts";
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
import {
  admitMessages,
  admitRecord,
  admitRecords,
  checkKeep,
  checkList,
  checkMemoryId,
  checkScope,
  checkWindowLimit,
} from "../records.ts";
import { valueAt } from "../restore.ts";
import { admitInstant, Clock, storedTime } from "../times.ts";
import { checkOptions, type PostgresHistoryOptions } from "./options.ts";
import * as Q from "./queries.ts";
import { piecesOf, readMessage, readRecord } from "./rows.ts";
import { inSchema, verifySchema } from "./schema.ts";
import { Turns } from "./turns.ts";

export type { PgClient, PgPool, PostgresConfig, PostgresTarget } from "../../db/postgres.ts";
export { type HistoryMigration, migrateHistory } from "./migrate.ts";
export { historySchemaSql } from "./schema.ts";
export type { PostgresHistoryOptions };

const UNIQUE_VIOLATION = "23505";
/** What writers of changes lock; those of a window lock its scope. */
const LOG = "log";

export class PostgresMemoryHistory implements MemoryHistory {
  readonly capabilities: HistoryCapabilities = { backend: "postgres", durable: true, multiProcess: true };
  /** The Postgres schema that holds the tables. */
  readonly schema: string;
  readonly #store: PostgresStore;
  readonly #readOnly: boolean;
  readonly #clock = new Clock();
  readonly #turns = new Turns();
  #closing: Promise<void> | undefined;

  private constructor(store: PostgresStore, schema: string, readOnly: boolean) {
    this.#store = store;
    this.#readOnly = readOnly;
    this.schema = schema;
  }

  /**
   * Opens a history: connects, and checks that the tables are there. It creates nothing: migrations belong to the host
   * (`historySchemaSql`).
   *
   * @param target a connection string, pg's options, or `{ pool }`, a pool of the host, which is never ended here
   * @throws StoreOpenError, SchemaUninitializedError, SchemaMismatchError, PoolExhaustedError, InvalidArgumentError
   */
  static async open(target: PostgresTarget, options: PostgresHistoryOptions = {}): Promise<PostgresMemoryHistory> {
    checkOptions(options);
    const store = await PostgresStore.open(target, options);
    try {
      await store.connect();
      const schema = await verifySchema(store, options.schema);
      return new PostgresMemoryHistory(store, schema, options.readOnly ?? false);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  async add(record: NewHistoryRecord): Promise<HistoryRecord> {
    this.#assertOpen("add");
    const admitted = admitRecord(record, this.#clock);
    await this.#insert("add", [admitted]);
    return admitted;
  }

  async addBatch(records: readonly NewHistoryRecord[]): Promise<HistoryRecord[]> {
    this.#assertOpen("addBatch");
    const admitted = admitRecords(records, this.#clock);
    if (admitted.length > 0) await this.#insert("addBatch", admitted);
    return admitted;
  }

  async get(memoryId: string): Promise<HistoryRecord[]> {
    this.#assertOpen("get");
    return await this.#logOf("get", checkMemoryId(memoryId));
  }

  async list(options: HistoryListOptions = {}): Promise<HistoryPage<HistoryRecord, number>> {
    this.#assertOpen("list");
    const { memoryId, actorId, event, since, until, after, limit } = checkList(options);
    const rows = await this.#read("list", Q.LIST, [
      after,
      limit + 1,
      memoryId ?? null,
      String(actorId === undefined),
      typeof actorId === "string" ? escapeText(actorId) : null,
      event === undefined ? null : escapeText(event),
      since === undefined ? null : storedTime(since),
      until === undefined ? null : storedTime(until),
    ]);
    const found = rows.slice(0, limit).map(readRecord);
    return {
      items: found.map(({ record }) => record),
      next: rows.length > limit ? (found.at(-1)?.position ?? after) : null,
    };
  }

  async restoreAt(memoryId: string, time: TimeInput): Promise<string | undefined> {
    this.#assertOpen("restoreAt");
    checkMemoryId(memoryId);
    const instant = admitInstant(time, "time");
    return valueAt(await this.#logOf("restoreAt", memoryId), instant);
  }

  async saveMessages(
    scope: string,
    messages: readonly NewWindowMessage[],
    options: { keep?: number | undefined } = {},
  ): Promise<void> {
    this.#assertOpen("saveMessages");
    checkScope(scope);
    const keep = checkKeep(options.keep);
    const admitted = admitMessages(messages, this.#clock);
    if (admitted.length === 0) return;
    // What the window has no room for would be removed at once.
    const kept = admitted.slice(Math.max(0, admitted.length - keep));
    const inserts = piecesOf(kept, "messages").map((piece) => this.#statement(Q.INSERT_MESSAGES, [scope, piece]));
    await this.#write("saveMessages", `scope ${scope}`, [...inserts, this.#statement(Q.TRIM_SCOPE, [scope, keep])]);
  }

  async recentMessages(scope: string, options: { limit?: number | undefined } = {}): Promise<WindowMessage[]> {
    this.#assertOpen("recentMessages");
    checkScope(scope);
    const limit = checkWindowLimit(options.limit);
    const rows = await this.#read("recentMessages", Q.RECENT_MESSAGES, [scope, limit]);
    return rows.map(readMessage).reverse();
  }

  async listScopes(
    page: { after?: string | undefined; limit?: number | undefined } = {},
  ): Promise<HistoryPage<{ scope: string; messageCount: number }, string>> {
    this.#assertOpen("listScopes");
    const after = page.after === undefined ? "" : checkScope(page.after);
    const limit = checkLimit(page.limit);
    const rows = await this.#read("listScopes", Q.SCOPES, [after, limit + 1]);
    const items = rows.slice(0, limit).map(({ scope, count }) => ({ scope: scope ?? "", messageCount: Number(count) }));
    return { items, next: rows.length > limit ? (items.at(-1)?.scope ?? after) : null };
  }

  async reset(): Promise<void> {
    this.#assertOpen("reset");
    await this.#write(
      "reset",
      LOG,
      Q.RESET.map((text) => this.#statement(text)),
    );
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await this.#turns.settled();
      await this.#store.close();
    })();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #insert(operation: string, records: readonly HistoryRecord[]): Promise<void> {
    const ids = new Set<string>();
    for (const { id } of records) {
      if (ids.has(id)) throw new DuplicateRecordError(id);
      ids.add(id);
    }
    const inserts = piecesOf(records, "records").map((piece) => this.#statement(Q.INSERT_RECORDS, [piece]));
    await this.#write(operation, LOG, inserts, async (error) => {
      const { cause } = Object(error) as { cause?: { code?: unknown } };
      if (cause?.code !== UNIQUE_VIOLATION) return error;
      const [row] = await this.#read(operation, Q.FIRST_TAKEN, [JSON.stringify([...ids])]);
      return typeof row?.id === "string" ? new DuplicateRecordError(row.id) : error;
    });
  }

  async #logOf(operation: string, memoryId: string): Promise<HistoryRecord[]> {
    const rows = await this.#read(operation, Q.RECORDS_OF_MEMORY, [memoryId]);
    return rows.map((row) => readRecord(row).record);
  }

  #statement(sql: string, values: readonly Value[] = []): Statement {
    return { text: inSchema(sql, this.schema), values };
  }

  async #read(operation: string, sql: string, values: readonly Value[]): Promise<Row[]> {
    const [rows = []] = await this.#store.read(operation, [this.#statement(sql, values)]);
    return rows;
  }

  /**
   * Writers of one log or one scope go one after the other, and those of this process in the order of their calls. So
   * positions become visible in their order, and a page never passes over a change that is yet to be committed.
   *
   * @param explain gives the error to throw for that of the store (Default: the same)
   */
  async #write(
    operation: string,
    part: string,
    statements: readonly Statement[],
    explain: (error: unknown) => unknown = (error) => error,
  ): Promise<void> {
    if (this.#readOnly) throw new StoreReadOnlyError(operation);
    const lock = `everthread history ${JSON.stringify(this.schema)} ${part}`;
    await this.#turns.take(part, async () => {
      try {
        await this.#store.write(operation, [lock], statements);
      } catch (error) {
        throw await explain(error);
      }
    });
  }

  #assertOpen(operation: string): void {
    if (this.#closing) throw new StoreClosedError(operation);
  }
}
