/** Middleware that turns a chat into remembered facts: a window of last messages, an extractor, and a log of what changed. */
import type { HistoryRecord, MemoryHistory, NewHistoryRecord, WindowMessage } from "../history/history.ts";
import { textOf } from "../messages/construct.ts";
import type { Message } from "../messages/schema.ts";
import { isCutShort } from "../messages/state.ts";
import type { HookContext, Middleware } from "./middleware.ts";

/** What an extractor found: the value that a memory has now, or null when it is to be forgotten. */
export interface FoundFact {
  /** The memory: a name of your own, such as "ada/favourite colour", the same whenever the same fact is meant. */
  memory_id: string;
  value: string | null;
  /** (Default: "ADD", "UPDATE" or "DELETE", whichever it is; a value that is there already is not logged) */
  event?: string | undefined;
  /** Who said so. (Default: none) */
  actor_id?: string | null | undefined;
  /** (Default: none) */
  role?: string | null | undefined;
}

/** What an extractor works with. */
export interface ExtractionInput {
  scope: string;
  /** The scope's last messages, oldest first. */
  messages: WindowMessage[];
  /** How many of them, at the end, this run added. */
  added: number;
  /** The value that a memory has now; undefined when there is none. */
  current(memoryId: string): Promise<string | undefined>;
  signal: AbortSignal;
}

export interface RememberOptions {
  /** Where messages and changes are kept. It stays the caller's to close. */
  history: MemoryHistory;
  /** Whose messages share a window: a name, or a function of the run's context; undefined remembers nothing. (Default: the thread's id) */
  scope?: string | ((context: HookContext) => string | undefined) | undefined;
  /** How many messages the window holds, and the extractor gets. (Default: 10) */
  keep?: number | undefined;
  /** Finds facts; called once at the end of each completed run that said something. Usually asks a model. */
  extract(input: ExtractionInput): FoundFact[] | Promise<FoundFact[]>;
  /** Takes what `extract` throws, so that the run ends well all the same. (Default: prompt() throws it) */
  onError?: ((error: unknown) => void) | undefined;
}

/**
 * Records what user and model say into a scope's window, and logs each change that the extractor finds, all of a run's
 * changes or none. The messages of a run are recorded when it ends, also when it fails; a suspended one has not ended.
 * forkOnce() and agents that store nothing leave no trace here either.
 */
export function remember(options: RememberOptions): Middleware {
  const { history, keep = 10, extract, onError } = options;
  return {
    async endOfRun(result, context) {
      const scope = scopeOf(options, context);
      if (context.threadId === undefined || scope === undefined) return;
      // An attempt that failed earlier was made again.
      const said = (await context.runMessages()).filter(
        (message, i, all) => i === all.length - 1 || !isCutShort(message),
      );
      const messages = said.filter(isSpeech).map(({ role, ...rest }) => ({ role, content: textOf(rest) }));
      if (messages.length === 0) return;
      await history.saveMessages(scope, messages, { keep });
      if (result.status !== "completed") return;
      const memories = new Memories(history);
      let found: FoundFact[];
      try {
        found = await extract({
          scope,
          messages: await history.recentMessages(scope, { limit: keep }),
          added: Math.min(messages.length, keep),
          current: async (memoryId) => (await memories.state(memoryId)).value,
          signal: context.signal,
        });
      } catch (error) {
        if (!onError) throw error;
        onError(error);
        return;
      }
      const changes: NewHistoryRecord[] = [];
      for (const fact of found) changes.push(...(await memories.change(fact)));
      await history.addBatch(changes);
    },
  };
}

function scopeOf({ scope }: RememberOptions, context: HookContext): string | undefined {
  if (scope === undefined) return context.threadId;
  return typeof scope === "string" ? scope : scope(context);
}

/** What people and models say in words: neither tool results nor turns that only call tools. */
function isSpeech(message: Message): boolean {
  return message.role !== "tool_result" && textOf(message).trim() !== "";
}

interface State {
  value: string | undefined;
  /** When the memory came to be, as its log says. */
  createdAt: string | null | undefined;
}

/** The memories that one extraction is about, with what it has changed so far. */
class Memories {
  readonly #history: MemoryHistory;
  readonly #states = new Map<string, State>();

  constructor(history: MemoryHistory) {
    this.#history = history;
  }

  async state(memoryId: string): Promise<State> {
    let state = this.#states.get(memoryId);
    if (!state) {
      state = stateOf(await this.#history.get(memoryId));
      this.#states.set(memoryId, state);
    }
    return state;
  }

  /** The change that a fact is; none when it changes nothing. Times are as Mem0 gives them. */
  async change(fact: FoundFact): Promise<NewHistoryRecord[]> {
    const { memory_id, value, actor_id, role } = fact;
    const state = await this.state(memory_id);
    const old = state.value;
    if (fact.event === undefined && (value ?? undefined) === old) return [];
    const event = fact.event ?? (value === null ? "DELETE" : old === undefined ? "ADD" : "UPDATE");
    const known = state.createdAt !== undefined;
    this.#states.set(memory_id, { value: value ?? undefined, createdAt: state.createdAt ?? null });
    return [
      {
        ...{ memory_id, event, old_memory: old ?? null, new_memory: value, is_deleted: value === null, actor_id, role },
        ...(known ? { created_at: state.createdAt, updated_at: new Date() } : {}),
      },
    ];
  }
}

/** What the log comes to: the last change counts, whatever the times say. */
function stateOf(log: readonly HistoryRecord[]): State {
  let value: string | undefined;
  for (const change of log) {
    if (change.is_deleted || change.event === "DELETE") value = undefined;
    else value = change.new_memory ?? value;
  }
  return { value, createdAt: log[0]?.created_at };
}
