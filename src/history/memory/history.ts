/** The in-memory engine: the whole contract in plain lists, for tests and for programs that keep nothing. */
import { StoreClosedError } from "../../db/errors.ts";
import { compareCodePoints } from "../../util/ids.ts";
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
  isWithin,
} from "../records.ts";
import { valueAt } from "../restore.ts";
import { admitInstant, Clock } from "../times.ts";

const GONE = { reason: "It lives in this process's memory." };

export class InMemoryHistory implements MemoryHistory {
  readonly capabilities: HistoryCapabilities = { backend: "memory", durable: GONE, multiProcess: GONE };
  readonly #clock = new Clock();
  #log: HistoryRecord[] = [];
  #ids = new Set<string>();
  #byMemory = new Map<string, HistoryRecord[]>();
  #windows = new Map<string, WindowMessage[]>();
  #closed = false;

  async add(record: NewHistoryRecord): Promise<HistoryRecord> {
    this.#assertOpen("add");
    const admitted = admitRecord(record, this.#clock);
    this.#append([admitted]);
    return copy(admitted);
  }

  async addBatch(records: readonly NewHistoryRecord[]): Promise<HistoryRecord[]> {
    this.#assertOpen("addBatch");
    const admitted = admitRecords(records, this.#clock);
    this.#append(admitted);
    return admitted.map(copy);
  }

  async get(memoryId: string): Promise<HistoryRecord[]> {
    this.#assertOpen("get");
    return (this.#byMemory.get(checkMemoryId(memoryId)) ?? []).map(copy);
  }

  async list(options: HistoryListOptions = {}): Promise<HistoryPage<HistoryRecord, number>> {
    this.#assertOpen("list");
    const page = checkList(options);
    const { memoryId, actorId, event, after, limit } = page;
    const found: { position: number; record: HistoryRecord }[] = [];
    for (let i = after; i < this.#log.length && found.length <= limit; i++) {
      const record = this.#log[i];
      if (!record || (memoryId !== undefined && record.memory_id !== memoryId)) continue;
      if (actorId !== undefined && record.actor_id !== actorId) continue;
      if (event !== undefined && record.event !== event) continue;
      if (isWithin(record, page)) found.push({ position: i + 1, record });
    }
    const items = found.slice(0, limit);
    return {
      items: items.map(({ record }) => copy(record)),
      next: found.length > limit ? (items.at(-1)?.position ?? after) : null,
    };
  }

  async restoreAt(memoryId: string, time: TimeInput): Promise<string | undefined> {
    this.#assertOpen("restoreAt");
    checkMemoryId(memoryId);
    return valueAt(this.#byMemory.get(memoryId) ?? [], admitInstant(time, "time"));
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
    const all = [...(this.#windows.get(scope) ?? []), ...admitted];
    if (keep === 0) this.#windows.delete(scope);
    else this.#windows.set(scope, all.slice(-keep));
  }

  async recentMessages(scope: string, options: { limit?: number | undefined } = {}): Promise<WindowMessage[]> {
    this.#assertOpen("recentMessages");
    checkScope(scope);
    const limit = checkWindowLimit(options.limit);
    return limit === 0 ? [] : (this.#windows.get(scope) ?? []).slice(-limit).map(copy);
  }

  async listScopes(
    page: { after?: string | undefined; limit?: number | undefined } = {},
  ): Promise<HistoryPage<{ scope: string; messageCount: number }, string>> {
    this.#assertOpen("listScopes");
    const after = page.after === undefined ? "" : checkScope(page.after);
    const limit = checkLimit(page.limit);
    const rest = [...this.#windows]
      .filter(([scope]) => compareCodePoints(scope, after) > 0)
      .sort(([a], [b]) => compareCodePoints(a, b));
    const items = rest.slice(0, limit).map(([scope, messages]) => ({ scope, messageCount: messages.length }));
    return { items, next: rest.length > limit ? (items.at(-1)?.scope ?? after) : null };
  }

  async reset(): Promise<void> {
    this.#assertOpen("reset");
    this.#log = [];
    this.#ids = new Set();
    this.#byMemory = new Map();
    this.#windows = new Map();
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #append(records: HistoryRecord[]): void {
    const ids = new Set<string>();
    for (const { id } of records) {
      if (this.#ids.has(id) || ids.has(id)) throw new DuplicateRecordError(id);
      ids.add(id);
    }
    for (const record of records) {
      this.#log.push(record);
      this.#ids.add(record.id);
      const log = this.#byMemory.get(record.memory_id);
      if (log) log.push(record);
      else this.#byMemory.set(record.memory_id, [record]);
    }
  }

  #assertOpen(operation: string): void {
    if (this.#closed) throw new StoreClosedError(operation);
  }
}

/** Records are flat, so this is all of one. */
function copy<T extends object>(record: T): T {
  return { ...record };
}
