/**
 * Compaction: when the context has grown large, its older part is set aside and a summary put in its place. Whatever goes
 * wrong leaves the thread as it was.
 */
import type { ArchiveInfo } from "../checkpoint/archives.ts";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { UnsupportedError } from "../checkpoint/errors.ts";
import { InvalidArgumentError } from "../errors.ts";
import { textOf, userMessage } from "../messages/construct.ts";
import type { Message, Usage } from "../messages/schema.ts";
import { SUMMARY_INSTRUCTIONS, splitRequest, summaryTask, withRequest, wordsOf } from "../messages/summary.ts";
import { ModelError } from "../model/errors.ts";
import type { Model, ModelEvent, ModelRequest } from "../model/model.ts";
import { type RetryPolicy, streamWithRetry } from "../model/retry.ts";
import { chooseCut, isAnswer, requestSetAside } from "./compaction-cut.ts";
import { type ContextSize, contextSize } from "./context.ts";
import type { Outgoing } from "./events.ts";
import type { ThreadLog } from "./log.ts";

export interface CompactionOptions {
  /** Compact before a model call once the context has so many tokens; from 1. Stay well below the model's window. */
  triggerTokens: number;
  /** How many tokens of the newest turns stay as they are; from 0, below `triggerTokens`. (Default: a quarter of it) */
  keepTokens?: number | undefined;
  /** Writes the summary. (Default: the agent's model) */
  model?: Model | undefined;
  /** What that model is told, as its system prompt. (Default: to keep what is needed to go on, in 800 words) */
  instructions?: string | undefined;
  /** How many archives to keep after each compaction, 0 to 10,000; 0 keeps all. (Default: 0) */
  keepArchives?: number | undefined;
}

/** Checked, with the defaults filled in. */
export type CompactionSettings = { [K in keyof CompactionOptions]-?: NonNullable<CompactionOptions[K]> };

const OPTIONS = ["triggerTokens", "keepTokens", "model", "instructions", "keepArchives"];

/**
 * What an agent compacts by. Without options it never does so by itself, and keeps nothing when it is told to.
 *
 * @throws InvalidArgumentError, and UnsupportedError when the store keeps no archives
 */
export function checkCompaction(
  options: CompactionOptions | undefined,
  agentModel: Model,
  checkpointer: Checkpointer | undefined,
): CompactionSettings {
  if (options !== undefined) checkOptions(options, checkpointer);
  const { triggerTokens = Number.POSITIVE_INFINITY, model, instructions, keepArchives } = options ?? {};
  return {
    triggerTokens,
    keepTokens: options?.keepTokens ?? (options ? Math.floor(triggerTokens / 4) : 0),
    model: model ?? agentModel,
    instructions: instructions ?? SUMMARY_INSTRUCTIONS,
    keepArchives: keepArchives ?? 0,
  };
}

function checkOptions(options: CompactionOptions, checkpointer: Checkpointer | undefined): void {
  if (typeof options !== "object" || options === null) {
    throw new InvalidArgumentError("compaction must be an object, such as { triggerTokens: 100_000 }.");
  }
  const unknown = Object.keys(options).find((key) => !OPTIONS.includes(key));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`compaction has no option ${unknown}. It has ${OPTIONS.join(", ")}.`);
  }
  const { triggerTokens, keepTokens, model, keepArchives } = options;
  checkWhole(triggerTokens, "triggerTokens", 1);
  if (keepTokens !== undefined) checkWhole(keepTokens, "keepTokens", 0);
  if (keepTokens !== undefined && keepTokens >= triggerTokens) {
    throw new InvalidArgumentError(
      `compaction.keepTokens (${keepTokens}) must be below triggerTokens (${triggerTokens}): else nothing would be set aside.`,
    );
  }
  if (model !== undefined && typeof model?.stream !== "function") {
    throw new InvalidArgumentError("compaction.model must be a model: an object with a stream method.");
  }
  checkInstructions(options.instructions);
  if (keepArchives !== undefined) checkWhole(keepArchives, "keepArchives", 0, 10_000);
  checkArchives(checkpointer);
}

/** @throws InvalidArgumentError */
export function checkInstructions(instructions: unknown): void {
  if (instructions === undefined || (typeof instructions === "string" && instructions.trim() !== "")) return;
  throw new InvalidArgumentError("The instructions for a summary must be text that says something.");
}

/** @throws UnsupportedError when the store keeps no archives; without a store there is none to keep */
export function checkArchives(checkpointer: Checkpointer | undefined): void {
  if (!checkpointer) return;
  const { backend, archives } = checkpointer.capabilities;
  if (archives !== true) throw new UnsupportedError(backend, "compaction", archives?.reason ?? "it keeps no archives.");
}

