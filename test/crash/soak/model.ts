/** A model of a store: what must be there after the operations of a lane, decided anew and as simply as can be. */
import type { PendingRequest } from "../../../src/checkpoint/pending.ts";
import type { HistoryRecord, WindowMessage } from "../../../src/history/history.ts";
import type { JsonObject, JsonValue } from "../../../src/messages/json.ts";
import type { Message } from "../../../src/messages/schema.ts";
import type { HistoryOp, Op, ThreadOp } from "./ops.ts";

interface ModelMessage {
  /** Its place in the lane: it stands for the position, which each engine numbers in its own way. */
  at: number;
  message: Message;
}

interface ModelArchive {
  summary: string;
  system: string | null;
  extra: JsonObject;
  upTo: number;
  atRevision: number;
  pruned: boolean;
}

export interface ModelThread {
  messages: ModelMessage[];
  archives: ModelArchive[];
  extra: JsonObject;
  parent: string | null;
  /** The order of completion; null while it has not completed. */
  runs: Map<string, number | null>;
  pending: { request: PendingRequest; runId: string | null } | null;
  answers: { runId: string | null; questionId: string; answer: JsonValue }[];
}

/** What can be seen of a thread through the contract. */
export interface ThreadView {
  all: Message[];
  active: Message[];
  summary: string | null;
  /** How many of the active messages are older than the last compaction. */
  kept: number | null;
  archives: {
    id: string;
    summary: string;
    pruned: boolean;
    /** What it holds; null once it was pruned. */
    content: {
      messages: Message[];
      system: string | null;
      extra: JsonObject;
      previousSummary: string | null;
    } | null;
  }[];
  extra: JsonObject;
  parent: string | null;
  runs: Record<string, number | null>;
  pending: ModelThread["pending"];
  answers: ModelThread["answers"];
}

export interface HistoryView {
  records: Omit<HistoryRecord, "created_at" | "updated_at">[];
  windows: Record<string, Omit<WindowMessage, "created_at">[]>;
}

export class LaneModel {
  readonly threads = new Map<string, ModelThread>();
  history: HistoryView = { records: [], windows: {} };
  readonly #keepsParents: boolean;
  #last = 0;

  /** @param keepsParents whether a fork still knows its parent when that was deleted: a server's foreign key does not allow it */
  constructor(keepsParents: boolean) {
    this.#keepsParents = keepsParents;
  }

  copy(): LaneModel {
    const copy = new LaneModel(this.#keepsParents);
    for (const [id, thread] of structuredClone(this.threads)) copy.threads.set(id, thread);
    copy.history = structuredClone(this.history);
    copy.#last = this.#last;
    return copy;
  }

  apply(op: Op): void {
    if (op.op === "add" || op.op === "saveMessages") this.#applyHistory(op);
    else if (op.op !== "share") this.#applyThread(op);
  }

  #applyHistory(op: HistoryOp): void {
    if (op.op === "add") {
      for (const { id = "", memory_id, event, old_memory, new_memory, actor_id, role } of op.records) {
        this.history.records.push({
          id,
          memory_id,
          event,
          old_memory: old_memory ?? null,
          new_memory: new_memory ?? null,
          is_deleted: event === "DELETE",
          actor_id: actor_id ?? null,
          role: role ?? null,
        });
      }
      return;
    }
    const added = op.messages.map(({ role, content, name }) => ({ role, content, name: name ?? null }));
    this.history.windows[op.scope] = [...(this.history.windows[op.scope] ?? []), ...added].slice(-op.keep);
  }

