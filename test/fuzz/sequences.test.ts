/**
 * Random sequences of calls have the same results on every engine, refusals and the whole final state included. The
 * in-memory engine, which is plain maps, is what the others are held against.
 */
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import type { Message } from "../../src/messages/schema.ts";
import { hasMysql, mysqlLabel } from "../support/mysql.ts";
import { compareEngines, counts } from "./compare.ts";
import { fuzz, ORDINARY_RUNS } from "./fuzz.ts";
import { sequences } from "./operations.ts";
import { servers } from "./servers.ts";
import { type Engine, json, memory, sqlite } from "./stores.ts";

const summary = () => `${counts.calls} calls, ${counts.refused} of them refused.`;

function compared(engine: Engine, options: { archives: boolean; atOnce: boolean }) {
  return fc.asyncProperty(sequences(options), (sequence) => compareEngines([memory, engine], sequence));
}

for (const [engine, runs] of [
  [sqlite, ORDINARY_RUNS],
  [json, 80],
] as const) {
  const property = compared(engine, { archives: true, atOnce: true });
  fuzz(`sequences of calls do the same on memory and ${engine.name}`, runs, property, { summary });
}

const found = await servers();
afterAll(found.dispose);
for (const engine of found.engines) await onServer(engine);
if (!hasMysql) {
  const never = fc.asyncProperty(fc.constant(0), async () => undefined);
  fuzz("sequences of calls do the same on memory and mysql", 1, never, { skip: mysqlLabel });
}

async function onServer(engine: Engine): Promise<void> {
  const probe = await engine.make();
  const archives = probe.checkpointer.capabilities.archives === true;
  await probe.dispose();
  // Calls made at once go by several connections, in any order.
  const property = compared(engine, { archives, atOnce: false });
  fuzz(`sequences of calls do the same on memory and ${engine.name}`, 15, property, { summary });
}

test("an engine that takes a late write is found out, by a short sequence", async () => {
  class Careless extends MemoryCheckpointer {
    override append(threadId: string, messages: readonly Message[]) {
      return super.append(threadId, messages);
    }
  }
  const make = async () => {
    const checkpointer = new Careless();
    return { checkpointer, reopen: async () => undefined, dispose: () => checkpointer.close() };
  };
  const property = compared({ ...memory, name: "careless", make }, { archives: true, atOnce: true });
  const found = await fc.check(property, { numRuns: 1000, seed: 1 });
  expect(found.failed).toBe(true);
  expect(found.counterexample?.[0].ops.length).toBeLessThanOrEqual(3);
});
