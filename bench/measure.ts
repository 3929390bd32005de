/** What the measures share: a directory to work in, messages of a given size, repetitions, and the report to main.ts. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "../src/messages/schema.ts";

/** One line of the table. */
export interface Figure {
  what: string;
  /** "×" for a ratio of two times of the same run, else "ms", "µs", "bytes", "/s". */
  unit: string;
  /** One for each repetition. */
  values: number[];
  /** What the median should keep to. */
  target?: { most: number } | { least: number };
}

export const REPETITIONS = 9;

/** A directory on the disk that is measured: EVERTHREAD_BENCH_DIR, else the system's for temporary files. */
export function benchDir(): string {
  const dir = mkdtempSync(join(process.env.EVERTHREAD_BENCH_DIR ?? tmpdir(), "everthread-bench-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Runs `measure` once to warm up, then so many times, and gathers what each gave under its name. */
export async function repeat<Name extends string>(
  measure: (repetition: number) => Promise<Record<Name, number>>,
  repetitions = REPETITIONS,
): Promise<Record<Name, number[]>> {
  await measure(-1);
  const all: Record<string, number[]> = {};
  for (let i = 0; i < repetitions; i++) {
    globalThis.gc?.();
    for (const [name, value] of Object.entries<number>(await measure(i))) {
      all[name] ??= [];
      all[name].push(value);
    }
  }
  return all as Record<Name, number[]>;
}

/** The milliseconds that `work` takes. */
export async function time(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Element by element: each repetition gives its own ratio. */
export function ratios(over: readonly number[], under: readonly number[]): number[] {
  return over.map((value, i) => value / (under[i] ?? Number.NaN));
}

/** A user's message whose JSON is `bytes` long, and which no other is like. */
export function messageOf(bytes: number, number: number, runId: string | null = null): Message {
  const message = (text: string): Message => ({
    role: "user",
    content: [{ type: "text", text }],
    timestamp: 1_700_000_000,
    metadata: {},
    run_id: runId,
  });
  const start = `Message ${number}: `;
  const words = "the quick brown fox jumps over the lazy dog and ";
  const room = bytes - JSON.stringify(message(start)).length;
  return message(start + words.repeat(Math.ceil(room / words.length)).slice(0, room));
}

/** Hands the figures to main.ts. */
export function report(figures: Figure[]): void {
  console.log(JSON.stringify(figures));
}
