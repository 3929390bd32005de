/**
 * Files with damaged bytes: whatever is asked of them is answered by right data or by an error of Everthread's, in time. Of a
 * snapshot as JSON, what is not damaged is right to the letter; SQLite keeps no checksums of its pages, so that a letter within
 * a text may change there, and nobody can tell.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { checkStored } from "../../src/messages/admit.ts";
import { damaged, damages, furnish, goOn, type Outcome, outcome, readAll, THREADS } from "./damage.ts";
import { fastDir, fuzz } from "./fuzz.ts";

/** No case may take longer, in ms: most take some hundredth of it. */
const TIME_LIMIT = 20_000;

interface Kind {
  name: string;
  /** Which files of the store may be damaged. */
  files: RegExp;
  open(directory: string, readOnly: boolean): Promise<Checkpointer>;
  /** Makes a store in a directory. */
  make(directory: string): Promise<void>;
}

const sqliteOf = (directory: string, readOnly: boolean) =>
  SqliteCheckpointer.open(join(directory, "threads.db"), { readOnly });
const jsonOf = async (directory: string, readOnly: boolean) =>
  JsonCheckpointer.open({ state: join(directory, "state.json"), memory: join(directory, "memory"), readOnly });

const kinds: Kind[] = [
  {
    name: "a SQLite file",
    files: /^threads\.db$/,
    open: sqliteOf,
    async make(directory) {
      const store = await sqliteOf(directory, false);
      await furnish(store);
      await store.close();
    },
  },
  {
    name: "a SQLite file and its WAL",
    files: /^threads\.db(-wal)?$/,
    open: sqliteOf,
    async make(directory) {
      const live = join(directory, "live");
      mkdirSync(live);
      const store = await SqliteCheckpointer.open(join(live, "threads.db"), { journalMode: "wal" });
      await furnish(store);
      // As a crash leaves it: what was written last is only in the WAL.
      for (const file of ["threads.db", "threads.db-wal"]) cpSync(join(live, file), join(directory, file));
      await store.close();
      rmSync(live, { recursive: true });
    },
  },
  {
    name: "a state.json and its archives",
    files: /state\.json$/,
    open: jsonOf,
    async make(directory) {
      const store = await jsonOf(directory, false);
      await furnish(store);
      await store.close();
    },
  },
];

for (const kind of kinds) {
  const original = fastDir();
  let sound: Record<string, unknown>;
  let files: string[];
  beforeAll(async () => {
    await kind.make(original);
    files = filesIn(original).filter((file) => kind.files.test(file));
    sound = await inCopy(async (directory) => {
      const store = await kind.open(directory, false);
      const all = await readAll(store);
      await store.close();
      return all;
    });
  });
  afterAll(() => rmSync(original, { recursive: true }));

  async function inCopy<T>(body: (directory: string) => Promise<T>): Promise<T> {
    const directory = fastDir();
    try {
      cpSync(original, directory, { recursive: true });
      return await body(directory);
    } finally {
      rmSync(directory, { recursive: true });
    }
  }

  const tally = { runs: 0, opened: 0, noticed: 0 };
  const summary = () => `Of ${tally.runs} stores ${tally.opened} opened, and ${tally.noticed} of these read otherwise.`;
  const property = fc.asyncProperty(fc.nat(100), damages, fc.boolean(), (which, changes, readOnly) =>
    inCopy(async (directory) => {
      const file = files[which % files.length] as string;
      const path = join(directory, file);
      const before = readFileSync(path);
      const after = damaged(before, changes);
      writeFileSync(path, after);
      const start = performance.now();
      const opened = await outcome(() => kind.open(directory, readOnly));
      const store = "value" in opened ? (opened.value as Checkpointer) : undefined;
      tally.runs++;
      if (store) {
        tally.opened++;
        const all = await readAll(store);
        checkMessages(all);
        if (!isDeepStrictEqual(all, sound)) tally.noticed++;
        if (after.equals(before)) expect(all).toEqual(sound);
        if (kind.open === jsonOf) checkJson(file, after, all, sound);
        await outcome(() => store.checkIntegrity());
        if (readOnly) expect(readFileSync(path).equals(after)).toBe(true);
        else await goOn(store);
        await store.close();
      }
      expect(performance.now() - start).toBeLessThan(TIME_LIMIT);
    }),
  );
  fuzz(`damaged bytes of ${kind.name} give right data or an error`, 80, property, { summary });
}

/** The files below a directory, in order. */
function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .toSorted();
}

/** Whatever is given as a message has the shape of one. */
function checkMessages(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if ("messages" in value && Array.isArray(value.messages)) {
    for (const item of value.messages) {
      const message = typeof item === "object" && item !== null && "position" in item ? item.message : item;
      if (message !== undefined) checkStored(structuredClone(message));
    }
  }
  for (const inner of Object.values(value)) checkMessages(inner);
}

/** Of a snapshot: what is no JSON is refused, and what is given is what the file says. Other files are not touched by it. */
function checkJson(file: string, after: Buffer, all: Record<string, unknown>, sound: Record<string, unknown>): void {
  const content = parsed(after);
  for (const threadId of THREADS) {
    const { load } = all[threadId] as { load: Outcome };
    if (file !== "state.json") expect(load).toEqual((sound[threadId] as { load: Outcome }).load);
    else if ("value" in load && load.value !== undefined) {
      const { messages } = load.value as { messages: unknown[] };
      const stored = (content as StateFile).threads[threadId]?.messages ?? [];
      expect(messages).toEqual(stored.map(({ message }) => checkStored(message)));
    }
  }
}

interface StateFile {
  threads: Record<string, { messages?: { message: unknown }[] } | undefined>;
}

/** The JSON of a file; undefined when it is none. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