/** @throws InvalidArgumentError */
export function checkWhole(value: unknown, name: string, min: number, max = Number.MAX_SAFE_INTEGER): void {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return;
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
  throw new InvalidArgumentError(`compaction.${name} must be a whole number ${range}, not ${String(value)}.`);
}

/**
 * Whether a context is to be compacted: it has `triggerTokens`, and a quarter of that has come since the last compaction.
 * So one that stays large all the same, for its system prompt or its newest turns, is not compacted at every step.
 */
export function isDue({ tokens, before }: ContextSize, { triggerTokens }: CompactionSettings): boolean {
  return tokens >= triggerTokens && (before === 0 || tokens - before >= triggerTokens / 4);
}

/** What a compaction needs to know of the run or the program that it is made in. */
export interface CompactionScene {
  /** The system prompt in force, kept with the archive. */
  system: string;
  tools: ModelRequest["tools"];
  retry: RetryPolicy | undefined;
  signal: AbortSignal;
  emit(event: Outgoing): void;
}

/**
 * Compacts now. Undefined when there is nothing to set aside; then nothing is reported either.
 *
 * @throws whatever kept it from being made; the thread is then as it was, and `compaction_failed` was reported
 */
export async function compact(
  log: ThreadLog,
  settings: CompactionSettings,
  scene: CompactionScene,
): Promise<ArchiveInfo | undefined> {
  const { signal, emit, system } = scene;
  const size = contextSize(log, scene);
  const count = chooseCut(log.messages, settings.keepTokens, size.of);
  if (count === 0) return undefined;
  const tokensBefore = Math.round(size.tokens);
  const kept = log.messages.length - count;
  emit({ type: "compaction_start", tokensBefore, messageCount: count, kept });
  let archive: ArchiveInfo;
  let usage: Usage | null = null;
  const onUsage = (counted: Usage | null) => {
    usage = counted;
  };
  try {
    signal.throwIfAborted();
    const summary = await newSummary(log, count, settings, { ...scene, onUsage });
    signal.throwIfAborted();
    archive = await log.compact(count, { summary, system: system === "" ? null : system });
    const { archiveId, upTo } = archive;
    emit({ type: "compaction_end", archiveId, upTo, messageCount: count, kept, tokensBefore, summary, usage });
  } catch (error) {
    emit({ type: "compaction_failed", error: asError(error), usage });
    throw error;
  }
  if (settings.keepArchives > 0) {
    try {
      await log.store?.checkpointer.archives?.prune(log.store.threadId, { keep: settings.keepArchives });
    } catch (error) {
      emit({ type: "retention_failed", error: asError(error) });
    }
  }
  return archive;
}

/** The summary of the first `count` messages and of all that was set aside before them. */
async function newSummary(
  log: ThreadLog,
  count: number,
  settings: CompactionSettings,
  scene: SummaryScene,
): Promise<string> {
  const { messages } = log;
  const last = messages[messages.length - 1];
  const runId = last?.run_id ?? null;
  // A request whose beginning was set aside before, and which has no answer yet.
  const earlier = messages.some(isAnswer) ? undefined : log.summary && splitRequest(log.summary, runId);
  const asked = [...(earlier ? [earlier.request] : []), ...requestSetAside(messages, count).map(wordsOf)];
  const request = asked.filter((words) => words.trim() !== "").join("\n\n");
  const task = summaryTask({
    previous: earlier ? earlier.summary : log.summary,
    messages: messages.slice(0, count),
    underWay: request !== "",
    unread: count === messages.length && last?.role === "tool_result",
  });
  const text = await askForSummary(userMessage(task, { timestamp: null }), settings, scene);
  return withRequest(text, request, runId);
}

interface SummaryScene extends CompactionScene {
  /** Told what the summary took, also when it is none. */
  onUsage(usage: Usage | null): void;
}

async function askForSummary(task: Message, settings: CompactionSettings, scene: SummaryScene): Promise<string> {
  const { model, instructions } = settings;
  const { retry, signal, emit } = scene;
  const request: ModelRequest = { system: instructions, messages: [task], tools: [], signal };
  let answer: Extract<ModelEvent, { type: "finish" }> | undefined;
  for await (const event of streamWithRetry(model, request, retry, (wait) => emit({ type: "model_retry", ...wait }))) {
    // For a model that doesn't listen.
    signal.throwIfAborted();
    if (event.type === "finish") answer = event;
  }
  if (!answer) throw new ModelError("The model gave no summary: its stream ended without an answer.");
  scene.onUsage(answer.usage);
  const text = textOf(answer).trim();
  if (answer.content.some(({ type }) => type === "tool_call")) {
    throw new ModelError("The model gave no summary: it called a tool.");
  }
  if (answer.stop_reason === "length") {
    throw new ModelError("The model gave no whole summary: it was cut off for its length. Allow it longer answers.");
  }
  if (text === "") throw new ModelError("The model gave no summary: its answer was empty.");
  return text;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
