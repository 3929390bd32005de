/** Reads an export: whole threads, checked before anything is written, and the problems of those that are not whole. */
import type { ArchivePart, RecordedAnswer, RunInfo } from "../checkpoint/checkpointer.ts";
import { admitPart } from "../checkpoint/part.ts";
import { admitPending, type PendingRequest } from "../checkpoint/pending.ts";
import { messageOf } from "../errors.ts";
import { admitMessage } from "../messages/admit.ts";
import { copyJson, copyJsonObject, isJsonObject, type JsonObject } from "../messages/json.ts";
import type { Message } from "../messages/schema.ts";
import { checkNewRunId, checkOptionalRunId, checkQuestionId, checkThreadId } from "../util/ids.ts";
import type { Line } from "./lines.ts";
import { FORMAT } from "./records.ts";

export interface FileThread {
  /** The line that it begins on. */
  line: number;
  threadId: string;
  parentThreadId: string | null;
  extra: JsonObject;
  messages: { position: number; createdAt: Date; message: Message }[];
  runs: RunInfo[];
  pending: { request: PendingRequest; runId: string | null } | null;
  answers: RecordedAnswer[];
  archives: ArchivePart[];
}

/** Why a line, and with it its thread, is refused. */
export interface FileProblem {
  line: number;
  /** Absent where the line belongs to no thread. */
  threadId?: string;
  problem: string;
}

type Read = { thread: FileThread } | { problem: FileProblem };

/** A thread is given once its last line was read, and of one with problems only the first. Holds one thread at a time. */
export async function* readThreads(lines: AsyncIterable<Line>): AsyncGenerator<Read> {
  const assembler = new Assembler();
  let last = 0;
  for await (const line of lines) {
    last = line.number;
    yield* assembler.take(line);
  }
  yield* assembler.cutOff(last, "is the last line, and the thread has more: the file was cut short");
}

class Assembler {
  #thread: FileThread | undefined;
  #position = 0;
  /** Whether a problem was reported of this thread, or of lines outside of threads; it holds to the next thread. */
  #refused = false;

  *take(line: Line): Generator<Read> {
    try {
      const record = parse(line);
      if (record.type === "thread") {
        yield* this.cutOff(
          line.number,
          "begins the next thread, and the one before has no last line: it was cut short",
        );
        this.#thread = beginThread(record, line.number);
      } else if (!this.#thread) {
        throw new Error("belongs to no thread: the thread's first line is missing or wrong");
      } else if (record.type === "end") {
        yield* this.#end(record, this.#thread, line.number);
      } else if (!this.#refused) {
        this.#position = addRecord(record, this.#thread, this.#position);
      }
    } catch (error) {
      yield* this.#refuse(line.number, messageOf(error));
    }
  }

