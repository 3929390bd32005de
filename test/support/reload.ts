/** Messages as they come back from a disk. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { admitMessage } from "../../src/messages/admit.ts";
import { messageFromJson, messageFromMsgpack, messageToJson, messageToMsgpack } from "../../src/messages/codec.ts";
import type { Message } from "../../src/messages/schema.ts";

/** Writes each message to a file as JSON, and reads them back. */
export async function viaJsonFile(messages: readonly Message[]): Promise<Message[]> {
  const directory = await mkdtemp(join(tmpdir(), "everthread-"));
  try {
    const path = join(directory, "messages.jsonl");
    await writeFile(path, messages.map((message) => `${messageToJson(admitMessage(message))}\n`).join(""));
    return (await readFile(path, "utf8")).trimEnd().split("\n").map(messageFromJson);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** The messages as a server's table would give them back. */
export function viaMsgpack(messages: readonly Message[]): Message[] {
  return messages.map((message) => messageFromMsgpack(messageToMsgpack(admitMessage(message))));
}
