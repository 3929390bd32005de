/** A schema as Postgres's catalogue has it, in plain lines that can be compared and read. */
import { sql } from "./postgres.ts";

const COLUMNS = `SELECT c.relname AS on, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
    || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS is
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped`;
const CONSTRAINTS = `SELECT c.relname AS on, 'CONSTRAINT ' || k.conname || ' ' || pg_get_constraintdef(k.oid) AS is
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.connamespace = $1::regnamespace AND k.contype <> 'n'`;
const INDEXES = `SELECT tablename AS on, indexdef AS is FROM pg_indexes WHERE schemaname = $1`;
const PARTS = `SELECT p.relname AS on, 'PARTITION ' || c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) AS is
  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid JOIN pg_class p ON p.oid = inhparent
  WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'`;
const KINDS = `SELECT relname AS on, CASE relkind WHEN 'p' THEN 'PARTITIONED BY ' || pg_get_partkeydef(oid) ELSE 'TABLE' END AS is
  FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p')`;

/**
 * One line for each table, column, constraint, index and partition, sorted. What the partitions of a table have alike is
 * one line that begins with their number. @param schema (Default: "public")
 */
export async function catalogOf(url: string, schema = "public"): Promise<string[]> {
  const lines: string[] = [];
  for (const query of [COLUMNS, CONSTRAINTS, INDEXES, PARTS, KINDS]) {
    const rows = await sql(url, query, [schema]);
    lines.push(...rows.map((row) => `${row.on}: ${row.is}`));
  }
  const alike = Map.groupBy(lines, (line) =>
    line.replaceAll(/_p\d\d/g, "_pNN").replace(/remainder \d+/, "remainder N"),
  );
  return [...alike].map(([line, { length }]) => (length === 1 ? line : `${length} x ${line}`)).sort();
}