  /** Ends a thread that has no last line. */
  *cutOff(line: number, problem: string): Generator<Read> {
    if (this.#thread) yield* this.#refuse(line, problem);
    this.#begin();
  }

  *#end(record: JsonObject, thread: FileThread, line: number): Generator<Read> {
    if (record.thread_id !== thread.threadId) {
      yield* this.#refuse(
        line,
        `ends another thread, ${JSON.stringify(record.thread_id)}, whose first line is missing`,
      );
    } else if (!this.#refused) {
      checkCounts(record, thread);
      yield { thread };
    }
    this.#begin();
  }

  *#refuse(line: number, problem: string): Generator<Read> {
    if (this.#refused) return;
    this.#refused = true;
    yield { problem: { line, ...(this.#thread ? { threadId: this.#thread.threadId } : {}), problem } };
  }

  #begin(): void {
    this.#thread = undefined;
    this.#position = 0;
    this.#refused = false;
  }
}

function parse(line: Line): JsonObject {
  if (line.problem !== undefined) throw new Error(line.problem);
  let record: unknown;
  try {
    record = JSON.parse(line.text);
  } catch (error) {
    throw new Error(`is not JSON: ${messageOf(error)}`);
  }
  if (!isJsonObject(record)) throw new Error("is not a JSON object");
  return record;
}

function beginThread(record: JsonObject, line: number): FileThread {
  const { format = FORMAT, thread_id, parent_thread_id = null, extra = {} } = record;
  if (typeof format !== "number" || format > FORMAT) {
    throw new Error(`is of format ${JSON.stringify(format)}; this Everthread reads formats up to ${FORMAT}`);
  }
  const threadId = checkThreadId(thread_id);
  return {
    line,
    threadId,
    parentThreadId: parent_thread_id === null ? null : checkThreadId(parent_thread_id),
    extra: copyJsonObject(extra, "extra"),
    messages: [],
    runs: [],
    pending: null,
    answers: [],
    archives: [],
  };
}

/** Gives the position after this record. */
function addRecord(record: JsonObject, thread: FileThread, after: number): number {
  switch (record.type) {
    case "message": {
      const { position = after + 1 } = record;
      if (typeof position !== "number" || position <= after) {
        throw new Error(`has position ${JSON.stringify(position)}, which is not after ${after}: lines were moved`);
      }
      const message = admitMessage(record.message);
      if (message.run_id !== undefined && message.run_id !== null) checkNewRunId(message.run_id);
      thread.messages.push({ position, createdAt: timeOf(record, "created_at"), message });
      return position;
    }
    case "run":
      thread.runs.push(toRun(record, thread));
      return after;
    case "pending":
      if (thread.pending) throw new Error("is a second question; a thread waits on one");
      thread.pending = { request: admitPending(record.request), runId: checkOptionalRunId(record.run_id) };
      return after;
    case "answer":
      thread.answers.push(toAnswer(record, thread));
      return after;
    case "archive":
      // All of them again: one is right only after those before it.
      thread.archives = [...(admitPart({ archives: [...thread.archives, toArchive(record)] }).archives ?? [])];
      return after;
    case "damaged":
      throw new Error(
        `stands for a row that was damaged when it was exported: ${String(record.row_ref ?? record.problem)}`,
      );
    default:
      throw new Error(`is of an unknown type, ${JSON.stringify(record.type)}`);
  }
}

function toRun(record: JsonObject, thread: FileThread): RunInfo {
  const runId = checkNewRunId(record.run_id);
  const { completion_seq: seq = null } = record;
  if (seq !== null && !(typeof seq === "number" && Number.isSafeInteger(seq) && seq > 0)) {
    throw new Error(`has completion_seq ${JSON.stringify(seq)}, which must be a whole number from 1, or null`);
  }
  if (thread.runs.some((run) => run.runId === runId || (seq !== null && run.completionSeq === seq))) {
    throw new Error("repeats a run, or its place in the order of completion");
  }
  const claimedAt = timeOf(record, "claimed_at");
  const completed = seq !== null || (record.completed_at ?? null) !== null;
  return { runId, claimedAt, completedAt: completed ? timeOf(record, "completed_at") : null, completionSeq: seq };
}

function toAnswer(record: JsonObject, thread: FileThread): RecordedAnswer {
  const runId = checkOptionalRunId(record.run_id);
  const questionId = checkQuestionId(record.question_id);
  if (record.answer === undefined) throw new Error("has no answer");
  if (thread.answers.some((one) => one.runId === runId && one.questionId === questionId)) {
    throw new Error("is a second answer to a question of one run");
  }
  return { runId, questionId, answer: copyJson(record.answer, "answer") };
}

function toArchive(record: JsonObject): ArchivePart {
  const { archive_id, messages, kept = 0, summary, system = null, extra = {}, pruned_at = null } = record;
  const archive = {
    archiveId: archive_id,
    createdAt: timeOf(record, "created_at"),
    messageCount: messages,
    kept,
    summary,
    system,
    extra,
    prunedAt: pruned_at === null ? null : timeOf(record, "pruned_at"),
  };
  return archive as ArchivePart;
}

/** The time of a record; now, where it has none. */
function timeOf(record: JsonObject, field: string): Date {
  const value = record[field] ?? null;
  if (value === null) return new Date();
  const time = new Date(typeof value === "string" ? value : Number.NaN);
  if (Number.isNaN(time.getTime())) throw new Error(`has ${field} ${JSON.stringify(value)}, which is no time`);
  return time;
}

function checkCounts(record: JsonObject, { messages, runs, archives }: FileThread): void {
  const archived = archives.reduce((sum, { messageCount }) => sum + messageCount, 0);
  if (archived > messages.length) {
    throw new Error(`has archives of ${archived} messages, and there are ${messages.length}: lines are missing`);
  }
  if (record.messages === messages.length && record.runs === runs.length) return;
  const said = `${String(record.messages)} messages and ${String(record.runs)} runs`;
  throw new Error(`says ${said}, and there are ${messages.length} and ${runs.length}: lines are missing or doubled`);
}
