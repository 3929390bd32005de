/** Runs many rounds on one backend, in stories of a few rounds each, some of them side by side. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend } from "./backends.ts";
import { WriterPool } from "./process.ts";
import { Random } from "./random.ts";
import { Story } from "./story.ts";

/** A store is begun anew after so many rounds, so that what is looked at after each stays small. */
const ROUNDS_IN_STORY = 10;

export interface SoakTotals {
  rounds: number;
  kills: number;
  acknowledged: number;
  unacknowledged: number;
}

export interface SoakOptions {
  rounds: number;
  seed: number;
  /** How many stories run side by side. */
  jobs: number;
  /** Whether the writers acknowledge what is not done yet: the soak must find that out. (Default: false) */
  lie?: boolean;
  onRound?: (totals: SoakTotals) => void;
}

/** A violation, with the store and the script that led to it kept in `directory`. */
export class SoakFailure extends Error {
  readonly directory: string;

  constructor(backend: string, seed: number, directory: string, cause: unknown) {
    const problem = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    super(`${backend}, seed of the story ${seed}, kept in ${directory}: ${problem}`, { cause });
    this.directory = directory;
  }
}

/** @throws SoakFailure on the first violation */
export async function soak(backend: Backend, options: SoakOptions): Promise<SoakTotals> {
  const { rounds, jobs, lie = false, onRound } = options;
  const seeds = new Random(options.seed);
  const totals: SoakTotals = { rounds: 0, kills: 0, acknowledged: 0, unacknowledged: 0 };
  const pool = new WriterPool(backend.kind, jobs * backend.writers);
  let begun = 0;
  let failed = false;

  const tell = async (seed: number, count: number): Promise<void> => {
    const dir = mkdtempSync(join(tmpdir(), "everthread-soak-"));
    const files = join(dir, "store");
    mkdirSync(files);
    const store = await backend.make(files);
    const story = new Story(backend, store, pool, new Random(seed), lie);
    try {
      for (let round = 0; round < count && !failed; round++) {
        const report = await story.round();
        totals.rounds++;
        if (report.killed) totals.kills++;
        totals.acknowledged += report.acknowledged;
        totals.unacknowledged += report.unacknowledged;
        onRound?.(totals);
      }
    } catch (error) {
      failed = true;
      writeFileSync(
        join(dir, "lives.json"),
        JSON.stringify({ seed, backend: backend.name, lives: story.lives }, null, 1),
      );
      throw new SoakFailure(backend.name, seed, dir, error);
    }
    rmSync(dir, { recursive: true, force: true });
    await store.dispose?.();
  };

  const worker = async (): Promise<void> => {
    while (begun < rounds && !failed) {
      const count = Math.min(ROUNDS_IN_STORY, rounds - begun);
      begun += count;
      await tell(seeds.seed(), count);
    }
  };
  // The others end the round that they are in.
  const ends = await Promise.allSettled(Array.from({ length: jobs }, worker));
  await pool.close();
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return totals;
}
