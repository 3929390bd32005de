/** Every field of the contract that takes JSON, text or an id: how to hand a value in there, and how to read it back. */
import type { ArchivePart, Checkpointer, ThreadPart } from "../../src/checkpoint/checkpointer.ts";
import type { PendingRequest } from "../../src/checkpoint/pending.ts";
import type { Message } from "../../src/messages/schema.ts";

// biome-ignore lint/suspicious/noExplicitAny: what is handed in is of the wrong type on purpose.
type Anything = any;

export interface Field {
  name: string;
  /** How many containers the contract puts around the value. */
  around: number;
  /** Whether null stands for none, where text is taken. (Default: false) */
  nullable?: true;
  put(store: Checkpointer, value: Anything): Promise<unknown>;
  /** The value as it is stored. */
  get(store: Checkpointer): Promise<unknown>;
}

/** The thread that values are put into, which holds something before. */
export const THREAD = "thread";
const RUN = "run";

/** Gives the thread something to lose: a run that has ended, an archive, extra, a question and an answer. */
export async function begin(store: Checkpointer): Promise<void> {
  await store.claimRun(THREAD, RUN);
  await store.append(THREAD, [user("before", { run_id: RUN }), user("after")]);
  await store.markRunComplete(THREAD, RUN);
  await store.saveExtra(THREAD, { kept: 1 });
  await store.savePendingRequest(THREAD, request({}));
  await store.saveHitlAnswer(THREAD, "q0", false);
}

function user(text: Anything, fields: object = {}): Message {
  return { role: "user", content: [{ type: "text", text }], ...fields };
}

function call(fields: object): Message {
  return {
    role: "assistant",
    content: [{ type: "tool_call", id: "c", name: "n", arguments: {}, ...fields }],
  } as Message;
}

function result(fields: object): Message {
  return { role: "tool_result", tool_call_id: "c", tool_name: "n", content: [], ...fields };
}

function request(fields: object): PendingRequest {
  const payload = { kind: "confirm" as const, prompt: "?", ...fields };
  return { question_id: "q", thread_id: null, payload, created_at: 1.5 };
}

async function lastMessage(store: Checkpointer): Promise<Anything> {
  return (await store.load(THREAD))?.messages.at(-1);
}

async function extra(store: Checkpointer): Promise<Anything> {
  return (await store.load(THREAD))?.extra;
}

async function payload(store: Checkpointer): Promise<Anything> {
  return (await store.loadPending(THREAD))?.request.payload;
}

const append = (store: Checkpointer, message: Message) => store.append(THREAD, [user("first"), message]);
const bring = (store: Checkpointer, part: ThreadPart) => store.importThread(THREAD, part);

const inMessages: Field[] = [
  {
    name: "metadata",
    around: 1,
    put: (store, value) => append(store, user("x", { metadata: value })),
    get: async (store) => (await lastMessage(store)).metadata,
  },
  {
    name: "arguments",
    around: 3,
    put: (store, value) => append(store, call({ arguments: value })),
    get: async (store) => (await lastMessage(store)).content[0].arguments,
  },
  {
    name: "details",
    around: 1,
    put: (store, value) => append(store, result({ details: value })),
    get: async (store) => (await lastMessage(store)).details,
  },
  {
    name: "an unknown field",
    around: 1,
    put: (store, value) => append(store, user("x", { field_v9: value })),
    get: async (store) => (await lastMessage(store)).field_v9,
  },
  {
    name: "a field of an unknown block",
    around: 3,
    put: (store, value) =>
      append(store, { role: "user", content: [{ type: "v9", field: value }] } as unknown as Message),
    get: async (store) => (await lastMessage(store)).content[0].field,
  },
  {
    name: "details of an imported message",
    around: 1,
    put: (store, value) =>
      bring(store, { messages: [{ message: result({ details: value }), createdAt: new Date(0) }] }),
    get: async (store) => (await lastMessage(store)).details,
  },
];

/** Fields that take an object. */
export const objectFields: Field[] = [
  ...inMessages.filter(({ name }) => name === "metadata" || name === "arguments"),
  {
    name: "extra",
    around: 1,
    put: (store, value) => store.saveExtra(THREAD, { value }),
    get: async (store) => (await extra(store)).value,
  },
  {
    name: "imported extra",
    around: 1,
    put: (store, value) => bring(store, { extra: { value } }),
    get: async (store) => (await extra(store)).value,
  },
  {
    name: "metadata of a fork",
    around: 0,
    put: (store, value) => store.fork(THREAD, "fork", { afterRunId: RUN, metadata: value }),
    get: async (store) => (await store.load("fork"))?.extra.fork,
  },
  {
    name: "details of a question",
    around: 2,
    put: (store, value) => store.savePendingRequest(THREAD, request({ details: value })),
    get: async (store) => (await payload(store)).details,
  },
  {
    name: "details of the next question",
    around: 2,
    put: (store, value) =>
      store.answerPending(THREAD, { questionId: "q", runId: null, answer: 1, next: request({ details: value }) }),
    get: async (store) => (await payload(store)).details,
  },
];

/** Fields that take any JSON. */
export const jsonFields: Field[] = [
  ...inMessages.filter(({ name }) => name !== "metadata" && name !== "arguments"),
  {
    name: "an answer",
    around: 0,
    put: (store, value) => store.saveHitlAnswer(THREAD, "q9", value),
    get: (store) => store.loadHitlAnswer(THREAD, "q9"),
  },
  {
    name: "the answer to a question",
    around: 0,
    put: (store, value) => store.answerPending(THREAD, { questionId: "q", runId: null, answer: value }),
    get: (store) => store.loadHitlAnswer(THREAD, "q"),
  },
  {
    name: "an imported answer",
    around: 0,
    put: (store, value) => bring(store, { answers: [{ runId: null, questionId: "q9", answer: value }] }),
    get: (store) => store.loadHitlAnswer(THREAD, "q9"),
  },
];

