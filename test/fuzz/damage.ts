/** What may happen to stored bytes, and a store to whose bytes it happens. */
import * as fc from "fast-check";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { EverthreadError } from "../../src/errors.ts";
import { assistantMessage, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import { compareCodePoints } from "../../src/util/ids.ts";

/** A change of bytes. Places are fractions of their length, so that they fit bytes of any length. */
export type Damage =
  | { kind: "flip"; at: number; bit: number }
  | { kind: "write"; at: number; bytes: Uint8Array }
  | { kind: "zero"; at: number; length: number }
  | { kind: "cut"; at: number }
  | { kind: "grow"; bytes: Uint8Array }
  | { kind: "insert"; at: number; bytes: Uint8Array }
  | { kind: "remove"; at: number; length: number }
  | { kind: "move"; from: number; to: number; length: number };

const at = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const bytes = fc.uint8Array({ minLength: 1, maxLength: 40 });
const length = fc.constantFrom(1, 2, 16, 512, 4096);

const inPlace: fc.Arbitrary<Damage>[] = [
  fc.record({ kind: fc.constant("flip" as const), at, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant("write" as const), at, bytes }),
  fc.record({ kind: fc.constant("zero" as const), at, length }),
  fc.record({ kind: fc.constant("move" as const), from: at, to: at, length }),
];
const shifting: fc.Arbitrary<Damage>[] = [
  // The beginnings of files say how the rest is read.
  fc.record({ kind: fc.constant("flip" as const), at: at.map((place) => place / 50), bit: fc.nat(7) }),
  fc.record({ kind: fc.constant("cut" as const), at }),
  fc.record({ kind: fc.constant("grow" as const), bytes }),
  fc.record({ kind: fc.constant("insert" as const), at, bytes }),
  fc.record({ kind: fc.constant("remove" as const), at, length }),
];
/** Half of it leaves every byte that is not damaged where it was, so that a file of pages can be opened all the same. */
export const damages: fc.Arbitrary<Damage[]> = fc.oneof(
  fc.array(fc.oneof(...inPlace), { minLength: 1, maxLength: 3 }),
  fc.array(fc.oneof(...inPlace, ...shifting), { minLength: 1, maxLength: 4 }),
);

export function damaged(original: Uint8Array, changes: readonly Damage[]): Buffer {
  return changes.reduce<Buffer>(damagedOnce, Buffer.from(original));
}

function damagedOnce(buffer: Buffer, damage: Damage): Buffer {
  const index = (place: number) => Math.floor(place * buffer.length);
  switch (damage.kind) {
    case "flip": {
      const copy = Buffer.from(buffer);
      if (copy.length > 0) copy[index(damage.at)] = (copy[index(damage.at)] ?? 0) ^ (1 << damage.bit);
      return copy;
    }
    case "write": {
      const copy = Buffer.from(buffer);
      copy.set(damage.bytes.subarray(0, buffer.length - index(damage.at)), index(damage.at));
      return copy;
    }
    case "zero":
      return Buffer.from(buffer).fill(0, index(damage.at), Math.min(buffer.length, index(damage.at) + damage.length));
    case "cut":
      return buffer.subarray(0, index(damage.at));
    case "grow":
      return Buffer.concat([buffer, damage.bytes]);
    case "insert":
      return Buffer.concat([buffer.subarray(0, index(damage.at)), damage.bytes, buffer.subarray(index(damage.at))]);
    case "remove":
      return Buffer.concat([buffer.subarray(0, index(damage.at)), buffer.subarray(index(damage.at) + damage.length)]);
    case "move": {
      const copy = Buffer.from(buffer);
      const part = buffer.subarray(index(damage.from), index(damage.from) + damage.length);
      copy.set(part.subarray(0, buffer.length - index(damage.to)), index(damage.to));
      return copy;
    }
  }
}

/** The threads of a store that is to be damaged. */
export const THREADS = ["a", "b", "c", "fork"] as const;

/** Puts some of everything into a store. */
export async function furnish(store: Checkpointer): Promise<void> {
  for (const thread of ["a", "b", "c"]) {
    await store.claimRun(thread, "r1");
    const call = toolCall("call", "look", { path: "é", list: [1, null, "\0"] });
    await store.append(thread, [
      userMessage(`What is in ${thread}?`, { run_id: "r1", metadata: { k: [1, 2, 3] } }),
      assistantMessage([call], { run_id: "r1" }),
      toolResultMessage(call, "a needle and hay ".repeat(300), { run_id: "r1", details: { deep: [[[1e308]]] } }),
      assistantMessage("A needle 中文 😀.", { run_id: "r1" }),
    ]);
    await store.markRunComplete(thread, "r1");
    await store.saveExtra(thread, { plan: { step: 1 }, of: thread });
    const { items } = await store.listMessages(thread);
    if (store.archives) {
      const upTo = (index: number) => ({
        upTo: items[index]?.position ?? 0,
        summary: "A needle was found.",
        system: "Be brief.",
      });
      await store.archives.compact(thread, upTo(0));
      await store.archives.compact(thread, upTo(2));
    }
    await store.claimRun(thread, "r2");
    await store.append(thread, [userMessage("And now?", { run_id: "r2" })]);
    const payload = { kind: "confirm" as const, prompt: "Go on?", details: { risk: 0.5 } };
    const request = { question_id: "q", thread_id: thread, payload, created_at: 1_700_000_000.25 };
    await store.savePendingRequest(thread, request, { runId: "r2" });
    await store.saveHitlAnswer(thread, "q0", { ok: true }, { runId: "r2" });
  }
  await store.fork("a", "fork", { afterRunId: "r1", metadata: { why: "to look" } });
}

export type Outcome = { value: unknown } | { refused: string };

/** What comes of a call: its value, or the code of its error. @throws what is no error of Everthread's */
export async function outcome(call: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await call() };
  } catch (error) {
    if (error instanceof EverthreadError) return { refused: error.code };
    throw error;
  }
}

