/** `everthread copy`: threads from one store to another, of whichever kinds they are. */
import { statSync } from "node:fs";
import type { Checkpointer } from "../../checkpoint/checkpointer.ts";
import { type CopyProblem, type CopyReport, copyThreads } from "../../copy/copy.ts";
import { EverthreadError } from "../../errors.ts";
import { harmlessLine } from "../../util/text.ts";
import { withoutPassword } from "../../util/urls.ts";
import type { Context } from "../context.ts";
import { EXIT, UsageError } from "../errors.ts";
import { onInterrupt } from "../interrupt.ts";
import { Progress } from "../progress.ts";
import { allThreads, findThread, openStore } from "../store.ts";
import type { Terminal } from "../terminal.ts";
import { count } from "../text.ts";

export interface CopyCommandOptions {
  verify: boolean;
}

export async function copy(
  { out, db, session, config }: Context,
  from: string,
  to: string,
  given: string[],
  options: CopyCommandOptions,
): Promise<number> {
  if ((db ?? session ?? config) !== undefined) {
    throw new UsageError("copy takes both stores as arguments, and no --db, --session or --config.");
  }
  return await using(await openStore(from, { readOnly: true }), async (source) => {
    const named = await Promise.all(given.map(async (id) => (await findThread(source, id)).threadId));
    if (from === to || (await isSameFile(source, to))) {
      throw new UsageError(`${withoutPassword(to)} is the store that is copied from. Name another one to copy to.`);
    }
    return await using(await openStore(to, { out }), async (target) => {
      const threadIds = given.length > 0 ? named : undefined;
      const report = await copyShown(out, source, target, { threadIds, verify: options.verify });
      if (out.json) await out.record(toJson(report));
      else {
        for (const text of problemsOf(report)) out.note(harmlessLine(text));
        await out.line(summary(report, options.verify));
      }
      const { conflicts, damaged, differences } = report;
      return conflicts.length + damaged.length + differences.length > 0 ? EXIT.failure : EXIT.ok;
    });
  });
}

/** Copies with a bar on a terminal, and says how to go on when Ctrl-C stops it. */
async function copyShown(
  out: Terminal,
  source: Checkpointer,
  target: Checkpointer,
  options: { threadIds: string[] | undefined; verify: boolean },
): Promise<CopyReport> {
  const progress = new Progress(out.json);
  let total = options.threadIds?.length ?? 0;
  if (progress.shown && !options.threadIds) for await (const _ of allThreads(source)) total++;
  const off = onInterrupt(() => {
    progress.clear();
    out.note("Stopped. What was copied is whole; the same command again goes on.");
    process.exit(EXIT.interrupted);
  });
  try {
    const onProgress = ({ threads, messages }: { threads: number; messages: number }) =>
      progress.update(threads, total, `${threads}/${total} threads, ${count(messages, "message")} copied`);
    return await copyThreads(source, target, { ...options, onProgress });
  } finally {
    off();
    progress.clear();
  }
}

/** Whether a URL names the file that is open, by whichever path or link. Opened read-only, so that nothing is created or migrated. */
async function isSameFile(source: Checkpointer, url: string): Promise<boolean> {
  const file = fileOf(source);
  if (!file) return false;
  try {
    return await using(await openStore(url, { readOnly: true }), async (target) => fileOf(target) === file);
  } catch (error) {
    // Not there, or not readable: opening it in earnest says so.
    if (error instanceof EverthreadError) return false;
    throw error;
  }
}

function fileOf(store: Checkpointer): string | undefined {
  if (!("path" in store) || typeof store.path !== "string") return undefined;
  const stats = statSync(store.path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}

async function using<T>(store: Checkpointer, work: (store: Checkpointer) => Promise<T>): Promise<T> {
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function toJson({ copied, continued, unchanged, messages, conflicts, damaged, differences }: CopyReport) {
  const list = (problems: CopyProblem[]) =>
    problems.map(({ threadId, rowRef, reason }) => ({
      thread_id: threadId,
      ...(rowRef === undefined ? {} : { row_ref: rowRef }),
      reason,
    }));
  const lists = { conflicts: list(conflicts), damaged: list(damaged), differences: list(differences) };
  return { copied, continued, unchanged, messages, ...lists };
}

function* problemsOf({ conflicts, damaged, differences }: CopyReport): Generator<string> {
  const named = ({ threadId, rowRef }: CopyProblem) =>
    `thread ${JSON.stringify(threadId)}${rowRef === undefined ? "" : `, ${rowRef}`}`;
  for (const one of conflicts) yield `Conflict: ${named(one)} is there already: ${one.reason}.`;
  for (const one of damaged)
    yield `Damaged: ${named(one)}: ${one.reason.replace(/\.?$/, ".")} Nothing of it was copied.`;
  for (const one of differences) yield `Different: ${named(one)} was copied and is not the same: ${one.reason}.`;
}

function summary(report: CopyReport, verified: boolean): string {
  const { copied, continued, unchanged, messages, conflicts, damaged, differences } = report;
  const problems = conflicts.length + damaged.length + differences.length;
  if (copied + continued + problems === 0) {
    return unchanged === 0
      ? "There was nothing to copy."
      : `Nothing changed: ${count(unchanged, "thread")} there already.`;
  }
  const parts = [
    `${count(copied, "thread")} copied`,
    ...(continued > 0 ? [`${continued} continued`] : []),
    ...(unchanged > 0 ? [`${unchanged} there already`] : []),
    count(messages, "message"),
    ...(conflicts.length > 0 ? [count(conflicts.length, "conflict")] : []),
    ...(damaged.length > 0 ? [`${damaged.length} damaged`] : []),
    ...(differences.length > 0 ? [`${differences.length} different`] : []),
  ];
  return `${parts.join(", ")}.${verified && differences.length === 0 ? " What was copied was compared, and is the same." : ""}`;
}
