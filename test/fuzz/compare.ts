/** Runs one sequence on several engines and holds what came of it against the first of them. */
import { deepStrictEqual } from "node:assert/strict";
import type { Op, Sequence } from "./operations.ts";
import { Replay } from "./replay.ts";
import type { Engine, Nature } from "./stores.ts";

/** How many calls were compared, and how many of them were refused: sequences in which nothing works would test little. */
export const counts = { calls: 0, refused: 0 };

/** @throws AssertionError naming the engine and the call where it differs from the first engine */
export async function compareEngines(engines: readonly Engine[], sequence: Sequence): Promise<void> {
  const stores = await Promise.all(engines.map((engine) => engine.make()));
  try {
    const every = natureOf(engines);
    const replays = stores.map((store) => new Replay(store, sequence, every));
    const hasSearch = stores.map(({ checkpointer }) => checkpointer.capabilities.search === true);
    const each = (run: (replay: Replay) => Promise<unknown>) => Promise.all(replays.map(run));
    for (const [i, op] of sequence.ops.entries()) {
      const outcomes = await each((replay) => replay.run(op));
      counts.calls++;
      if (isRefusal(outcomes[0])) counts.refused++;
      const searches = op.kind === "search" || op.kind === "searchAll" || op.kind === "fetch";
      for (const [e, outcome] of outcomes.entries()) {
        // What an engine says it can't do it refuses, whatever is asked.
        const expected = searches && !hasSearch[e] ? { refused: "unsupported" } : outcomes[0];
        assertSame(outcome, expected, engines[e] as Engine, `call ${i} (${describe(op)})`);
      }
    }
    const states = await each((replay) => replay.state());
    for (const [e, state] of states.entries())
      assertSame(state, states[0], engines[e] as Engine, "the state at the end");
    for (const store of stores) await store.reopen();
    const later = await each((replay) => replay.state());
    for (const [e, state] of later.entries())
      assertSame(state, states[0], engines[e] as Engine, "the state once reopened");
  } finally {
    for (const store of stores) await store.dispose();
  }
}

/** What none of the engines is held to. */
function natureOf(engines: readonly Engine[]): Nature {
  const some = (name: keyof Nature) => engines.some(({ nature }) => nature[name]);
  return {
    sortsKeys: some("sortsKeys"),
    wholeSeconds: some("wholeSeconds"),
    forgetsParents: some("forgetsParents"),
    shortQuestionRuns: some("shortQuestionRuns"),
  };
}

function assertSame(actual: unknown, expected: unknown, engine: Engine, where: string): void {
  const text = (value: unknown) => JSON.stringify([value === undefined ? "undefined" : value]);
  if (!engine.nature.sortsKeys && text(actual) === text(expected)) return;
  const message = `${engine.name} differs at ${where}:\n${text(actual)}\nand not\n${text(expected)}`;
  if (!engine.nature.sortsKeys) throw new Error(message);
  try {
    deepStrictEqual(actual, expected);
  } catch (cause) {
    throw new Error(message, { cause });
  }
}

function isRefusal(outcome: unknown): boolean {
  return typeof outcome === "object" && outcome !== null && "refused" in outcome;
}

function describe(op: Op): string {
  return op.kind === "atOnce" ? op.changes.map(({ kind }) => kind).join(" and ") : op.kind;
}
