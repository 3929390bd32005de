/**
 * Search in 100,000 archived sources against a bare FTS5 MATCH with preview on a plain trigram table, what the index costs,
 * how long a search holds the event loop, and resuming a thread with a long history.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { SqliteCheckpointer } from "../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../src/messages/construct.ts";
import { benchDir, ratios, repeat, report, time } from "./measure.ts";
import { Texts } from "./texts.ts";

const SOURCES = 100_000;
const BYTES = 480;
const QUERIES = 200;
const ACTIVE = 100;
const dir = benchDir();
const texts = new Texts(1);
const sources = Array.from({ length: SOURCES }, () => texts.text(BYTES));
const megabytes = sources.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1e6;

const path = join(dir, "archives.db");
const store = await SqliteCheckpointer.open(path);
for (let i = 0; i < SOURCES; i += 1000) {
  await store.append(
    "long",
    sources.slice(i, i + 1000).map((text) => userMessage(text)),
  );
}
const upTo = (await store.append("long", [userMessage("the last")])) - 1;
await store.append(
  "long",
  Array.from({ length: ACTIVE - 1 }, (_, i) => userMessage(`active ${i}`)),
);
const sizeBefore = statSync(path).size;
const held = await heldBy(() => time(() => store.archives.compact("long", { upTo, summary: "What was said before." })));
const compaction = { ms: held.value, held: held.ms };
const indexBytes = statSync(path).size - sizeBefore;

const barePath = join(dir, "bare.db");
const bare = new DatabaseSync(barePath);
bare.exec("PRAGMA synchronous = EXTRA");
bare.exec("CREATE VIRTUAL TABLE plain USING fts5(text, content = '', tokenize = 'trigram')");
const bareFill = await time(() => fill("plain"));
const bareBytes = statSync(barePath).size;
// One that holds its text as well, for previews.
bare.exec("CREATE VIRTUAL TABLE found USING fts5(text, tokenize = 'trigram')");
fill("found");

function fill(table: "plain" | "found"): void {
  const insert = bare.prepare(`INSERT INTO ${table} (rowid, text) VALUES (?, ?)`);
  bare.exec("BEGIN");
  for (const [i, text] of sources.entries()) insert.run(i + 1, text);
  bare.exec("COMMIT");
}

/** Half of them stand in a source, half were changed by one letter, as a slip of the pen would. */
const queries = Array.from({ length: QUERIES }, (_, i) => {
  const found = texts.pick(sources);
  const length = 3 + texts.below(18);
  const start = texts.below(found.length - length);
  const query = found.slice(start, start + length);
  const slip = texts.below(length);
  return i % 2 === 0 ? query : `${query.slice(0, slip)}${"qzxjk"[texts.below(5)]}${query.slice(slip + 1)}`;
});
const quoted = (query: string) => `"${query.replaceAll('"', '""')}"`;
const match = bare.prepare(
  "SELECT rowid, snippet(found, 0, '', '', '…', 60) AS preview FROM found WHERE found MATCH ? ORDER BY rowid DESC LIMIT 20",
);
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const search = await repeat(async (repetition) => {
  const times = { ours: [] as number[], bare: [] as number[], hit: [] as number[], miss: [] as number[] };
  for (const [i, query] of queries.entries()) {
    const ours = async () => {
      let hits = 0;
      const ms = await time(async () => {
        hits = (await store.archives.search(query)).hits.length;
      });
      times.ours.push(ms);
      (hits > 0 ? times.hit : times.miss).push(ms);
    };
    const plain = async () => times.bare.push(await time(() => match.all(quoted(query))));
    await ((i + repetition) % 2 === 0 ? ours() : plain());
    await ((i + repetition) % 2 === 0 ? plain() : ours());
  }
  return { ours: median(times.ours), bare: median(times.bare), hit: median(times.hit), miss: median(times.miss) };
});

/** The longest that the event loop was held meanwhile, in ms: turns follow each other for as long as the work goes on. */
async function heldBy<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  let ms = 0;
  let working = true;
  const watch = (async () => {
    for (let last = performance.now(); working; ) {
      await nextTurn();
      const now = performance.now();
      ms = Math.max(ms, now - last);
      last = now;
    }
  })();
  await nextTurn();
  const value = await work();
  working = false;
  await watch;
  return { value, ms };
}

// Two letters that nowhere stand together; and one that stands everywhere.
const short = await repeat(async () => {
  const scan = await heldBy(() => time(() => store.archives.search("qz")));
  const found = await heldBy(() => time(() => store.archives.search("e")));
  return { scan: scan.value, found: found.value, held: Math.max(scan.ms, found.ms) };
});

const large = 20_000_000;
const bigText = texts.text(large);
await store.append("big", [userMessage(bigText)]);
await store.archives.compact("big", { upTo: (await store.load("big"))?.revision ?? 0, summary: "" });
const big = await repeat(async () => {
  const whole = await heldBy(() => time(() => store.archives.search("qz", { threadId: "big", timeLimitMs: 60_000 })));
  const last = await heldBy(() =>
    time(() => store.archives.search(bigText.slice(-18), { threadId: "big", timeLimitMs: 60_000 })),
  );
  return { ms: Math.max(whole.value, last.value), held: Math.max(whole.ms, last.ms) };
}, 3);

const alone = await SqliteCheckpointer.open(join(dir, "alone.db"));
await alone.append(
  "short",
  Array.from({ length: ACTIVE }, (_, i) => userMessage(`active ${i}`)),
);
const resume = await repeat(async () => {
  const sums = { long: 0, short: 0 };
  for (let i = 0; i < 100; i++) {
    sums.long += await time(() => store.load("long"));
    sums.short += await time(() => alone.load("short"));
  }
  return sums;
});
await alone.close();
await store.close();
bare.close();

const perMb = (value: number) => [value / megabytes];
report([
  { what: "search in 100,000 archived sources, median of 200 queries", unit: "ms", values: search.ours },
  { what: "bare MATCH with snippet, plain trigram table", unit: "ms", values: search.bare },
  { what: "search / bare", unit: "×", values: ratios(search.ours, search.bare), target: { most: 1.5 } },
  { what: "of these: queries that find something", unit: "ms", values: search.hit },
  { what: "of these: queries that find nothing", unit: "ms", values: search.miss },
  { what: "two characters that are nowhere", unit: "ms", values: short.scan, target: { most: 300 } },
  { what: "one character that is everywhere", unit: "ms", values: short.found, target: { most: 300 } },
  { what: "longest that these held the event loop", unit: "ms", values: short.held, target: { most: 20 } },
  { what: "search through a source of 20 MB", unit: "ms", values: big.ms },
  { what: "longest that this held the event loop", unit: "ms", values: big.held, target: { most: 20 } },
  { what: "index, per MB of text", unit: "kB", values: perMb(indexBytes / 1000) },
  { what: "plain trigram table without its text, per MB of text", unit: "kB", values: perMb(bareBytes / 1000) },
  { what: "compaction, per MB of text", unit: "ms", values: perMb(compaction.ms) },
  { what: "filling the plain trigram table, per MB of text", unit: "ms", values: perMb(bareFill) },
  { what: "longest that the compaction held the event loop", unit: "ms", values: [compaction.held] },
  { what: "load of 100 active messages, 100,000 archived", unit: "µs", values: resume.long.map((ms) => ms * 10) },
  { what: "load of a thread of 100", unit: "µs", values: resume.short.map((ms) => ms * 10) },
  { what: "with history / without", unit: "×", values: ratios(resume.long, resume.short), target: { most: 1.5 } },
]);
