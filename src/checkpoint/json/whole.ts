/** A thread with its archived messages at hand, and back: for what concerns them, such as forks. */
import type { ContextAfter } from "../archives.ts";
import { ThreadNotFoundError } from "../errors.ts";
import { contextAfter, type StoredArchive, type StoredMessage, type Thread, taken } from "../thread-state.ts";
import type { ArchiveContent } from "./archive-file.ts";
import type { Draft } from "./draft.ts";
import { Rows } from "./rows.ts";
import type { JsonArchive, JsonThread } from "./state.ts";
import type { JsonStore } from "./store.ts";

type ReadArchive = (threadId: string, archive: JsonArchive) => Promise<ArchiveContent>;

/** @throws CheckpointCorruptionError when an archive is missing or damaged */
export async function wholeThread(
  threadId: string,
  thread: JsonThread,
  readArchive: ReadArchive,
): Promise<Thread & Pick<JsonThread, "rests">> {
  const archives: StoredArchive[] = [];
  const rests = new Map(thread.rests);
  let messages: StoredMessage[] = [];
  for (const mark of thread.archives) {
    if (mark.prunedAt) archives.push({ ...mark, system: null, extra: "{}" });
    else {
      const content = await readArchive(threadId, mark);
      archives.push({ ...mark, system: content.system, extra: content.extra });
      messages = messages.concat(content.messages);
      for (const [of, rest] of content.rests) rests.set(of, rest);
    }
  }
  return { ...thread, archives, messages: messages.concat(thread.messages), rests };
}

/** Puts what is archived of a thread into files of the draft. @param rests the unknown fields of its messages and of the rest */
export function splitThread(draft: Draft, threadId: string, whole: Thread, rests: JsonThread["rests"]): JsonThread {
  let before = 0;
  let previousSummary: string | null = null;
  const archives = whole.archives.map((archive) => {
    const messages = whole.messages.filter(({ position }) => position > before && position <= archive.upTo);
    const mark = draft.addArchive(threadId, archive, { previousSummary, messages, rests });
    before = archive.upTo;
    previousSummary = archive.summary;
    return mark;
  });
  return { ...whole, archives, messages: whole.messages.filter(({ position }) => position > before), rests };
}

/** What a fork would load. The archives are read only when part of them would be active again. */
export async function contextOfFork(
  threadId: string,
  thread: JsonThread | undefined,
  afterRunId: string,
  place: JsonStore["place"],
): Promise<ContextAfter> {
  if (!thread) throw new ThreadNotFoundError(threadId);
  const cutsArchives = thread.archives.length > 0 && taken(thread, threadId, afterRunId).cut === 0;
  const source = cutsArchives ? await wholeThread(threadId, thread, place.readArchive) : thread;
  return contextAfter(source, threadId, afterRunId, new Rows(threadId, thread, place).message);
}
