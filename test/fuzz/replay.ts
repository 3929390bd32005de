/** Runs a sequence on a store and tells what came of it, in words that are the same for every engine. */
import { strict as assert } from "node:assert";
import type { ArchiveInfo, ArchiveStore } from "../../src/checkpoint/archives.ts";
import type { Checkpoint, LogEntry, RunInfo, ThreadInfo, ThreadPart } from "../../src/checkpoint/checkpointer.ts";
import type { PendingRequest } from "../../src/checkpoint/pending.ts";
import { EverthreadError } from "../../src/errors.ts";
import { assistantMessage, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { JsonObject } from "../../src/messages/json.ts";
import type { Message } from "../../src/messages/schema.ts";
import type { Change, ImportDraft, MaybeRun, MessageDraft, Op, Place, Sequence } from "./operations.ts";
import { Positions } from "./positions.ts";
import type { FuzzStore, Nature } from "./stores.ts";

const ALL = 10_000;
/** Before this are the times that are imported; after it, those of now. */
const NOW = Date.UTC(2020, 0, 1);

export class Replay {
  readonly #store: FuzzStore;
  readonly #sequence: Sequence;
  readonly #positions = new Positions();
  readonly #nature: Nature;
  /** The threads that were deleted at any time. */
  readonly #deleted = new Set<string>();

  /** @param nature what is not compared */
  constructor(store: FuzzStore, sequence: Sequence, nature: Nature) {
    this.#nature = nature;
    this.#store = store;
    this.#sequence = sequence;
  }

  /** Does one operation and gives what came of it. @throws what no caller should ever see: an error that is not Everthread's */
  async run(op: Op): Promise<unknown> {
    if (op.kind === "reopen") {
      await this.#store.reopen();
      return "reopened";
    }
    const show = op.kind === "atOnce" ? this.#atOnce(op.changes) : this.#outcome(op);
    const outcome = await show;
    // Places are told only now: what a call has added is known once the log was read.
    for (const threadId of this.#touched(op)) await this.#learn(threadId);
    return typeof outcome === "function" ? outcome() : outcome;
  }

  /** Everything that is stored. */
  async state(): Promise<unknown> {
    const threads: unknown[] = [];
    for (const [thread] of this.#sequence.threads.entries()) {
      const reads: Op[] = [
        { kind: "load", thread, after: "none" },
        { kind: "listMessages", thread, after: "none", limit: ALL },
        { kind: "listRuns", thread, after: undefined, limit: ALL },
        { kind: "loadPending", thread },
        { kind: "listHitlAnswers", thread },
      ];
      if (this.#store.checkpointer.archives) {
        reads.push({ kind: "listArchives", thread, after: undefined, limit: ALL });
        const { items } = await this.#archives().list(this.#thread(thread), { limit: ALL });
        for (const [i] of items.entries()) reads.push({ kind: "readArchive", thread, archive: i + 1 });
      }
      const state: unknown[] = [];
      for (const read of reads) state.push([read.kind, await this.run(read)]);
      threads.push(state);
    }
    return [threads, await this.run({ kind: "listThreads", prefix: undefined, limit: ALL })];
  }

  async #atOnce(changes: readonly Change[]): Promise<() => unknown[]> {
    const shows = await Promise.all(changes.map((change) => this.#outcome(change)));
    return () => shows.map((show) => show());
  }

  async #outcome(op: Exclude<Op, { kind: "reopen" | "atOnce" }>): Promise<() => unknown> {
    try {
      return await this.#call(op);
    } catch (error) {
      if (!(error instanceof EverthreadError)) throw error;
      return () => ({ refused: error.code });
    }
  }

  /** Makes the call; what is given back shows its value once the new places are known. */
  async #call(op: Exclude<Op, { kind: "reopen" | "atOnce" }>): Promise<() => unknown> {
    const store = this.#store.checkpointer;
    if (op.kind === "listThreads") {
      const { prefix, limit } = op;
      const { items, next } = await store.listThreads({ prefix, limit });
      return () => ({ items: items.map((info) => this.#threadInfo(info)), next });
    }
    if (op.kind === "searchAll") {
      const { hits, has_more } = await this.#archives().search(op.query, { limit: ALL });
      // Across threads the order is that of the clock, which this test does not hold.
      const byThread = this.#sequence.threads.map((id) => hits.filter(({ thread_id }) => thread_id === id));
      return () => ({ hits: byThread.map((some) => some.map((hit) => this.#hit(hit))), has_more });
    }
    const id = this.#thread(op.thread);
    switch (op.kind) {
      case "append": {
        const messages = op.messages.map((draft) => this.#message(draft));
        const revision = await store.append(id, messages, this.#expected(id, op.expected));
        return () => this.#placeOf(id, revision);
      }
      case "saveExtra": {
        await store.saveExtra(id, op.extra, this.#expected(id, op.expected));
        return () => "saved";
      }
      case "claimRun":
      case "markRunComplete": {
        await store[op.kind](id, this.#run(op.run));
        return () => "done";
      }
      case "fork": {
        await store.fork(id, this.#thread(op.target), { afterRunId: this.#run(op.run), metadata: op.metadata });
        return () => "forked";
      }
      case "savePendingRequest": {
        const request = op.question === null ? null : this.#request(op.question, op.details);
        await store.savePendingRequest(id, request, {
          runId: this.#maybeRun(op.run),
          ...this.#expected(id, op.expected),
        });
        return () => "saved";
      }
      case "clearPendingRequestIfMatches": {
        const match = { questionId: this.#question(op.question), runId: this.#maybeRun(op.run) };
        const cleared = await store.clearPendingRequestIfMatches(id, match);
        return () => cleared;
      }
      case "answerPending": {
        const next = typeof op.next === "number" ? this.#request(op.next, {}) : op.next;
        const won = await store.answerPending(id, {
          questionId: this.#question(op.question),
          runId: this.#maybeRun(op.run),
          answer: op.answer,
          next,
        });
        return () => won;
      }
      case "saveHitlAnswer": {
        await store.saveHitlAnswer(id, this.#question(op.question), op.answer, { runId: this.#maybeRun(op.run) });
        return () => "saved";
      }
      case "loadHitlAnswer": {
        const answer = await store.loadHitlAnswer(id, this.#question(op.question), { runId: this.#maybeRun(op.run) });
        return () => ({ answer });
      }
      case "clearHitlAnswers": {
        const questionIds = op.questions?.map((one) => this.#question(one));
        await store.clearHitlAnswers(id, { questionIds, runId: this.#maybeRun(op.run) });
        return () => "cleared";
      }
      case "importThread": {
        const revision = await store.importThread(id, this.#part(op.part), this.#expected(id, op.expected));
        return () => this.#placeOf(id, revision);
      }
      case "deleteThread": {
        this.#deleted.add(id);
        const had = await store.deleteThread(id);
        return () => had;
      }
      case "load": {
        const after = this.#position(id, op.after);
        const checkpoint = await store.load(id, { after });
        return () => checkpoint && this.#checkpoint(id, checkpoint);
      }
      case "snapshot": {
        const messages = await store.snapshot(id, { afterRunId: this.#run(op.run) });
        return () => messages;
      }
      case "loadPending": {
        const pending = await store.loadPending(id);
        return () => ({ pending });
      }
      case "listHitlAnswers": {
        const answers = await store.listHitlAnswers(id);
        return () => answers;
      }
      case "listMessages": {
        const { items, next } = await store.listMessages(id, { after: this.#position(id, op.after), limit: op.limit });
        return () => ({
          items: items.map((entry) => this.#entry(id, entry)),
          next: next !== null && this.#placeOf(id, next),
        });
      }
      case "listRuns": {
        const after = op.after === undefined ? undefined : this.#run(op.after);
        const { items, next } = await store.listRuns(id, { after, limit: op.limit });
        return () => ({ items: items.map(showRun), next });
      }
      default:
        return await this.#callArchives(op, id);
    }
  }

  async #callArchives(
    op: Extract<
      Op,
      { kind: "compact" | "prune" | "contextAfter" | "listArchives" | "readArchive" | "fetch" | "search" }
    >,
    id: string,
  ): Promise<() => unknown> {
    const archives = this.#archives();
    switch (op.kind) {
      case "compact": {
        const upTo = this.#position(id, op.upTo) ?? 0;
        const { summary, system } = op;
        const info = await archives.compact(id, { upTo, summary, system, ...this.#expected(id, op.expected) });
        return () => this.#archiveInfo(id, info);
      }
      case "prune": {
        const report = await archives.prune(id, { keep: op.keep });
        return () => report;
      }
      case "contextAfter": {
        const context = await archives.contextAfter(id, { afterRunId: this.#run(op.run) });
        return () => context;
      }
      case "listArchives": {
        const after = op.after === undefined ? undefined : `a${op.after}`;
        const { items, next } = await archives.list(id, { after, limit: op.limit });
        return () => ({ items: items.map((info) => this.#archiveInfo(id, info)), next });
      }
      case "readArchive": {
        const { messages, previousSummary, system, extra, ...info } = await archives.read(id, `a${op.archive}`);
        return () => ({
          ...this.#archiveInfo(id, info),
          previousSummary,
          system,
          extra,
          messages: messages.map((entry) => this.#entry(id, entry)),
        });
      }
      case "search": {
        const { hits, has_more } = await archives.search(op.query, {
          threadId: id,
          limit: op.limit,
          previewBytes: op.previewBytes,
        });
        return () => ({ hits: hits.map((hit) => this.#hit(hit)), has_more });
      }
      case "fetch": {
        const { archive, source, offset, limit } = op;
        const page = await archives.fetch(id, {
          archiveId: `a${archive}`,
          sourceId: String(this.#position(id, source)),
          offset,
          limit,
        });
        return () => ({
          ...page,
          source_id: this.#placeOf(id, Number(page.source_id)),
          created_at: when(page.created_at),
        });
      }
    }
  }

  #archives(): ArchiveStore {
    assert.ok(this.#store.checkpointer.archives);
    return this.#store.checkpointer.archives;
  }

  /** The threads to whose log an operation may have added something. */
  #touched(op: Op): string[] {
    if (op.kind === "atOnce") return op.changes.flatMap((change) => this.#touched(change));
    if (op.kind === "append" || op.kind === "importThread") return [this.#thread(op.thread)];
    return op.kind === "fork" ? [this.#thread(op.target)] : [];
  }

  async #learn(threadId: string): Promise<void> {
    const { items } = await this.#store.checkpointer.listMessages(threadId, { limit: ALL });
    this.#positions.learn(
      threadId,
      items.map(({ position }) => position),
    );
  }

  #placeOf(threadId: string, position: number): number {
    return this.#positions.placeOf(threadId, position);
  }

  #position(threadId: string, place: Place): number | undefined {
    if (place === "none") return undefined;
    if (place === "start") return 0;
    if (place === "far") return Number.MAX_SAFE_INTEGER;
    return this.#positions.fromEnd(threadId, place.back);
  }

  #expected(threadId: string, place: Place): { expectedRevision?: number } {
    const expectedRevision = this.#position(threadId, place);
    return expectedRevision === undefined ? {} : { expectedRevision };
  }

  #thread(index: number): string {
    return nameAt(this.#sequence.threads, index);
  }

  #run(index: number): string {
    return nameAt(this.#sequence.runs, index);
  }

  #maybeRun(index: MaybeRun): string | null {
    return index === null ? null : this.#run(index);
  }

  #question(index: number): string {
    return nameAt(this.#sequence.questions, index);
  }

  #message({ role, text, run, json }: MessageDraft): Message {
    const about = { run_id: this.#maybeRun(run), metadata: json, timestamp: null };
    switch (role) {
      case "user":
        return userMessage(text, about);
      case "assistant":
        return assistantMessage(text, about);
      case "call":
        return assistantMessage([toolCall("call", text, json)], about);
      case "tool_result":
        return toolResultMessage({ id: "call", name: "tool" }, text, { ...about, details: json });
    }
  }

  #request(question: number, details: JsonObject): PendingRequest {
    return {
      question_id: this.#question(question),
      thread_id: null,
      payload: { kind: "confirm", prompt: "Go on?", details },
      created_at: 1_700_000_000.25,
      timeout_seconds: null,
    };
  }

  #part({ messages, runs, parent, extra, pending, answers, archives }: ImportDraft): ThreadPart {
    return {
      messages: messages?.map(({ draft, day }) => ({ message: this.#message(draft), createdAt: this.#dayOf(day) })),
      runs: runs?.map(({ run, day, completed, seq }) => ({
        runId: this.#run(run),
        claimedAt: this.#dayOf(day),
        completedAt: completed ? this.#dayOf(day + 1) : null,
        completionSeq: seq,
      })),
      parentThreadId: parent === undefined ? undefined : this.#thread(parent),
      // With nothing but a parent a thread would be gone where that is forgotten.
      extra: parent !== undefined && this.#nature.forgetsParents ? { ...extra, kept: true } : extra,
      pending: pending && { request: this.#request(pending.question, {}), runId: this.#maybeRun(pending.run) },
      answers: answers?.map(({ question, run, answer }) => ({
        questionId: this.#question(question),
        runId: this.#maybeRun(run),
        answer,
      })),
      archives: archives?.map(({ count, kept, pruned, text, system, extra: then }, i) => ({
        archiveId: `a${i + 1}`,
        createdAt: this.#dayOf(i),
        messageCount: pruned ? 0 : count,
        kept,
        summary: text,
        system: pruned ? null : system,
        extra: pruned ? {} : then,
        prunedAt: pruned ? this.#dayOf(i + 1) : null,
      })),
    };
  }

  #dayOf(day: number): Date {
    return new Date(Date.UTC(2001, 0, 1 + day, 1, 2, 3, this.#nature.wholeSeconds ? 0 : 456));
  }

  #parent(parent: string | null): string | null {
    return parent !== null && this.#nature.forgetsParents && this.#deleted.has(parent) ? null : parent;
  }

  #checkpoint(id: string, { revision, compactedUpTo, parentThreadId, ...rest }: Checkpoint) {
    const upTo = compactedUpTo === undefined ? {} : { compactedUpTo: this.#placeOf(id, compactedUpTo) };
    return { ...rest, parentThreadId: this.#parent(parentThreadId), revision: this.#placeOf(id, revision), ...upTo };
  }

  #entry(id: string, { position, createdAt, message, error }: LogEntry) {
    return { place: this.#placeOf(id, position), createdAt: when(createdAt), message, error: error?.code };
  }

  #threadInfo({ threadId, revision, parentThreadId, createdAt, updatedAt, ...rest }: ThreadInfo) {
    return {
      threadId,
      ...rest,
      parentThreadId: this.#parent(parentThreadId),
      revision: this.#placeOf(threadId, revision),
      createdAt: when(createdAt),
      updatedAt: when(updatedAt),
    };
  }

  #archiveInfo(id: string, { archiveId, createdAt, upTo, atRevision, messageCount, summary, prunedAt }: ArchiveInfo) {
    const place = { upTo: this.#placeOf(id, upTo), atRevision: this.#placeOf(id, atRevision) };
    return { archiveId, createdAt: when(createdAt), ...place, messageCount, summary, prunedAt: when(prunedAt) };
  }

  #hit(hit: { thread_id: string; source_id: string; created_at: string }) {
    const source_id = this.#placeOf(hit.thread_id, Number(hit.source_id));
    return { ...hit, source_id, created_at: when(hit.created_at) };
  }
}

function nameAt(names: readonly string[], index: number): string {
  const name = names[index];
  assert.ok(name !== undefined);
  return name;
}

function showRun({ runId, claimedAt, completedAt, completionSeq }: RunInfo) {
  return { runId, claimedAt: when(claimedAt), completedAt: when(completedAt), completionSeq };
}

/** A time that was imported, or that it is one of now. */
function when(time: Date | string | null): string | null {
  if (time === null) return null;
  const date = new Date(time);
  return date.getTime() < NOW ? date.toISOString() : "now";
}
