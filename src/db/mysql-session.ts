/**
 * A connection while it is in use. Where it takes several statements at once, what must not wait for an answer shares a round
 * trip: what a transaction begins with goes with its first statement, and COMMIT with its last ones.
 */
import type { MySqlConnection } from "./mysql-driver.ts";

export type Row = Record<string, unknown>;
export type Value = string | number | Buffer | null;
export type Statement = readonly [sql: string, values: readonly Value[]];

/** One connection, while it is in use. */
export interface Session {
  /** Runs a statement and gives its rows. */
  rows(sql: string, values?: readonly Value[]): Promise<Row[]>;
  /** Runs a statement and gives how many rows it changed. */
  run(sql: string, values?: readonly Value[]): Promise<number>;
  /** Runs a statement that can't be prepared, as it is. */
  text(sql: string): Promise<void>;
  /** Runs statements one after the other, in one round trip where that is possible, and gives the rows of each. */
  all(statements: readonly Statement[]): Promise<Row[][]>;
  /** The same with the last statements of a transaction, which is committed with them: nothing can be run after it. */
  finish(statements: readonly Statement[]): Promise<void>;
}

/**
 * Statements that share a round trip hold their values, bytes as two digits each; above this length they are prepared and
 * sent one by one, since then the bytes cost more than the trips.
 */
const MAX_TEXT = 2 ** 20;

export class ConnectionSession implements Session {
  readonly #connection: MySqlConnection;
  /** How long a text of several statements may be, in bytes; 0 where it may not hold several. */
  readonly #maxText: number;
  /** What the transaction begins with, until it is sent. */
  #begin: readonly string[];
  #committing = false;

  /**
   * @param options.begin the statements that a transaction begins with
   * @param options.several whether the connection takes several statements at once
   * @param options.maxPacket the largest packet that the server takes, in bytes
   */
  constructor(connection: MySqlConnection, options: { begin: readonly string[]; several: boolean; maxPacket: number }) {
    this.#connection = connection;
    this.#begin = options.begin;
    // A packet also says what it is.
    this.#maxText = options.several ? Math.min(MAX_TEXT, options.maxPacket - 1) : 0;
  }

  /** Whether COMMIT was sent, so that the outcome is unknown when no answer comes. */
  get committing(): boolean {
    return this.#committing;
  }

  async rows(sql: string, values: readonly Value[] = []): Promise<Row[]> {
    return rowsOf(await this.#execute(sql, values));
  }

  async run(sql: string, values: readonly Value[] = []): Promise<number> {
    return Number(((await this.#execute(sql, values)) as { affectedRows?: unknown }).affectedRows ?? 0);
  }

  async text(sql: string): Promise<void> {
    await this.#sendBegin();
    await this.#connection.query({ sql, rowsAsArray: false });
  }

  async all(statements: readonly Statement[]): Promise<Row[][]> {
    const begin = this.#begin;
    const together = this.#textOf([...begin.map(bare), ...statements]);
    if (together !== undefined) {
      this.#begin = [];
      return (await this.#query(together, begin.length + statements.length)).slice(begin.length);
    }
    const results: Row[][] = [];
    for (const [sql, values] of statements) results.push(await this.rows(sql, values));
    return results;
  }

  async finish(statements: readonly Statement[]): Promise<void> {
    const all = [...this.#begin.map(bare), ...statements, bare("COMMIT")];
    const together = this.#textOf(all);
    if (together !== undefined) {
      this.#begin = [];
      this.#committing = true;
      await this.#query(together, all.length);
      return;
    }
    for (const [sql, values] of statements) await this.#execute(sql, values);
    await this.#sendBegin();
    this.#committing = true;
    await this.#query("COMMIT", 1);
  }

  async #sendBegin(): Promise<void> {
    const begin = this.#begin;
    this.#begin = [];
    const together = this.#textOf(begin.map(bare));
    for (const sql of together === undefined ? begin : [together]) if (sql !== "") await this.#query(sql, 1);
  }

  async #execute(sql: string, values: readonly Value[]): Promise<unknown> {
    await this.#sendBegin();
    // A number goes as text: as a double, some servers refuse it in LIMIT.
    const bound = values.map((value) => (typeof value === "number" ? String(value) : value));
    const [result] = await this.#connection.execute({ sql, rowsAsArray: false }, bound);
    return result;
  }

  /** @param count how many statements there are in the text: the driver gives the result of a single one bare */
  async #query(sql: string, count: number): Promise<Row[][]> {
    const [results] = await this.#connection.query({ sql, rowsAsArray: false });
    return (count === 1 ? [results] : (results as unknown[])).map(rowsOf);
  }

  /** The statements as one text. Undefined where that can't be sent, or would be too long. */
  #textOf(statements: readonly Statement[]): string | undefined {
    let length = 0;
    for (const [sql, values] of statements) {
      length += sql.length + 1;
      for (const value of values) length += lengthOf(value);
    }
    return length > this.#maxText ? undefined : statements.map(withValues).join(";");
  }
}

const bare = (sql: string): Statement => [sql, []];

/** Of a statement that gives no rows, the driver gives an object. */
function rowsOf(result: unknown): Row[] {
  return Array.isArray(result) ? (result as Row[]) : [];
}

/** A statement with its values in their places. */
function withValues([sql, values]: Statement): string {
  const parts = sql.split("?");
  if (parts.length !== values.length + 1) throw new TypeError(`${values.length} values don't fit into ${sql}`);
  return parts.map((part, i) => (i === 0 ? part : literalOf(values[i - 1] ?? null) + part)).join("");
}

/** Text and bytes in hexadecimal, which means the same in every sql_mode and every character set of the connection. */
function literalOf(value: Value): string {
  if (value === null) return "NULL";
  if (typeof value === "number") return String(value);
  return typeof value === "string"
    ? `_utf8mb4 x'${Buffer.from(value).toString("hex")}'`
    : `x'${value.toString("hex")}'`;
}

/** How long the literal is, at most. */
function lengthOf(value: Value): number {
  if (value === null || typeof value === "number") return 24;
  return 2 * Buffer.byteLength(value) + 12;
}
