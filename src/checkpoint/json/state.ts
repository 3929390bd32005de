/** What a state.json holds, as it is held in memory. Nothing in it is changed once it is read: a write makes another one. */
import { CheckpointCorruptionError } from "../errors.ts";
import { type ArchiveMark, emptyThread, type Thread } from "../thread-state.ts";
import type { Fields } from "./raw.ts";

export const BACKEND = "json";
/** The version of the format of state.json and of archives. */
export const FORMAT_VERSION = 1;

export interface JsonArchive extends ArchiveMark {
  messageCount: number;
  /** When its first and last message were stored; null when it has none. */
  firstAt: Date | null;
  lastAt: Date | null;
  /** The name of its directory. */
  directory: string;
}

/** A thread; its archived messages are in the files of its archives. */
export interface JsonThread extends Thread<JsonArchive> {
  /** The fields that this version does not know, of the thread ("thread"), of a message ("message:12") and so on. */
  rests: Map<string, Fields>;
  /** Why it can't be read. Then its text is all that there is of it. */
  damage?: { text: string; cause: unknown };
}

export interface State {
  /** Names this snapshot: each has another one. Empty when there is no file yet. */
  snapshot: string;
  /** The last position given: no thread gets it again. */
  revision: number;
  threads: Map<string, JsonThread>;
  /** Directories of archives that were removed, until they are gone. */
  removed: Set<string>;
  rest: Fields;
}

export function newState(): State {
  return { snapshot: "", revision: 0, threads: new Map(), removed: new Set(), rest: new Map() };
}

export function newThread(): JsonThread {
  return { ...emptyThread(), rests: new Map() };
}

export function copyThread(thread: JsonThread): JsonThread {
  return {
    ...thread,
    messages: [...thread.messages],
    archives: [...thread.archives],
    runs: new Map(thread.runs),
    answers: new Map(thread.answers),
    rests: new Map(thread.rests),
  };
}

/** A thread that can be read, or none. @throws CheckpointCorruptionError when it can't */
export function soundThread(state: Pick<State, "threads">, path: string, threadId: string): JsonThread | undefined {
  const thread = state.threads.get(threadId);
  if (!thread?.damage) return thread;
  throw corrupt(threadId, path, thread.damage.cause);
}

export function corrupt(threadId: string, rowRef: string, cause: unknown): CheckpointCorruptionError {
  return new CheckpointCorruptionError({ threadId, backend: BACKEND, rowRef, cause });
}