/** Reads all there is of a thread. */
export async function readThread(store: Checkpointer, threadId: string): Promise<Record<string, Outcome>> {
  const { archives } = store;
  const log = async () => {
    const { items, next } = await store.listMessages(threadId);
    return [items.map(({ position, message, error }) => [position, message, error?.code]), next];
  };
  const found: Record<string, Outcome> = {
    load: await outcome(() => store.load(threadId)),
    log: await outcome(log),
    runs: await outcome(() => store.listRuns(threadId)),
    pending: await outcome(() => store.loadPending(threadId)),
    answer: await outcome(() => store.loadHitlAnswer(threadId, "q0", { runId: "r2" })),
    answers: await outcome(() => store.listHitlAnswers(threadId)),
    snapshot: await outcome(() => store.snapshot(threadId, { afterRunId: "r1" })),
  };
  if (!archives) return found;
  // How an error would name a row differs with the place of the store.
  const archive = async (archiveId: string) => {
    const { messages, ...rest } = await archives.read(threadId, archiveId);
    return { ...rest, messages: messages.map(({ rowRef: _, ...entry }) => entry) };
  };
  const position = async () => String((await archives.read(threadId, "a2")).messages.at(-1)?.position);
  return {
    ...found,
    archives: await outcome(() => archives.list(threadId)),
    a1: await outcome(() => archive("a1")),
    a2: await outcome(() => archive("a2")),
    source: await outcome(async () =>
      store.capabilities.search === true
        ? archives.fetch(threadId, { archiveId: "a2", sourceId: await position(), limit: 1000 })
        : null,
    ),
    search: await outcome(async () =>
      store.capabilities.search === true ? archives.search("NEEDLE", { threadId }) : null,
    ),
  };
}

/** Reads all there is of a store. */
export async function readAll(store: Checkpointer): Promise<Record<string, unknown>> {
  const threads = await outcome(async () => {
    const { items } = await store.listThreads();
    return items.toSorted((a, b) => compareCodePoints(a.threadId, b.threadId));
  });
  const all: Record<string, unknown> = { threads };
  for (const threadId of THREADS) all[threadId] = await readThread(store, threadId);
  return all;
}

/** Writes what a program would write next. */
export async function goOn(store: Checkpointer): Promise<void> {
  for (const threadId of THREADS) {
    await outcome(() => store.append(threadId, [userMessage("Go on.", { run_id: "r2" })]));
    await outcome(() => store.saveExtra(threadId, { more: 1 }));
    await outcome(() => store.markRunComplete(threadId, "r2"));
    await outcome(() => store.fork(threadId, `${threadId}2`, { afterRunId: "r1" }));
    await outcome(async () => store.archives?.prune(threadId, { keep: 1 }));
    await outcome(() => store.deleteThread(threadId));
  }
}
