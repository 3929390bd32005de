/** What is done to a file's archives while it is killed: how each begins, what it does, and what there is before and after. */
import type { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { archiveTexts, makeVersion1 } from "../sqlite/archive-files.ts";

const TEXTS = ["needle one", "needle two", "needle three", "needle four", "needle five"];
const NOTHING = { active: [], archived: [], pruned: 0 };
const COMPACTED = { active: TEXTS.slice(3), archived: TEXTS.slice(0, 3), pruned: 0 };

export interface Action {
  make(store: SqliteCheckpointer, path: string): Promise<void>;
  /** Opening the file is all of an upgrade. */
  act?(store: SqliteCheckpointer): Promise<unknown>;
  /** The thread that is looked at. */
  thread: string;
  before: State;
  after: State;
}

export interface State {
  active: string[];
  archived: string[];
  pruned: number;
}

export const ACTIONS: Record<string, Action> = {
  compact: {
    make: async (store) => void (await store.append("t", messages())),
    act: (store) => store.archives.compact("t", { upTo: 3, summary: "the first three" }),
    thread: "t",
    before: { active: TEXTS, archived: [], pruned: 0 },
    after: COMPACTED,
  },
  prune: {
    async make(store) {
      await archiveTexts(store, "t", TEXTS.slice(0, 2));
      await archiveTexts(store, "t", TEXTS.slice(2, 3));
      await archiveTexts(store, "t", TEXTS.slice(3));
    },
    act: (store) => store.archives.prune("t", { keep: 1 }),
    thread: "t",
    before: { active: [], archived: TEXTS, pruned: 0 },
    after: { active: [], archived: TEXTS.slice(3), pruned: 2 },
  },
  fork: {
    async make(store) {
      await store.claimRun("t", "run");
      await store.append("t", messages("run"));
      await store.markRunComplete("t", "run");
      await store.archives.compact("t", { upTo: 3, summary: "the first three" });
    },
    act: (store) => store.fork("t", "fork", { afterRunId: "run" }),
    thread: "fork",
    before: NOTHING,
    after: COMPACTED,
  },
  import: {
    make: async () => undefined,
    act: (store) => {
      const createdAt = new Date(0);
      const about = { createdAt, system: null, extra: {}, prunedAt: null, summary: "some" };
      return store.importThread("t", {
        messages: messages().map((message) => ({ message, createdAt })),
        archives: [
          { ...about, archiveId: "a1", messageCount: 1 },
          { ...about, archiveId: "a2", messageCount: 2 },
        ],
      });
    },
    thread: "t",
    before: NOTHING,
    after: COMPACTED,
  },
  delete: {
    async make(store) {
      await archiveTexts(store, "t", TEXTS);
      await archiveTexts(store, "other", TEXTS);
    },
    act: (store) => store.deleteThread("t"),
    thread: "t",
    before: { active: [], archived: TEXTS, pruned: 0 },
    after: NOTHING,
  },
  upgrade: {
    async make(store, path) {
      await store.close();
      await makeVersion1(path, { t: [TEXTS.slice(0, 2), TEXTS.slice(2)] });
    },
    thread: "t",
    before: { active: ["the active one of t"], archived: TEXTS, pruned: 0 },
    after: { active: ["the active one of t"], archived: TEXTS, pruned: 0 },
  },
};

function messages(run_id: string | null = null) {
  return TEXTS.map((text) => userMessage(text, { run_id }));
}
