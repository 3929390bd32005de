/** The golden files for tests: copies of them, what CubeLoop loads from them, and looks into a file by plain SQL. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import type { PendingRequest } from "../../src/checkpoint/pending.ts";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import type { Message } from "../../src/messages/schema.ts";

export interface ExpectedThread {
  messages: Message[];
  extra: JsonObject;
  parent_thread_id: string | null;
  pending: { request: PendingRequest; run_id: string | null } | null;
  answers: { run_id: string | null; question_id: string; answer: JsonValue }[];
  runs: { run_id: string; completion_seq: number | null }[];
  snapshots: Record<string, Message[]>;
}

const GOLDEN = new URL("../golden/", import.meta.url);
/** Every golden file that has an expectation. */
export const NAMES = readdirSync(GOLDEN)
  .filter((name) => /\.json(\.gz)?$/.test(name))
  .map((name) => name.replace(/\.json(\.gz)?$/, ""));
/** A new directory for one test. */
export class TestDirectory implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "everthread-interop-"));

  /** The path of a file in it. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** The path of a copy of a golden file. @param as the name of the copy (Default: the same) */
  golden(name: string, as = name): string {
    const path = this.file(`${as}.sqlite3`);
    writeFileSync(path, bytesOf(`${name}.sqlite3`));
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

/** A golden file's bytes, unpacked. */
function bytesOf(name: string): Buffer {
  const packed = readdirSync(GOLDEN).includes(`${name}.gz`);
  const bytes = readFileSync(new URL(packed ? `${name}.gz` : name, GOLDEN));
  return packed ? gunzipSync(bytes) : bytes;
}

/** What CubeLoop loads from a golden file: thread ids with all they hold. */
export function expectedOf(name: string): [string, ExpectedThread][] {
  const { threads } = JSON.parse(bytesOf(`${name}.json`).toString()) as { threads: Record<string, ExpectedThread> };
  return Object.entries(threads);
}

/** The rows of a query on a file that is not changed by it. */
export function query(path: string, sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/** CubeLoop's tables with their columns; columns that an upgrade added come in another order. Everthread's own are left out. */
export function schemaOf(path: string): Record<string, unknown> {
  const tables = query(
    path,
    "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'everthread_%' AND name NOT LIKE 'sqlite_%' AND name <> 'ix_messages_thread' ORDER BY name",
  );
  return Object.fromEntries(
    tables.map(({ type, name }) => {
      const columns =
        type === "index"
          ? `SELECT seqno, name FROM pragma_index_info('${name}') ORDER BY seqno`
          : `SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info('${name}') ORDER BY name`;
      return [name, query(path, columns)];
    }),
  );
}

/** Every row that was in the file, of the columns it had, as text that shows each byte and each type. */
export function rowsOf(path: string, like: string): unknown {
  const tables = query(
    like,
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  );
  return tables.map(({ name }) => {
    const columns = query(like, `SELECT name FROM pragma_table_info('${name}')`).map(
      (column) => `quote("${column.name}")`,
    );
    return [name, query(path, `SELECT ${columns.join(" || ',' || ")} AS row FROM "${name}" ORDER BY rowid`)];
  });
}
