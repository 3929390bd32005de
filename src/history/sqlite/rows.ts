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

  // By index, without a copy of the row: this is what reading a long log spends its time on.
  #record(row: Values): { position: number; record: HistoryRecord } {
    const position = row[0];
    const texts = row[11] ? this.#texts(Q.TEXTS_OF_RECORD, position, 2) : row;
    const record = {
      id: textOf(row[1], "history", position) ?? "",
      memory_id: textOf(texts[2], "history", position) ?? "",
      old_memory: textOf(texts[3], "history", position),
      new_memory: textOf(texts[4], "history", position),
      event: textOf(texts[5], "history", position) ?? "",
      created_at: textOf(row[8], "history", position),
      updated_at: textOf(row[9], "history", position),
      is_deleted: Boolean(row[10]),
      actor_id: textOf(texts[6], "history", position),
      role: textOf(texts[7], "history", position),
    };
    return { position: Number(position), record };
  }

  #message(row: Values): WindowMessage {
    const position = row[0];
    const texts = row[5] ? this.#texts(Q.TEXTS_OF_MESSAGE, position, 1) : row;
    return {
      role: textOf(texts[1], "messages", position) ?? "",
      content: textOf(texts[2], "messages", position),
      name: textOf(texts[3], "messages", position),
      created_at: textOf(row[4], "messages", position),
    };
  }

  /** A row's texts as bytes, at the places that they have in the row. @param before how many columns come before them */
  #texts(sql: string, position: SQLOutputValue | undefined, before: number): Values {
    const texts = Object.values(this.#store.prepare(sql).get(position ?? null) ?? {});
    return [...new Array<null>(before).fill(null), ...texts];
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
