/**
 * What a script is made of. An operation is plain JSON: it goes to the writer over a pipe, and the model of the store applies
 * the same one. A *lane* is a sequence of operations, one after the other, on threads (or a history) of its own; the lanes of
 * a writer run at the same time.
 */
import type { PendingRequest } from "../../../src/checkpoint/pending.ts";
import type { NewHistoryRecord, NewWindowMessage } from "../../../src/history/history.ts";
import type { JsonObject, JsonValue } from "../../../src/messages/json.ts";
import type { Message } from "../../../src/messages/schema.ts";

export type ThreadOp =
  /** `expected`: with the revision at which the thread stands. */
  | { op: "append"; thread: string; messages: Message[]; expected: boolean }
  | { op: "claimRun"; thread: string; run: string }
  | { op: "markRunComplete"; thread: string; run: string }
  | { op: "saveExtra"; thread: string; extra: JsonObject }
  | { op: "fork"; thread: string; target: string; afterRun: string; metadata?: JsonObject }
  /** `count`: how many of all messages that the thread has are set aside after it. */
  | { op: "compact"; thread: string; count: number; summary: string; system: string | null }
  | { op: "prune"; thread: string; keep: number }
  | { op: "ask"; thread: string; request: PendingRequest; run: string | null }
  | {
      op: "answer";
      thread: string;
      question: string;
      run: string | null;
      answer: JsonValue;
      next: PendingRequest | null;
    }
  | { op: "clearAnswers"; thread: string; run: string | null }
  | { op: "deleteThread"; thread: string };

export type HistoryOp =
  | { op: "add"; records: NewHistoryRecord[] }
  | { op: "saveMessages"; scope: string; messages: NewWindowMessage[]; keep: number };

/** An append to the thread that all writers share. */
export type SharedOp = { op: "share"; thread: string; message: Message };

export type Op = ThreadOp | HistoryOp | SharedOp;

/** What a writer is told at its start. `lanes` go to the store, `history` to the memory history beside it. */
export interface WriterScript {
  store: StoreAt;
  lanes: Op[][];
  /** It dies by SIGKILL, so many ms after it has said so many lines; with 0 lines from its start on. */
  kill?: { lines: number; afterMs: number };
  /** Also go on after an error. */
  goOn?: boolean;
  /** Acknowledge each operation before it is done: what a checker must find out. */
  lie?: boolean;
}

/** How the writer, and whoever checks, open a store. */
export type StoreAt =
  | {
      kind: "sqlite";
      path: string;
      journalMode: "delete" | "truncate" | "persist" | "wal";
      durability?: "normal" | "off";
    }
  | { kind: "history"; path: string }
  | { kind: "json"; state: string; memory: string }
  | { kind: "session"; directory: string; backend: "json" | "sqlite" }
  | { kind: "postgres" | "mysql"; url: string };

/**
 * What a writer says, a line each: it has opened its store; it is about to do the nth operation of a lane; that is
 * acknowledged; it was refused; it is through and about to close.
 */
export type Said =
  | ["open"]
  | ["intend", lane: number, n: number]
  | ["done", lane: number, n: number]
  | ["refused", lane: number, n: number, error: { name: string; code: string | null; message: string }]
  | ["end"];