/** Fields that take text. */
export const textFields: Field[] = [
  {
    name: "a user's text",
    around: 3,
    put: (store, value) => append(store, user(value)),
    get: async (store) => (await lastMessage(store)).content[0].text,
  },
  {
    name: "a tool's name",
    around: 3,
    put: (store, value) => append(store, call({ name: value })),
    get: async (store) => (await lastMessage(store)).content[0].name,
  },
  {
    name: "a call's id",
    around: 1,
    put: (store, value) => append(store, result({ tool_call_id: value })),
    get: async (store) => (await lastMessage(store)).tool_call_id,
  },
  {
    name: "reasoning",
    around: 3,
    put: (store, value) => append(store, { role: "assistant", content: [{ type: "thinking", thinking: value }] }),
    get: async (store) => (await lastMessage(store)).content[0].thinking,
  },
  {
    name: "a stop reason",
    around: 1,
    put: (store, value) => append(store, { role: "assistant", content: [], stop_reason: value }),
    get: async (store) => (await lastMessage(store)).stop_reason,
  },
  {
    name: "a prompt",
    around: 2,
    put: (store, value) => store.savePendingRequest(THREAD, request({ prompt: value })),
    get: async (store) => (await payload(store)).prompt,
  },
];

/** Fields that take text, of stores that keep archives; what is no text there is an invalid argument. */
export const archiveTextFields: Field[] = [
  {
    name: "a summary",
    around: 0,
    put: (store, value) => compact(store, { summary: value }),
    get: async (store) => (await store.load(THREAD))?.summary,
  },
  {
    name: "a system prompt",
    nullable: true,
    around: 0,
    put: (store, value) => compact(store, { system: value }),
    get: async (store) => (await store.archives?.read(THREAD, "a1"))?.system,
  },
  {
    name: "an imported summary",
    around: 0,
    put: (store, value) => bringArchive(store, { summary: value }),
    get: async (store) => (await store.load(THREAD))?.summary,
  },
];

/** Fields that take an object, of stores that keep archives. */
export const archiveObjectFields: Field[] = [
  {
    name: "the extra of an imported archive",
    around: 0,
    put: (store, value) => bringArchive(store, { extra: value }),
    get: async (store) => (await store.archives?.read(THREAD, "a1"))?.extra,
  },
];

async function compact(store: Checkpointer, fields: object): Promise<unknown> {
  const { items } = await store.listMessages(THREAD);
  return store.archives?.compact(THREAD, { upTo: items[0]?.position ?? 0, summary: "s", ...fields });
}

function bringArchive(store: Checkpointer, fields: object): Promise<unknown> {
  const archive = {
    archiveId: "a1",
    createdAt: new Date(0),
    messageCount: 1,
    summary: "s",
    system: null,
    extra: {},
    prunedAt: null,
    ...fields,
  };
  return bring(store, { archives: [archive as ArchivePart] });
}

export interface IdField {
  name: string;
  /** How long an id may be there. */
  max: 64 | 255;
  /** Whether null stands for none. */
  optional: boolean;
  /** Hands the id in; resolves to whether it was found again as it was. */
  put(store: Checkpointer, id: Anything): Promise<boolean>;
}

export const idFields: IdField[] = [
  {
    name: "a thread",
    max: 255,
    optional: false,
    async put(store, id) {
      await store.append(id, [user("x")]);
      const { items } = await store.listThreads({ limit: 10_000 });
      return (await store.load(id)) !== undefined && items.some(({ threadId }) => threadId === id);
    },
  },
  {
    name: "a fork",
    max: 255,
    optional: false,
    async put(store, id) {
      await store.fork(THREAD, id, { afterRunId: RUN });
      return (await store.load(id))?.parentThreadId === THREAD;
    },
  },
  {
    name: "a claimed run",
    max: 64,
    optional: false,
    async put(store, id) {
      await store.claimRun(THREAD, id);
      return (await store.listRuns(THREAD)).items.some(({ runId }) => runId === id);
    },
  },
  {
    name: "the run of a message",
    max: 64,
    optional: true,
    async put(store, id) {
      await append(store, user("x", { run_id: id }));
      return (await lastMessage(store)).run_id === id;
    },
  },
  {
    name: "the run of a question",
    max: 255,
    optional: true,
    async put(store, id) {
      await store.savePendingRequest(THREAD, request({}), { runId: id });
      return (await store.loadPending(THREAD))?.runId === id;
    },
  },
  {
    name: "a question",
    max: 255,
    optional: false,
    async put(store, id) {
      await store.savePendingRequest(THREAD, { ...request({}), question_id: id });
      return (await store.loadPending(THREAD))?.request.question_id === id;
    },
  },
  {
    name: "the question of an answer",
    max: 255,
    optional: false,
    async put(store, id) {
      await store.saveHitlAnswer(THREAD, id, 1);
      return (await store.listHitlAnswers(THREAD)).some(({ questionId }) => questionId === id);
    },
  },
  {
    name: "the run of an answer",
    max: 255,
    optional: true,
    async put(store, id) {
      await store.saveHitlAnswer(THREAD, "q9", 1, { runId: id });
      return (await store.loadHitlAnswer(THREAD, "q9", { runId: id })) === 1;
    },
  },
  {
    name: "the run of an imported message",
    max: 64,
    optional: true,
    async put(store, id) {
      await bring(store, { messages: [{ message: user("x", { run_id: id }), createdAt: new Date(0) }] });
      return (await lastMessage(store)).run_id === id;
    },
  },
];
