/** Rows as values. They are read as arrays, in the order of the columns in queries.ts: objects take twice the time. */
import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import { StoreError } from "../../db/errors.ts";
import type { SqliteStore, StatementSync } from "../../db/sqlite.ts";
import type { HistoryRecord, WindowMessage } from "../history.ts";
import * as Q from "./queries.ts";

type Values = readonly SQLOutputValue[];
type Parameters = Record<string, SQLInputValue>;

/** Reads changes and messages, exactly also where the driver would end a text at U+0000. Only inside a read. */
export class RowReader {
  readonly #store: SqliteStore;
  #exact: number | undefined;

  constructor(store: SqliteStore) {
    this.#store = store;
  }

  /** Changes, each with its position. @param sql a query of changes @param parameters without `exact` */
  records(sql: string, parameters: Parameters): { position: number; record: HistoryRecord }[] {
    return this.#rows(sql, parameters).map((row) => this.#record(row));
  }

  messages(sql: string, parameters: Parameters): WindowMessage[] {
    return this.#rows(sql, parameters).map((row) => this.#message(row));
  }

  #rows(sql: string, parameters: Parameters): Values[] {
    this.#exact ??= Number(String(this.#store.prepare(Q.IS_EXACT).get()?.text).length === 3);
    return arrays(this.#store.prepare(sql), { ...parameters, exact: this.#exact });
  }

  #record(row: Values): { position: number; record: HistoryRecord } {
    const [position, id, memory, old, value, event, actor, role, created, updated, deleted, hasNul] = row;
    const exact = hasNul ? this.#texts(Q.TEXTS_OF_RECORD, position) : [memory, old, value, event, actor, role];
    const text = (item: unknown) => textOf(item, "history", position);
    const record = {
      id: text(id) ?? "",
      memory_id: text(exact[0]) ?? "",
      old_memory: text(exact[1]),
      new_memory: text(exact[2]),
      event: text(exact[3]) ?? "",
      created_at: text(created),
      updated_at: text(updated),
      is_deleted: Boolean(deleted),
      actor_id: text(exact[4]),
      role: text(exact[5]),
    };
    return { position: Number(position), record };
  }

  #message([position, role, content, name, created, hasNul]: Values): WindowMessage {
    const exact = hasNul ? this.#texts(Q.TEXTS_OF_MESSAGE, position) : [role, content, name];
    const text = (item: unknown) => textOf(item, "messages", position);
    return { role: text(exact[0]) ?? "", content: text(exact[1]), name: text(exact[2]), created_at: text(created) };
  }

  #texts(sql: string, position: SQLOutputValue | undefined): Values {
    return Object.values(this.#store.prepare(sql).get(position ?? null) ?? {});
  }
}

function arrays(statement: StatementSync, parameters: Parameters): Values[] {
  // Node has it since 22.16.
  if (!statement.setReturnArrays) return statement.all(parameters).map((row) => Object.values(row));
  statement.setReturnArrays(true);
  return statement.all(parameters) as unknown as Values[];
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(value: unknown, table: string, position: unknown): string | null {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return null;
  if (!(value instanceof Uint8Array)) return String(value);
  try {
    return UTF8.decode(value);
  } catch (cause) {
    throw new StoreError(
      `The row ${table}.rowid=${String(position)} is damaged: a column holds bytes that are no text. Inspect or repair that row; nothing was skipped.`,
      { cause },
    );
  }
}
