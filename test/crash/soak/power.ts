/** Takes the power from a recorded writer at every moment that counts, and opens what would be on the disk. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Disk, type Survival } from "./disk.ts";
import { LaneModel, viewOf } from "./model.ts";
import { observe, Violation } from "./observe.ts";
import type { Op, Said, StoreAt } from "./ops.ts";
import { Random } from "./random.ts";
import { makeScript, Names } from "./script.ts";
import { callsOf, Player, recordWriter } from "./trace.ts";

export interface PowerReport {
  /** Stores that were opened. */
  states: number;
  acknowledged: number;
  /** Changes to files that the writer made. */
  changes: number;
}

export interface PowerOptions {
  /** Where a store is within a directory. */
  at: (directory: string) => StoreAt;
  seed: number;
  operations: number;
  /** Of so many changes to files, one is followed by a loss of power. */
  every: number;
}

/** The stores that keep files of their own. */
export const powerStores: { name: string; at: (directory: string) => StoreAt }[] = [
  ...(["delete", "truncate", "persist", "wal"] as const).map((journalMode) => ({
    name: `sqlite ${journalMode}`,
    at: (directory: string): StoreAt => ({ kind: "sqlite", path: join(directory, "state.db"), journalMode }),
  })),
  {
    name: "json",
    at: (directory) => ({ kind: "json", state: join(directory, "state.json"), memory: join(directory, "memory") }),
  },
  ...(["json", "sqlite"] as const).map((backend) => ({
    name: `${backend} session`,
    at: (directory: string): StoreAt => ({ kind: "session", directory: join(directory, "a/session"), backend }),
  })),
];

/** @throws Violation when what was acknowledged before the loss is not there after it */
export async function losePower({ at, seed, operations, every }: PowerOptions): Promise<PowerReport> {
  const random = new Random(seed);
  const work = mkdtempSync(join(tmpdir(), "everthread-power-"));
  const root = join(work, "disk");
  mkdirSync(root);
  const lane = { name: "lane", kind: "threads", archives: true } as const;
  const ops = makeScript(random, new Names(), lane, new LaneModel(true), operations);
  const { code, said, stderr } = await recordWriter({ store: at(root), lanes: [ops] }, join(work, "trace"));
  if (code !== 0 || said.some(([what]) => what === "refused")) throw new Error(`The writer failed: ${stderr}`);

  const models = modelsOf(ops);
  const disk = new Disk();
  const player = new Player(disk, root);
  const report: PowerReport = { states: 0, acknowledged: 0, changes: 0 };
  let intended = 0;
  for (const call of callsOf(join(work, "trace"))) {
    if (call.name === "write" && call.fd === 1) {
      const [what]: Said = JSON.parse(String(call.texts[0]));
      if (what === "intend") intended++;
      if (what === "done") report.acknowledged++;
      // What was just acknowledged must be there whatever becomes of the rest.
      if (what !== "done") continue;
    } else if (player.play(call)) {
      report.changes++;
      if (!random.chance(1 / every)) continue;
    } else continue;
    for (const survival of ["nothing", random] satisfies Survival[]) {
      const target = join(work, `state-${report.states++}`);
      disk.restore(target, survival);
      await check(
        at(target),
        models.slice(report.acknowledged, intended + 1),
        `${target}, after ${report.changes} changes`,
      );
      rmSync(target, { recursive: true });
    }
  }
  rmSync(work, { recursive: true });
  return report;
}

/** What is to be seen after each operation, from none on. */
function modelsOf(ops: Op[]): Record<string, unknown>[] {
  const model = new LaneModel(true);
  const seen = () =>
    structuredClone(Object.fromEntries([...model.threads].map(([id, thread]) => [id, viewOf(thread)])));
  const all = [seen()];
  for (const op of ops) {
    model.apply(op);
    all.push(seen());
  }
  return all;
}

async function check(at: StoreAt, allowed: Record<string, unknown>[], where: string): Promise<void> {
  try {
    const seen = Object.fromEntries((await observe(at, false)).threads);
    if (allowed.some((one) => isDeepStrictEqual(one, seen))) return;
  } catch (error) {
    throw new Violation(`${where}: ${error}`, { cause: error });
  }
  throw new Violation(`${where}: what is there is neither what was acknowledged nor that and what was under way.`);
}
