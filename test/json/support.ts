/** A JSON store of a test's own, and what its files say. */
import * as fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { JsonCheckpointer, type JsonOptions } from "../../src/checkpoint/json/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import type { Message } from "../../src/messages/schema.ts";
import { tempDir } from "../support/temp.ts";

export interface Files {
  dir: string;
  state: string;
  memory: string;
}

export function filesIn(dir: string = tempDir()): Files {
  return { dir, state: join(dir, "state.json"), memory: join(dir, "memory") };
}

export function open({ state, memory }: Files, options: Partial<JsonOptions> = {}): Promise<JsonCheckpointer> {
  return JsonCheckpointer.open({ state, memory, ...options });
}

export const code = (error: string) => expect.objectContaining({ code: error });
export const says = (...texts: string[]): Message[] => texts.map((text) => userMessage(text));
export const read = (path: string) => fs.readFileSync(path, "utf8");
export const mode = (path: string) => (fs.statSync(path).mode & 0o777).toString(8);

export async function textsOf(store: JsonCheckpointer, threadId = "session"): Promise<string[]> {
  return ((await store.load(threadId))?.messages ?? []).map(textOf);
}

/** The whole log, archived messages included. */
export async function logOf(store: JsonCheckpointer, threadId = "session"): Promise<(string | undefined)[]> {
  const { items } = await store.listMessages(threadId, { limit: 10_000 });
  return items.map(({ message }) => message && textOf(message));
}

/** Makes a store of some messages in a thread, with the options of a session, and closes it. */
export async function makeStore(files: Files, texts: string[], threadId = "session"): Promise<void> {
  await using store = await open(files);
  await store.append(threadId, says(...texts));
}
