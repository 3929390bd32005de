/**
 * The memory history against Mem0's own stores on the same records, each with its defaults and by turns: single adds, a batch
 * of 10,000, the 1,000 changes of a memory among 1,000,000, messages at a steady window.
 *
 * Mem0's npm package is the one of bench/history (npm ci there), or of EVERTHREAD_MEM0_NPM; its Python is
 * EVERTHREAD_MEM0_PYTHON or .venv/bin/python. What is not there is left out.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { SqliteMemoryHistory, type SqliteOptions } from "../src/history/sqlite/history.ts";
import * as work from "./history/work.ts";
import { benchDir, type Figure, ratios, repeat, report, time } from "./measure.ts";
import { startPeer } from "./peer.ts";

const { ADDS, BATCH, CHANGES, GETS, MEMORIES, SAVES, SCANS, VALUE } = work;
const OPERATIONS = { add: ADDS, batch: 1, get: GETS, save: SAVES } as const;
const LABELS: Record<Operation, string> = {
  add: "one add",
  batch: `a batch of ${BATCH.toLocaleString("en")}`,
  get: "get 1,000 of 1,000,000",
  save: "two messages at a window of 10",
};
const MEM0_TABLE = `CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
  created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)`;
const MEM0_ROW = `INSERT INTO history VALUES (?1, ?2, ?3, ?3, 'UPDATE', '2026-05-07T10:00:00.123456+00:00',
  '2026-05-08T10:00:00.123456+00:00', 0, NULL, NULL)`;
const NPM_TABLE = `CREATE TABLE memory_history (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_id TEXT NOT NULL,
  previous_value TEXT, new_value TEXT, action TEXT NOT NULL, created_at TEXT, updated_at TEXT, is_deleted INTEGER DEFAULT 0);
  CREATE TABLE history (id TEXT PRIMARY KEY)`;
const NPM_ROW = `INSERT INTO memory_history (memory_id, previous_value, new_value, action, created_at, updated_at)
  VALUES (?2, ?3, ?3, 'UPDATE', '2026-05-07T10:00:00.123Z', '2026-05-08T10:00:00.123Z')`;

type Operation = keyof typeof OPERATIONS;
/** Does an operation and gives how many milliseconds it took. */
type Store = (operation: Operation) => Promise<number>;

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const dir = benchDir();

/** The changes of all memories take turns, so that each row of a memory is far from its next. */
function fill(path: string, table: string, row: string): void {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA cache_size = -500000; ${table}; BEGIN`);
  const insert = db.prepare(row);
  for (let i = 0; i < CHANGES; i++) {
    for (let memory = 0; memory < MEMORIES; memory++) insert.run(randomUUID(), `memory-${memory}`, VALUE);
  }
  db.exec("COMMIT; PRAGMA journal_mode = DELETE");
  db.close();
}

async function everthread(name: string, options: SqliteOptions, large: string): Promise<Store> {
  const history = await SqliteMemoryHistory.open(join(dir, `${name}.db`), options);
  const million = await SqliteMemoryHistory.open(large, { readOnly: true });
  const created_at = "2026-05-07T10:00:00+00:00";
  let number = 0;
  const added = () => ({ memory_id: `memory-${number++}`, event: "ADD", new_memory: VALUE, created_at });
  const said = [
    { role: "user", content: VALUE },
    { role: "assistant", content: VALUE },
  ];
  const operations: Record<Operation, () => Promise<void>> = {
    async add() {
      for (let n = 0; n < ADDS; n++) await history.add(added());
    },
    async batch() {
      await history.addBatch(Array.from({ length: BATCH }, added));
    },
    async save() {
      for (let n = 0; n < SAVES; n++) await history.saveMessages("user_id=ada", said);
    },
    async get() {
      for (let n = 0; n < GETS; n++) await million.get(`memory-${(number++ * 7) % MEMORIES}`);
    },
  };
  return (operation) => time(operations[operation]);
}

function hasMem0(python: string): boolean {
  try {
    execFileSync(python, ["-c", "import mem0.memory.storage"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const forPython = join(dir, "large-python.db");
fill(forPython, MEM0_TABLE, MEM0_ROW);
const forUs = join(dir, "large.db");
copyFileSync(forPython, forUs);
const firstOpen = await time(async () => (await SqliteMemoryHistory.open(forUs)).close());

const stores: Record<string, Store> = {
  Everthread: await everthread("default", {}, forUs),
  "Everthread without WAL": await everthread("rollback", { journalMode: "delete" }, forUs),
};
const python = process.env.EVERTHREAD_MEM0_PYTHON ?? here("../.venv/bin/python");
if (hasMem0(python)) {
  const args = [here("history/peer.py"), JSON.stringify(work), join(dir, "python.db"), forPython];
  stores["Mem0 for Python"] = startPeer(python, args).ask;
}
const packages = process.env.EVERTHREAD_MEM0_NPM ?? here("history");
if (existsSync(join(packages, "node_modules/mem0ai"))) {
  const forNpm = join(dir, "large-npm.db");
  fill(forNpm, NPM_TABLE, NPM_ROW);
  const args = ["--no-warnings", here("history/peer.mjs"), packages, join(dir, "npm.db"), forNpm];
  stores["Mem0 for Node"] = startPeer(process.execPath, args).ask;
}

const figures: Figure[] = [
  { what: "opening a file of 1,000,000 changes for the first time", unit: "ms", values: [firstOpen] },
];
for (const [operation, calls] of Object.entries(OPERATIONS) as [Operation, number][]) {
  const times = await repeat(async () => {
    const each: Record<string, number> = {};
    for (const [name, store] of Object.entries(stores)) {
      const scans = operation === "get" && name.startsWith("Mem0");
      each[name] = (await store(operation)) / (scans ? SCANS : calls);
    }
    return each;
  });
  const { Everthread: ours = [], ...others } = times;
  figures.push({ what: `Everthread: ${LABELS[operation]}`, unit: "ms", values: ours });
  for (const [name, theirs] of Object.entries(others)) {
    figures.push({ what: `${name}: ${LABELS[operation]}`, unit: "ms", values: theirs });
    if (name.startsWith("Everthread")) continue;
    const target = { least: operation === "get" ? 50 : 1 };
    figures.push({
      ...{ what: `${name} / Everthread: ${LABELS[operation]}`, unit: "×", target },
      values: ratios(theirs, ours),
    });
  }
}
report(figures);
process.exit();
