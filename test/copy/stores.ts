/** Stores of every kind to copy between, and all that a thread holds, as a value to compare. */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { FileCheckpointer } from "../../examples/backend/file-checkpointer.ts";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import type { PendingRequest } from "../../src/checkpoint/pending.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, toolCall, userMessage } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";

const KINDS = {
  sqlite: () => SqliteCheckpointer.open(join(tempDir(), "threads.db")),
  json: async () => {
    const directory = tempDir();
    return await JsonCheckpointer.open({ state: join(directory, "state.json"), memory: join(directory, "memory") });
  },
  memory: async () => new MemoryCheckpointer(),
  file: () => FileCheckpointer.open(join(tempDir(), "threads")),
} satisfies Record<string, () => Promise<Checkpointer>>;

export type Kind = keyof typeof KINDS;
export const PAIRS = (Object.keys(KINDS) as Kind[]).flatMap((from) =>
  (Object.keys(KINDS) as Kind[]).map((to) => [from, to] as const),
);

/** A new store, closed when the test is over. */
export async function makeStore(kind: Kind): Promise<Checkpointer> {
  const store: Checkpointer = await KINDS[kind]();
  onTestFinished(() => store.close());
  return store;
}

export function request(questionId: string): PendingRequest {
  return {
    question_id: questionId,
    thread_id: "t",
    payload: { kind: "approve", tool_name: "look", tool_call_id: questionId, args: { b: 1, a: 2 } },
    created_at: 1_700_000_000.5,
  };
}

/** A thread of every part: runs that completed in another order than that of their ids, one open, a question, answers. */
export async function fill(store: Checkpointer, id: string): Promise<void> {
  await store.append(id, [userMessage("from before runs")]);
  for (const run of ["z-first", "a-second"]) {
    await store.claimRun(id, run);
    const asked = userMessage(`${run} of ${id} \u{1f600}\u0000\n"`, { run_id: run });
    await store.append(id, [asked, assistantMessage("ok", { run_id: run })]);
    await store.markRunComplete(id, run);
  }
  await store.claimRun(id, "open");
  await store.append(id, [
    userMessage("go on", { run_id: "open", metadata: { "10": 1, "2": 2, nested: [null, []] } }),
    assistantMessage([toolCall("q", "look", { b: 1, a: 2 }), toolCall("r", "look")], { run_id: "open" }),
  ]);
  await store.saveExtra(id, { notes: [1, "two", null], "": false });
  await store.savePendingRequest(id, request("q"), { runId: "open" });
  await store.saveHitlAnswer(id, "r", { decision: "deny" }, { runId: "open" });
  await store.saveHitlAnswer(id, "none", null);
}

export async function idsOf(store: Checkpointer): Promise<string[]> {
  return (await store.listThreads({ limit: 10_000 })).items.map(({ threadId }) => threadId);
}

/** All of a thread but its positions: these are each store's own. */
export async function everything(store: Checkpointer, id: string) {
  const { items } = await store.listMessages(id, { limit: 10_000 });
  const loaded = await store.load(id);
  return {
    // As text: the order of keys counts too.
    messages: items.map((entry) => JSON.stringify(entry.message)),
    times: items.map((entry) => entry.createdAt),
    extra: loaded?.extra,
    parentThreadId: loaded?.parentThreadId,
    runs: (await store.listRuns(id, { limit: 10_000 })).items,
    pending: await store.loadPending(id),
    answers: await store.listHitlAnswers(id),
  };
}

/** Every thread of a store with all it holds. */
export async function whole(store: Checkpointer) {
  return await Promise.all((await idsOf(store)).map(async (id) => [id, await everything(store, id)] as const));
}
