// Plain SQL on the file, with nothing of Everthread in between: by the sqlite3 program, else by Node's own SQLite.
import { execFileSync } from "node:child_process";

/** How the tour reads rows: `name` says with what, `query` gives the rows of a SELECT as objects. */
export async function openReader(file) {
  const sqlite3 = (path, sql) => {
    const out = execFileSync("sqlite3", ["-readonly", "-json", path, sql], { encoding: "utf8", stdio: "pipe" });
    return out.trim() === "" ? [] : JSON.parse(out);
  };
  try {
    // An old sqlite3 has no -json, or no JSON functions.
    sqlite3(":memory:", "SELECT json('[1]') AS works");
    return { name: "the sqlite3 program", query: (sql) => sqlite3(file, sql) };
  } catch {
    const { DatabaseSync } = await import("node:sqlite");
    const query = (sql) => {
      const db = new DatabaseSync(file, { readOnly: true });
      try {
        return db
          .prepare(sql)
          .all()
          .map((row) => ({ ...row }));
      } finally {
        db.close();
      }
    };
    return { name: "node:sqlite (there is no sqlite3 program here)", query };
  }
}

/** Every row of every table, to compare before and after. */
export function allRows({ query }) {
  const tables = query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
  return Object.fromEntries(tables.map(({ name }) => [name, query(`SELECT * FROM "${name}"`)]));
}

/** Prints rows as a table. */
export function printRows(rows) {
  const columns = Object.keys(rows[0] ?? {});
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? "")))];
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
  for (const row of cells)
    console.log(
      `     ${row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join("  ")
        .trimEnd()}`,
    );
}
