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
  const { ours, bare } = await takeTurns(LOADS, { ours: load, bare: () => bareLoad("load") });
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
  /** Copies the messages and the runs, in one transaction. */
  copyBoth(source: string, target: string): Promise<unknown>;
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
  for (let i = 0; i < 2 * FORKS * (REPETITIONS + 1); i++) {
    const target = newId();
    await bare.begin(target);
    targets.push(target);
  }
  const { ours, messages, both } = await takeTurns(FORKS, {
    ours: () => store.fork(source, newId(), { afterRunId }),
    messages: () => bare.copy(source, targets.pop() ?? ""),
    both: () => bare.copyBoth(source, targets.pop() ?? ""),
  });
  return [
    { what: "fork of 10,000 messages, 2,500 runs", unit: "ms", values: ours },
    { what: "bare INSERT … SELECT of the messages", unit: "ms", values: messages },
    { what: "fork / bare", unit: "×", values: ratios(ours, messages), target: { most: 1.3 } },
    { what: "bare INSERT … SELECT of messages and runs", unit: "ms", values: both },
    { what: "fork / bare of both", unit: "×", values: ratios(ours, both) },
  ];
}

/** The means of so many of each in a repetition; each is as often the first as any other. */
async function takeTurns<Name extends string>(count: number, works: Record<Name, () => Promise<unknown>>) {
  const names = Object.keys(works) as Name[];
  return await repeat(async (repetition) => {
    const means = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
    for (let i = 0; i < count; i++) {
      const first = (i + repetition + names.length) % names.length;
      for (const name of [...names.slice(first), ...names.slice(0, first)])
        means[name] += (await time(works[name])) / count;
    }
    return means;
  });
}
