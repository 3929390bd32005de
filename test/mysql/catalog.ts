/** A schema as the server's catalogue has it, in plain lines that can be compared and read, the same for MariaDB and MySQL. */
import type { TestDatabase } from "../support/mysql.ts";

const COLUMNS = `SELECT c.table_name AS t, c.column_name AS name, c.column_type AS type, c.is_nullable AS nullable,
    c.column_default AS fallback, c.extra AS extra, c.ordinal_position AS place, c.collation_name AS collation
  FROM information_schema.columns c WHERE c.table_schema = DATABASE()`;
const INDEXES = `SELECT table_name AS t, index_name AS name, non_unique AS non_unique,
    GROUP_CONCAT(column_name ORDER BY seq_in_index) AS columns
  FROM information_schema.statistics WHERE table_schema = DATABASE() GROUP BY table_name, index_name, non_unique`;
const KEYS = `SELECT table_name AS t, column_name AS col, referenced_table_name AS target, referenced_column_name AS target_col
  FROM information_schema.key_column_usage WHERE table_schema = DATABASE() AND referenced_table_name IS NOT NULL`;
const TABLES = `SELECT t.table_name AS t, t.engine AS engine, MAX(p.partition_method) AS method,
    MAX(p.partition_expression) AS expression, COUNT(p.partition_name) AS parts
  FROM information_schema.tables t JOIN information_schema.partitions p
    ON p.table_schema = t.table_schema AND p.table_name = t.table_name
  WHERE t.table_schema = DATABASE() GROUP BY t.table_name, t.engine`;

/** One line for each table, column, index and foreign key, sorted. @param collations whether columns name theirs (Default: true) */
export async function catalogOf(database: TestDatabase, options: { collations?: boolean } = {}): Promise<string[]> {
  const lines: string[] = [];
  for (const row of await database.sql(COLUMNS)) {
    const json =
      row.name === "extra" || row.name === "metadata" || row.name === "pending_request" || row.name === "answer";
    // MariaDB's JSON is LONGTEXT with a check; and it writes widths that mean nothing.
    const type = json ? "json" : String(row.type).replace(/^((?:big)?int)\(\d+\)/, "$1");
    const nothing = row.fallback === null || row.fallback === "NULL";
    const fallback = nothing ? "" : ` DEFAULT ${plain(row.fallback)}`;
    const extra = plain(String(row.extra).replace("DEFAULT_GENERATED", "").trim());
    const collation = (options.collations ?? true) && row.collation && !json ? ` COLLATE ${named(row.collation)}` : "";
    const nullable = row.nullable === "YES" ? "" : " NOT NULL";
    lines.push(
      `${row.t}: ${String(row.place).padStart(2, "0")} ${row.name} ${type}${collation}${nullable}${fallback} ${extra}`.trim(),
    );
  }
  for (const row of await database.sql(INDEXES)) {
    lines.push(`${row.t}: ${Number(row.non_unique) ? "INDEX" : "UNIQUE"} ${row.name} (${row.columns})`);
  }
  for (const row of await database.sql(KEYS))
    lines.push(`${row.t}: FOREIGN KEY ${row.col} -> ${row.target}.${row.target_col}`);
  for (const row of await database.sql(TABLES)) {
    const parts = row.method
      ? ` PARTITION BY ${row.method} ${String(row.expression).replaceAll("`", "")} PARTITIONS ${row.parts}`
      : "";
    lines.push(`${row.t}: TABLE ${row.engine}${parts}`);
  }
  return lines.sort();
}

const plain = (text: string) => text.toLowerCase().replace("current_timestamp()", "current_timestamp");
const named = (collation: string) => collation.replace(/^utf8mb4_(?:nopad|0900)_bin$/, "exact");
