/** Loads and forks against what does them bare, by turns, each as often first as second. */
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { newId } from "../../src/util/ids.ts";
import { type Figure, REPETITIONS, ratios, repeat, time } from "../measure.ts";
import { conversationOf } from "./conversation.ts";

const LOADED = 1000;
const LOADS = 10;
const FORKED = 10_000;
const FORKS = 4;

/** @param bareLoad reads the rows of a thread and decodes their payloads */
export async function measureLoad(
  store: Checkpointer,
  bareLoad: (threadId: string) => Promise<unknown[]>,
): Promise<Figure[]> {
  for (const { messages } of conversationOf(LOADED)) await store.append("load", messages);
  const load = async () => (await store.load("load"))?.messages.length;
  const { ours, bare } = await takeTurns(LOADS, load, () => bareLoad("load"));
  return [
    { what: "load of 1,000 messages", unit: "ms", values: ours },
    { what: "bare SELECT, decoded", unit: "ms", values: bare },
    { what: "load / bare", unit: "×", values: ratios(ours, bare), target: { most: 1.5 } },
  ];
}

/** What is done without Everthread. */
export interface BareFork {
  /** Makes the thread that is copied to; this is not measured. */
  begin(target: string): Promise<unknown>;
  /** Copies the messages, and nothing else, in one statement. */
  copy(source: string, target: string): Promise<unknown>;
  /** Has the server look at what its tables hold, as it does by itself after a while. */
  analyze(): Promise<unknown>;
}

export async function measureFork(store: Checkpointer, bare: BareFork): Promise<Figure[]> {
  const source = "source";
  let afterRunId = "";
  for (const { runId, messages } of conversationOf(FORKED)) {
    afterRunId = runId;
    await store.claimRun(source, runId);
    await store.append(source, messages);
    await store.markRunComplete(source, runId);
  }
  await bare.analyze();
  const targets: string[] = [];
  // One for each copy, and for those that warm up.
  for (let i = 0; i < FORKS * (REPETITIONS + 1); i++) {
    const target = newId();
    await bare.begin(target);
    targets.push(target);
  }
  const times = await takeTurns(
    FORKS,
    () => store.fork(source, newId(), { afterRunId }),
    () => bare.copy(source, targets.pop() ?? ""),
  );
  return [
    { what: "fork of 10,000 messages, 2,500 runs", unit: "ms", values: times.ours },
    { what: "bare INSERT … SELECT of the messages", unit: "ms", values: times.bare },
    { what: "fork / bare", unit: "×", values: ratios(times.ours, times.bare), target: { most: 1.3 } },
  ];
}

/** The means of so many of each in a repetition. */
async function takeTurns(count: number, ours: () => Promise<unknown>, bare: () => Promise<unknown>) {
  return await repeat(async (repetition) => {
    const means = { ours: 0, bare: 0 };
    const turns = [
      async () => {
        means.ours += (await time(ours)) / count;
      },
      async () => {
        means.bare += (await time(bare)) / count;
      },
    ];
    for (let i = 0; i < count; i++) {
      for (const turn of (i + repetition) % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    return means;
  });
}
