/** `everthread/mem0`: a memory history as the history store of Mem0's TypeScript package. */
import type { HistoryRecord, MemoryHistory, NewHistoryRecord } from "./history.ts";

/** A row of {@link Mem0HistoryManager.getHistory}, with the names of Mem0's table. */
export interface Mem0HistoryRow {
  id: string;
  memory_id: string;
  previous_value: string | null;
  new_value: string | null;
  action: string;
  created_at: string | null;
  updated_at: string | null;
  is_deleted: number;
}

interface Mem0Change {
  memoryId: string;
  previousValue: string | null;
  newValue: string | null;
  action: string;
  createdAt?: string;
  updatedAt?: string;
  isDeleted?: number;
}

/** The interface `HistoryManager` of `mem0ai/oss`, with every optional method there. */
export interface Mem0HistoryManager {
  addHistory(
    memoryId: string,
    previousValue: string | null,
    newValue: string | null,
    action: string,
    createdAt?: string,
    updatedAt?: string,
    isDeleted?: number,
  ): Promise<void>;
  batchAddHistory(records: Mem0Change[]): Promise<void>;
  /** The newest change first, as Mem0's own store gives them. */
  getHistory(memoryId: string): Promise<Mem0HistoryRow[]>;
  saveMessages(messages: { role: string; content: string; name?: string }[], sessionScope: string): Promise<void>;
  getLastMessages(
    sessionScope: string,
    limit?: number,
  ): Promise<{ role: string; content: string; name?: string; createdAt: string }[]>;
  reset(): Promise<void>;
  /** Begins to close the history; its own close() can be awaited. */
  close(): void;
}

/**
 * Lets Mem0 keep its history here: what it logs can be read by everything that reads a memory history, its Python package
 * included.
 *
 * @param history where to keep it; it stays the caller's
 */
export function mem0HistoryManager(history: MemoryHistory): Mem0HistoryManager {
  return {
    async addHistory(memoryId, previousValue, newValue, action, createdAt, updatedAt, isDeleted) {
      const change = { memoryId, previousValue, newValue, action };
      await history.add(toRecord({ ...change, ...times(createdAt, updatedAt), isDeleted: isDeleted ?? 0 }));
    },
    async batchAddHistory(records) {
      await history.addBatch(records.map(toRecord));
    },
    async getHistory(memoryId) {
      return (await history.get(memoryId)).reverse().map(toRow);
    },
    async saveMessages(messages, sessionScope) {
      const admitted = messages.map(({ role, content, name }) => ({ role, content, name: name ?? null }));
      await history.saveMessages(sessionScope, admitted);
    },
    async getLastMessages(sessionScope, limit) {
      const messages = await history.recentMessages(sessionScope, { limit });
      return messages.map(({ role, content, name, created_at }) => ({
        role,
        content: content ?? "",
        ...(name === null ? {} : { name }),
        createdAt: created_at ?? "",
      }));
    },
    reset: () => history.reset(),
    close() {
      void history.close();
    },
  };
}

function times(
  createdAt: string | undefined,
  updatedAt: string | undefined,
): Pick<Mem0Change, "createdAt" | "updatedAt"> {
  return { ...(createdAt == null ? {} : { createdAt }), ...(updatedAt == null ? {} : { updatedAt }) };
}

/** A change without a time gets the present one. */
function toRecord(change: Mem0Change): NewHistoryRecord {
  return {
    memory_id: change.memoryId,
    old_memory: change.previousValue ?? null,
    new_memory: change.newValue ?? null,
    event: change.action,
    created_at: change.createdAt ?? undefined,
    updated_at: change.updatedAt ?? null,
    is_deleted: Boolean(change.isDeleted ?? 0),
  };
}

function toRow(record: HistoryRecord): Mem0HistoryRow {
  return {
    id: record.id,
    memory_id: record.memory_id,
    previous_value: record.old_memory,
    new_value: record.new_memory,
    action: record.event,
    created_at: record.created_at,
    updated_at: record.updated_at,
    is_deleted: Number(record.is_deleted),
  };
}
