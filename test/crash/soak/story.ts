/**
 * A story: one store, on which writers live one after the other, each killed, and after each the store is compared with the
 * models of its lanes. What must be there of a lane: all that was acknowledged, and besides at most the one operation
 * that was under way.
 */
import { isDeepStrictEqual } from "node:util";
import type { Message } from "../../../src/messages/schema.ts";
import type { Backend, OpenedStore } from "./backends.ts";
import { LaneModel, viewOf } from "./model.ts";
import { observe, Violation } from "./observe.ts";
import type { Op, Said, WriterScript } from "./ops.ts";
import type { WriterEnd, WriterPool } from "./process.ts";
import type { Random } from "./random.ts";
import { type LaneKind, makeScript, makeShared, Names } from "./script.ts";

/** So many operations a lane has in one life; most lives end before. */
const OPS = 24;
/** Of several writers, all but one come to their end. */
const OPS_OF_SEVERAL = 8;
const SHARED = "shared";

interface Lane extends LaneKind {
  model: LaneModel;
}

export interface RoundReport {
  acknowledged: number;
  /** Operations that were there without their acknowledgement having come out. */
  unacknowledged: number;
  /** Whether the writer was killed before it was through. */
  killed: boolean;
}

/** Everything that is needed to look into a violation. */
export interface Life {
  scripts: WriterScript[];
  said: Said[][];
}

export class Story {
  readonly lives: Life[] = [];
  readonly #random: Random;
  readonly #names = new Names();
  readonly #backend: Backend;
  readonly #store: OpenedStore;
  readonly #pool: WriterPool;
  readonly #lanes: Lane[];
  readonly #lie: boolean;
  /** What the writers appended to the thread that they share, as it was last seen. */
  #shared: Message[] = [];

