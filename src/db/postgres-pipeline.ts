/**
 * Several statements sent at once, with one Sync at the end: one round trip, however many they are. It is a query object
 * of the kind that pg's own pg-cursor is, so it runs on any client of pg, also of a pool that the host made.
 *
 * Statements are unnamed and results are text that pg's type parsers never see: a parser that the host has set changes
 * nothing here, and a transaction pooler between has nothing to remember.
 */

export type Value = string | number | Uint8Array | null;

export interface Statement {
  text: string;
  values?: readonly Value[];
}

/** A row by the names of its columns; every value is the text that Postgres prints. */
export type Row = Record<string, string | null>;

/** What of pg's Connection is used. */
export interface PgConnection {
  stream: { cork?(): void; uncork?(): void };
  parse(query: { text: string }): void;
  bind(config: { values: readonly (string | Buffer | null)[] }): void;
  describe(message: { type: "P" }): void;
  execute(config: object): void;
  sync(): void;
}

export class Pipeline {
  /** The rows of each statement that has completed. */
  readonly results: Row[][] = [];
  /** Resolves when the server is ready again; rejects with its error, or with what broke the connection. */
  readonly done: Promise<void>;
  /** Set by pg when the host's pool has a `query_timeout`; it stops the timer. */
  callback?: ((error?: unknown) => void) | undefined;
  readonly #statements: readonly Statement[];
  readonly #settle = Promise.withResolvers<void>();
  #columns: string[] = [];
  #rows: Row[] = [];

  constructor(statements: readonly Statement[]) {
    this.#statements = statements;
    this.done = this.#settle.promise;
  }

  /** Whether every statement has completed: of a transaction, that it is committed. */
  get complete(): boolean {
    return this.results.length === this.#statements.length;
  }

  submit(connection: PgConnection): void {
    connection.stream.cork?.();
    try {
      for (const { text, values = [] } of this.#statements) {
        connection.parse({ text });
        connection.bind({ values: values.map(toWire) });
        connection.describe({ type: "P" });
        connection.execute({});
      }
      connection.sync();
    } finally {
      connection.stream.uncork?.();
    }
  }

  handleRowDescription(message: { fields: readonly { name: string }[] }): void {
    this.#columns = message.fields.map(({ name }) => name);
  }

  handleDataRow(message: { fields: readonly (string | null)[] }): void {
    const row: Row = {};
    this.#columns.forEach((name, i) => {
      row[name] = message.fields[i] ?? null;
    });
    this.#rows.push(row);
  }

  handleCommandComplete(): void {
    this.results.push(this.#rows);
    this.#rows = [];
    this.#columns = [];
  }

  handleReadyForQuery(): void {
    this.callback?.();
    this.#settle.resolve();
  }

  handleError(error: unknown): void {
    this.callback?.(error);
    this.#settle.reject(error);
  }
}

function toWire(value: Value): string | Buffer | null {
  if (value === null || typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}
