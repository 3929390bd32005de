/**
 * One property, run as a test: briefly in the ordinary suite, and as long as one likes by `npm run fuzz`, which hands its
 * options on in the environment. A failure names the seed and the path that show it again.
 */
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { test } from "vitest";

/** The runs of the ordinary suite that `--runs` is measured by: the sequences on the engines that need no server. */
export const ORDINARY_RUNS = 200;

const { EVERTHREAD_FUZZ_RUNS, EVERTHREAD_FUZZ_MINUTES, EVERTHREAD_FUZZ_SEED, EVERTHREAD_FUZZ_PATH } = process.env;
const isLong = EVERTHREAD_FUZZ_RUNS !== undefined || EVERTHREAD_FUZZ_MINUTES !== undefined;
const DAY_MS = 86_400_000;
const REPORT_EVERY_MS = 15_000;

export interface FuzzOptions {
  /** Ends a run of the ordinary suite early on a machine that is busy, in ms. (Default: 8000) */
  budgetMs?: number;
  /** Why the property can't be tested here. (Default: it can) */
  skip?: string | undefined;
  /** Told at the end of a property that held. (Default: nobody) */
  summary?: () => string;
}

/**
 * Registers a test of a property.
 *
 * @param runs how many runs in the ordinary suite; a long run has as many more as `--runs` is more than its own default
 */
export function fuzz<T>(name: string, runs: number, property: fc.IAsyncProperty<T>, options: FuzzOptions = {}): void {
  if (options.skip !== undefined) {
    test.skip(`${name} (skipped: ${options.skip})`, () => undefined);
    return;
  }
  test(name, { timeout: isLong ? DAY_MS : 120_000 }, () => check(name, runs, property, options));
}

async function check<T>(
  name: string,
  runs: number,
  property: fc.IAsyncProperty<T>,
  { budgetMs = 8000, summary }: FuzzOptions,
): Promise<void> {
  const total = Math.ceil(
    (runs * Number(EVERTHREAD_FUZZ_RUNS ?? (isLong ? Number.POSITIVE_INFINITY : ORDINARY_RUNS))) / ORDINARY_RUNS,
  );
  const ends = Date.now() + (isLong ? Number(EVERTHREAD_FUZZ_MINUTES ?? 60 * 24) * 60_000 : budgetMs);
  const first = EVERTHREAD_FUZZ_SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(EVERTHREAD_FUZZ_SEED);
  const portion = Math.ceil(Math.min(runs / 4, 20));
  let done = 0;
  let reported = Date.now();
  // In portions, each with a seed of its own: one that failed is run again alone, and between them is time to stop. A run that
  // has begun is never broken off, since it would go on in the store that the next one has.
  for (let seed = first; done < total && Date.now() < ends; seed = (seed + 1) | 0) {
    const found = await fc.check(property, {
      seed,
      numRuns: Math.min(portion, total - done),
      ...(EVERTHREAD_FUZZ_PATH !== undefined && { path: EVERTHREAD_FUZZ_PATH }),
    });
    done += found.numRuns;
    if (found.failed && found.counterexample !== null) {
      const again = `npm run fuzz -- --runs ${ORDINARY_RUNS} --seed ${found.seed} --path ${found.counterexamplePath} -t ${JSON.stringify(name)}`;
      throw new Error(
        `Run ${done} of "${name}". Again: ${again}\n${await fc.asyncDefaultReportMessage(found)}\n${String(found.errorInstance)}`,
      );
    }
    if (isLong && Date.now() - reported > REPORT_EVERY_MS) {
      reported = Date.now();
      console.error(`${name}: ${done} runs`);
    }
  }
  if (isLong) console.error(`${name}: ${done} runs from seed ${first}, all held.${summary ? ` ${summary()}` : ""}`);
  if (done === 0) throw new Error(`"${name}" was not run once within its time.`);
}

/** A temporary directory in memory where there is one: what is tested here is no disk. */
export function fastDir(): string {
  return mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "everthread-fuzz-"));
}