  /** @param lie whether the writers acknowledge what is not done yet */
  constructor(backend: Backend, store: OpenedStore, pool: WriterPool, random: Random, lie: boolean) {
    this.#lie = lie;
    this.#backend = backend;
    this.#store = store;
    this.#pool = pool;
    this.#random = random;
    const kind = backend.kind === "history" ? "history" : "threads";
    this.#lanes = Array.from({ length: backend.lanes * backend.writers }, (_, i) => {
      return { name: `lane-${i}`, kind, archives: store.archives, model: new LaneModel(backend.keepsParents) };
    });
  }

  /** One life of the writers, and the look at what it left. @throws Violation, and what the store throws */
  async round(): Promise<RoundReport> {
    const { lanes, writers } = this.#backend;
    const random = this.#random;
    const ofWriter = Array.from({ length: writers }, (_, w) => this.#lanes.slice(w * lanes, (w + 1) * lanes));
    const scripts = ofWriter.map((own): WriterScript => {
      const count = writers > 1 ? OPS_OF_SEVERAL : OPS;
      const ops: Op[][] = own.map((lane) => makeScript(random, this.#names, lane, lane.model, count));
      if (writers > 1) ops.push(makeShared(random, this.#names, SHARED, count));
      return { store: this.#store.at, lanes: ops, lie: this.#lie };
    });
    const life: Life = { scripts, said: [] };
    this.lives.push(life);
    const ends = await this.#live(scripts);
    life.said = ends.map(({ said }) => said);
    for (const end of ends) checkEnd(end);
    await this.#store.settled?.();
    if (random.chance(0.25)) await this.#killInOpening();

    const readOnly = this.#backend.readOnly && random.chance(0.5);
    const { threads, history } = await observe(this.#store.at, readOnly);
    const report = { acknowledged: 0, unacknowledged: 0, killed: ends.some(({ signal }) => signal === "SIGKILL") };
    for (const [w, own] of ofWriter.entries()) {
      for (const [i, lane] of own.entries()) {
        const { done, under } = progress(ends[w]?.said ?? [], scripts[w]?.lanes ?? [], i);
        report.acknowledged += done.length;
        for (const op of done) lane.model.apply(op);
        const shown = new Map([...threads].filter(([id]) => id.startsWith(`${lane.name}/`)));
        const seen = lane.kind === "history" ? history : Object.fromEntries(shown);
        const expected = [lane.model, ...(under ? [withOp(lane.model, under)] : [])];
        const found = expected.find((model) => isDeepStrictEqual(seen, seenOf(lane, model)));
        if (!found) throw new Violation(difference(lane, seen, expected));
        if (found !== lane.model) report.unacknowledged++;
        lane.model = found;
      }
    }
    const names = this.#lanes.map(({ name }) => `${name}/`);
    for (const id of threads.keys()) {
      if (id !== SHARED && !names.some((name) => id.startsWith(name))) throw new Violation(`There is a thread ${id}.`);
    }
    if (writers > 1) this.#checkShared(threads.get(SHARED)?.all ?? [], scripts, ends, report);
    return report;
  }

  /** Starts the writers and kills one at a random moment. The others go through to their ends. */
  async #live(scripts: WriterScript[]): Promise<WriterEnd[]> {
    const random = this.#random;
    const writers = scripts.map(() => this.#pool.take());
    const victim = random.whole(0, writers.length - 1);
    for (const [i, script] of scripts.entries()) {
      if (i !== victim) {
        writers[i]?.begin(script);
        continue;
      }
      // By lines, so that a slow machine is killed at the same places; a few before it has opened, and at its closing.
      const lines = 2 + 2 * script.lanes.reduce((sum, { length }) => sum + length, 0);
      const first = random.chance(0.1) ? 0 : random.whole(1, lines);
      writers[i]?.begin({ ...script, kill: { lines: first, afterMs: random.next() * (first === 0 ? 20 : 4) } });
    }
    return await Promise.all(writers.map(({ ended }) => ended));
  }

  /** Starts another writer on what the last one left, and kills it while it mends that. */
  async #killInOpening(): Promise<void> {
    const writer = this.#pool.take();
    writer.begin({ store: this.#store.at, lanes: [], kill: { lines: 0, afterMs: this.#random.next() * 20 } });
    checkEnd(await writer.ended);
    await this.#store.settled?.();
  }

  /** Of each writer: what was acknowledged is there, in order, and at most the one message more that was under way. */
  #checkShared(all: Message[], scripts: WriterScript[], ends: WriterEnd[], report: RoundReport): void {
    const before = this.#shared;
    this.#shared = all;
    if (!isDeepStrictEqual(all.slice(0, before.length), before)) throw new Violation("The shared thread has changed.");
    const added = all.slice(before.length);
    let accounted = 0;
    for (const [w, { lanes }] of scripts.entries()) {
      const { done, under } = progress(ends[w]?.said ?? [], lanes, lanes.length - 1);
      const own = (lanes.at(-1) ?? []).flatMap((op) => (op.op === "share" ? [op.message] : []));
      const found = added.filter((message) => own.some((mine) => isDeepStrictEqual(mine, message)));
      if (!isDeepStrictEqual(found, own.slice(0, found.length))) throw new Violation(`Writer ${w}'s are out of order.`);
      if (found.length < done.length || found.length > done.length + (under ? 1 : 0)) {
        throw new Violation(
          `Writer ${w} had ${done.length} acknowledged in the shared thread; ${found.length} are there.`,
        );
      }
      report.acknowledged += done.length;
      report.unacknowledged += found.length - done.length;
      accounted += found.length;
    }
    if (accounted !== added.length) throw new Violation("The shared thread holds what nobody wrote.");
  }
}

/** A writer that was not killed has come to its end without a complaint. */
function checkEnd({ said, code, signal, stderr }: WriterEnd): void {
  const refused = said.find(([what]) => what === "refused");
  if (refused) throw new Violation(`The writer was refused what is allowed: ${JSON.stringify(refused)}`);
  if (signal !== "SIGKILL" && code !== 0) throw new Violation(`The writer failed: ${stderr || code}`);
}

/** What a lane has acknowledged, and the operation under way. */
function progress(said: Said[], lanes: Op[][], lane: number): { done: Op[]; under: Op | undefined } {
  const count = (what: "done" | "intend") => said.filter((one) => one[0] === what && one[1] === lane).length;
  const ops = lanes[lane] ?? [];
  const done = ops.slice(0, count("done"));
  return { done, under: count("intend") > done.length ? ops[done.length] : undefined };
}

function withOp(model: LaneModel, op: Op): LaneModel {
  const after = model.copy();
  after.apply(op);
  return after;
}

function seenOf(lane: Lane, model: LaneModel): unknown {
  if (lane.kind === "history") return model.history;
  return Object.fromEntries([...model.threads].map(([id, thread]) => [id, viewOf(thread)]));
}

function difference(lane: Lane, seen: unknown, expected: LaneModel[]): string {
  const found = expected.map((model) => firstDifference(seen, seenOf(lane, model), lane.name));
  return `It is not as it should be: ${found.join("; or, with what was under way, ")}`;
}

/** Where two values differ first, for people. */
function firstDifference(found: unknown, expected: unknown, path: string): string {
  if (typeof found === "object" && found && typeof expected === "object" && expected) {
    const [a, b] = [found as Record<string, unknown>, expected as Record<string, unknown>];
    const key = [...new Set([...Object.keys(a), ...Object.keys(b)])].find((one) => !isDeepStrictEqual(a[one], b[one]));
    if (key !== undefined) return firstDifference(a[key], b[key], `${path}.${key}`);
  }
  const shown = (value: unknown) => JSON.stringify(value)?.slice(0, 200);
  return `${path} is ${shown(found)} in place of ${shown(expected)}`;
}
