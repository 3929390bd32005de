/**
 * An archive: a directory of its own in the memory directory, with one state.json that holds all that a compaction set aside.
 * It is written once, and removed by retention or with its thread.
 *
 * ```json
 * {
 *   "everthread": 1,
 *   "thread_id": "session",
 *   "archive_id": "a1",
 *   "created_at": "2026-01-02T03:04:05.678Z",
 *   "up_to": 8,
 *   "at_revision": 10,
 *   "previous_summary": null,
 *   "summary": "The user keeps ants.",
 *   "system": "You are …",
 *   "extra": {"title":"Ants"},
 *   "messages": [
 *     {"position":1,"created_at":"…","message":{"role":"user","content":[…]}}
 *   ]
 * }
 * ```
 */
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { makeDirectories, writeFileAtomic } from "../../util/atomic-file.ts";
import type { StoredArchive, StoredMessage } from "../thread-state.ts";
import { ObjectReader } from "./fields.ts";
import { checkVersion, messageText, readMessages } from "./format.ts";
import { arrayLines, type Fields, objectLines } from "./raw.ts";
import { FORMAT_VERSION, type JsonArchive, type JsonThread } from "./state.ts";
import { decodeText } from "./text.ts";

/** What an archive's file has that the thread does not. */
export interface ArchiveContent extends Pick<StoredArchive, "system" | "extra"> {
  messages: StoredMessage[];
  /** The fields of its messages that this version does not know, under "message:" and the position. */
  rests: Map<string, Fields>;
}

export function archiveFileOf(memory: string, directory: string): string {
  return join(memory, directory, "state.json");
}

export function archiveText(
  threadId: string,
  archive: StoredArchive,
  previousSummary: string | null,
  messages: readonly StoredMessage[],
  rests: JsonThread["rests"],
): string {
  const { archiveId, createdAt, upTo, atRevision, summary, system, extra } = archive;
  const values = { thread_id: threadId, archive_id: archiveId, created_at: createdAt, up_to: upTo };
  const more = { at_revision: atRevision, previous_summary: previousSummary, summary, system };
  const fields = Object.entries({ everthread: FORMAT_VERSION, ...values, ...more });
  const list = arrayLines(
    messages.map((message) => messageText(message, rests)),
    "  ",
  );
  const texts = fields.map(([name, value]): [string, string] => [name, JSON.stringify(value)]);
  return `${objectLines([...texts, ["extra", extra], ["messages", list]], "")}\n`;
}

/** @throws Error when it is damaged, or is another archive than the one that the thread knows */
export function readArchiveText(threadId: string, archive: JsonArchive, text: string): ArchiveContent {
  JSON.parse(text);
  const reader = new ObjectReader(text, "The file");
  checkVersion(reader, archive.directory);
  const found = [reader.string("thread_id"), reader.string("archive_id"), reader.whole("up_to", 0)];
  if (JSON.stringify(found) !== JSON.stringify([threadId, archive.archiveId, archive.upTo])) {
    throw new Error(`It is archive ${found[1]} of thread ${JSON.stringify(found[0])} up to ${found[2]}, another one.`);
  }
  const rests: JsonThread["rests"] = new Map();
  const keep = (of: string, rest: Fields) => rest.size > 0 && rests.set(of, rest);
  const messages = readMessages(reader.list("messages"), (i) => `messages[${i}]`, keep);
  if (messages.length !== archive.messageCount) {
    throw new Error(`It holds ${messages.length} messages of ${archive.messageCount}.`);
  }
  return { system: reader.stringOrNull("system"), extra: reader.object("extra") ?? "{}", messages, rests };
}

/** An archive that a state.json refers to. @throws Error when it is not there, or damaged */
export async function readArchive(memory: string, threadId: string, archive: JsonArchive): Promise<ArchiveContent> {
  const bytes = await fs.readFile(archiveFileOf(memory, archive.directory));
  return readArchiveText(threadId, archive, decodeText(bytes));
}

/** Writes an archive so that it survives the loss of power. Directories that are made are for this user only. */
export async function writeArchive(memory: string, directory: string, content: string | Uint8Array): Promise<void> {
  await makeDirectories(memory);
  await makeDirectories(join(memory, directory));
  await writeFileAtomic(archiveFileOf(memory, directory), content);
}

/** Removes an archive, and nothing that somebody else put beside it. */
export async function removeArchive(memory: string, directory: string): Promise<void> {
  await fs.rm(archiveFileOf(memory, directory), { force: true });
  await fs.rmdir(join(memory, directory)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" && error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}