  #applyThread(op: ThreadOp): void {
    if (op.op === "deleteThread") {
      this.threads.delete(op.thread);
      if (this.#keepsParents) return;
      for (const thread of this.threads.values()) if (thread.parent === op.thread) thread.parent = null;
      return;
    }
    let thread = this.threads.get(op.thread);
    if (!thread) {
      thread = { messages: [], archives: [], extra: {}, parent: null, runs: new Map(), pending: null, answers: [] };
      this.threads.set(op.thread, thread);
    }
    switch (op.op) {
      case "append":
        for (const message of op.messages) thread.messages.push({ at: ++this.#last, message });
        break;
      case "claimRun":
        thread.runs.set(op.run, null);
        break;
      case "markRunComplete":
        thread.runs.set(op.run, Math.max(0, ...[...thread.runs.values()].map(Number)) + 1);
        break;
      case "saveExtra":
        Object.assign(thread.extra, op.extra);
        break;
      case "fork":
        this.threads.set(op.target, this.#fork(op.thread, thread, op.afterRun, op.metadata));
        break;
      case "compact":
        thread.archives.push({
          summary: op.summary,
          system: op.system,
          extra: structuredClone(thread.extra),
          upTo: thread.messages[op.count - 1]?.at ?? 0,
          atRevision: thread.messages.at(-1)?.at ?? 0,
          pruned: false,
        });
        break;
      case "prune":
        for (const archive of prunable(thread, op.keep)) {
          const gone = archivedIn(thread, archive);
          thread.messages = thread.messages.filter((message) => !gone.includes(message));
          archive.pruned = true;
        }
        break;
      case "ask":
        thread.pending = { request: op.request, runId: op.run };
        break;
      case "answer": {
        const { run: runId, question: questionId, answer, next } = op;
        thread.pending = next && { request: next, runId };
        thread.answers.push({ runId, questionId, answer });
        break;
      }
      case "clearAnswers":
        thread.answers = thread.answers.filter(({ runId }) => runId !== op.run);
        break;
    }
  }

  #fork(source: string, thread: ModelThread, afterRun: string, metadata: JsonObject | undefined): ModelThread {
    const { runs, messages, archives } = takenByFork(thread, afterRun);
    const copies = messages.map(({ message }) => ({ at: ++this.#last, message }));
    const moved = (at: number) => copies[messages.findLastIndex((one) => one.at <= at)]?.at ?? 0;
    return structuredClone({
      messages: copies,
      archives: archives.map((one) => ({ ...one, upTo: moved(one.upTo), atRevision: moved(one.atRevision) })),
      extra: { ...thread.extra, ...(metadata && { fork: metadata }) },
      parent: source,
      runs,
      pending: null,
      answers: [],
    });
  }
}

/** What a fork takes; `archives` are those that end before the run does. */
export function takenByFork(thread: ModelThread, afterRun: string) {
  const last = thread.runs.get(afterRun) ?? 0;
  const runs = new Map([...thread.runs].filter(([, seq]) => seq !== null && seq <= last));
  const runOf = ({ message }: ModelMessage) => message.run_id ?? null;
  const messages = thread.messages.filter((one) => runOf(one) === null || runs.has(runOf(one) ?? ""));
  const cut = messages.findLast((one) => runOf(one) !== null)?.at ?? 0;
  const archives = thread.archives.filter(({ upTo }) => upTo <= cut);
  /** Whether what the fork needs was removed by retention. */
  const lacks = thread.archives.slice(archives.length).some(({ pruned }) => pruned);
  return { runs, messages, archives, lacks };
}

function archivedIn(thread: ModelThread, archive: ModelArchive): ModelMessage[] {
  const before = thread.archives[thread.archives.indexOf(archive) - 1]?.upTo ?? 0;
  return thread.messages.filter(({ at }) => at > before && at <= archive.upTo);
}

function prunable(thread: ModelThread, keep: number): ModelArchive[] {
  const old = keep === 0 ? [] : thread.archives.slice(0, -keep).filter(({ pruned }) => !pruned);
  const waiting = thread.pending?.runId ?? null;
  const holds = (one: ModelArchive) => archivedIn(thread, one).some(({ message }) => message.run_id === waiting);
  return waiting === null ? old : old.filter((one) => !holds(one));
}

/** The messages of a thread that no compaction has set aside. */
export function activeOf(thread: ModelThread): ModelMessage[] {
  return thread.messages.filter(({ at }) => at > (thread.archives.at(-1)?.upTo ?? 0));
}

/** What must be seen of a thread. */
export function viewOf(thread: ModelThread): ThreadView {
  const messagesOf = (list: ModelMessage[]) => list.map(({ message }) => message);
  const last = thread.archives.at(-1);
  const active = activeOf(thread);
  return {
    all: messagesOf(thread.messages),
    active: messagesOf(active),
    summary: last?.summary ?? null,
    kept: last ? active.filter(({ at }) => at <= last.atRevision).length : null,
    archives: thread.archives.map((archive, i) => {
      const { summary, pruned, system, extra } = archive;
      const previousSummary = thread.archives[i - 1]?.summary ?? null;
      const content = { messages: messagesOf(archivedIn(thread, archive)), system, extra, previousSummary };
      return { id: `a${i + 1}`, summary, pruned, content: pruned ? null : content };
    }),
    extra: thread.extra,
    parent: thread.parent,
    runs: Object.fromEntries(thread.runs),
    pending: thread.pending,
    answers: sorted(thread.answers),
  };
}

/** The ledger in an order of its own: engines order it by run and question. */
export function sorted(answers: ModelThread["answers"]): ModelThread["answers"] {
  const key = ({ runId, questionId }: ModelThread["answers"][number]) => JSON.stringify([runId, questionId]);
  return [...answers].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
