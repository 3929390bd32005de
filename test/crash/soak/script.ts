/** Makes a script: random operations that are all allowed, from where the model of a lane stands. */
import type { PendingRequest } from "../../../src/checkpoint/pending.ts";
import type { JsonObject, JsonValue } from "../../../src/messages/json.ts";
import type { AssistantMessage, Message } from "../../../src/messages/schema.ts";
import { activeOf, type LaneModel, type ModelThread, takenByFork } from "./model.ts";
import type { HistoryOp, Op, SharedOp, ThreadOp } from "./ops.ts";
import type { Random } from "./random.ts";

/** More threads are deleted, longer ones too: what is looked at after each kill stays small. */
const MOST_THREADS = 4;
const MOST_MESSAGES = 60;

export interface LaneKind {
  /** What the names of its threads begin with. */
  name: string;
  kind: "threads" | "history";
  archives: boolean;
}

/** Names that are never used twice in a story. */
export class Names {
  #count = 0;

  next(kind: string): string {
    return `${kind}${++this.#count}`;
  }
}

/** The next operations of a lane. @param model where the lane stands; it is not changed */
export function makeScript(random: Random, names: Names, lane: LaneKind, model: LaneModel, count: number): Op[] {
  const after = model.copy();
  return Array.from({ length: count }, () => {
    const op = lane.kind === "history" ? historyOp(random, names) : threadOp(random, names, lane, after);
    after.apply(op);
    return op;
  });
}

/** Appends to the thread that all writers share. */
export function makeShared(random: Random, names: Names, thread: string, count: number): SharedOp[] {
  return Array.from({ length: count }, () => ({ op: "share", thread, message: messageFor(random, names, 0, null) }));
}

function historyOp(random: Random, names: Names): HistoryOp {
  if (random.chance(0.5)) {
    const messages = Array.from({ length: random.whole(1, 4) }, () => {
      return { role: random.pick(["user", "assistant"]) ?? "user", content: textFor(random, names) };
    });
    return { op: "saveMessages", scope: `scope-${random.whole(0, 2)}`, messages, keep: random.whole(1, 10) };
  }
  const records = Array.from({ length: random.chance(0.3) ? random.whole(2, 5) : 1 }, () => ({
    id: names.next("change-"),
    memory_id: `memory-${random.whole(0, 4)}`,
    event: random.pick(["ADD", "UPDATE", "DELETE"]) ?? "ADD",
    new_memory: textFor(random, names),
    actor_id: random.chance(0.5) ? "somebody" : null,
  }));
  return { op: "add", records };
}

function threadOp(random: Random, names: Names, lane: LaneKind, model: LaneModel): ThreadOp {
  const [id, thread] = random.pick([...model.threads]) ?? [];
  if (id === undefined || !thread || (model.threads.size < MOST_THREADS && random.chance(0.05))) {
    return append(random, names, `${lane.name}/${names.next("thread-")}`, undefined);
  }
  if (thread.messages.length > MOST_MESSAGES || (model.threads.size > 1 && random.chance(0.02))) {
    return { op: "deleteThread", thread: id };
  }
  for (;;) {
    const op = oneOf(random, names, lane, model, id, thread);
    if (op) return op;
  }
}

/** One operation on a thread, or undefined when the one that was drawn is not possible there. */
function oneOf(
  random: Random,
  names: Names,
  lane: LaneKind,
  model: LaneModel,
  id: string,
  thread: ModelThread,
): ThreadOp | undefined {
  const open = [...thread.runs].filter(([, seq]) => seq === null).map(([run]) => run);
  const completed = [...thread.runs].filter(([, seq]) => seq !== null).map(([run]) => run);
  const some = random.next();
  if (some < 0.4) return append(random, names, id, open);
  if (some < 0.48) return open.length > 2 ? undefined : { op: "claimRun", thread: id, run: names.next("run-") };
  if (some < 0.56) {
    const run = random.pick(open);
    return run === undefined ? undefined : { op: "markRunComplete", thread: id, run };
  }
  if (some < 0.64) {
    return { op: "saveExtra", thread: id, extra: { [`key-${random.whole(0, 3)}`]: textFor(random, names) } };
  }
  if (some < 0.69) {
    const afterRun = random.pick(completed);
    if (afterRun === undefined || model.threads.size >= MOST_THREADS || takenByFork(thread, afterRun).lacks) return;
    const metadata: JsonObject = { why: names.next("why-") };
    const target = `${lane.name}/${names.next("fork-")}`;
    return { op: "fork", thread: id, target, afterRun, ...(random.chance(0.5) && { metadata }) };
  }
  if (some < 0.78 && lane.archives) {
    const active = activeOf(thread).length;
    if (active === 0) return undefined;
    const count = thread.messages.length - active + random.whole(1, active);
    const system = random.chance(0.5) ? textFor(random, names) : null;
    return { op: "compact", thread: id, count, summary: textFor(random, names), system };
  }
  if (some < 0.82 && lane.archives) {
    return thread.archives.length < 2 ? undefined : { op: "prune", thread: id, keep: random.whole(1, 3) };
  }
  if (some < 0.87) {
    const run = random.pick([...open, null]) ?? null;
    return { op: "ask", thread: id, request: question(names, id), run };
  }
  if (some < 0.97) {
    if (!thread.pending) return undefined;
    const { request, runId: run } = thread.pending;
    const answer: JsonValue = random.pick<JsonValue>([false, null, "", 0, { decision: "approve" }]) ?? null;
    const next = random.chance(0.3) ? question(names, id) : null;
    return { op: "answer", thread: id, question: request.question_id, run, answer, next };
  }
  const answered = random.pick(thread.answers);
  return answered && { op: "clearAnswers", thread: id, run: answered.runId };
}

function append(random: Random, names: Names, thread: string, open: string[] | undefined): ThreadOp {
  const run = random.pick([...(open ?? []), null]) ?? null;
  const count = random.chance(0.2) ? random.whole(2, 6) : 1;
  const messages = Array.from({ length: count }, (_, i) => messageFor(random, names, i, run));
  return { op: "append", thread, messages, expected: random.chance(0.5) };
}

function messageFor(random: Random, names: Names, i: number, run: string | null): Message {
  const content = [{ type: "text" as const, text: textFor(random, names) }];
  const common = { timestamp: 1.5, metadata: {}, run_id: run };
  if (i % 2 === 0) return { role: "user", content, ...common };
  const call = { type: "tool_call" as const, id: names.next("call-"), name: "look", arguments: { at: random.seed() } };
  const assistant: AssistantMessage = {
    role: "assistant",
    content: [...content, call],
    stop_reason: "tool_use",
    error_message: null,
    usage: null,
    provider_id: "soak",
    model_id: "soak-1",
    response_id: null,
    ...common,
  };
  return assistant;
}

function question(names: Names, thread: string): PendingRequest {
  const question_id = names.next("question-");
  return { question_id, thread_id: thread, payload: { kind: "confirm", prompt: question_id }, created_at: 1.5 };
}

/** A text that begins with a word of its own; now and then one that takes many pages of a file. */
function textFor(random: Random, names: Names): string {
  const length = random.chance(0.04) ? random.whole(5_000, 60_000) : random.whole(0, 200);
  const word = `${names.next("word")}x`;
  return `${word} ${"lorem ipsum dolor ".repeat(Math.ceil(length / 18)).slice(0, length)}`;
}
