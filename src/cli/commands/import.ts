/** `everthread import`: threads from JSON Lines into a store. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { messageOf } from "../../errors.ts";
import { harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { CommandError, EXIT } from "../errors.ts";
import { readThreads } from "../import-read.ts";
import { type Outcome, writeThread } from "../import-write.ts";
import { linesOf } from "../lines.ts";
import { withStore } from "../store.ts";
import { count } from "../text.ts";

interface Refused {
  line: number;
  thread_id?: string;
  reason: string;
}

interface Report {
  imported: number;
  continued: number;
  unchanged: number;
  /** Messages that were written. */
  messages: number;
  conflicts: Refused[];
  problems: Refused[];
}

export async function importThreads(context: Context, file: string): Promise<number> {
  const { out } = context;
  const stream = file === "-" ? process.stdin : await openInput(file);
  const report: Report = { imported: 0, continued: 0, unchanged: 0, messages: 0, conflicts: [], problems: [] };
  await withStore(context, "create", async (store) => {
    for await (const item of readThreads(linesOf(stream))) {
      if ("problem" in item) {
        const { line, threadId, problem } = item.problem;
        const refused = { line, ...(threadId === undefined ? {} : { thread_id: threadId }), reason: problem };
        report.problems.push(refused);
        const whose = threadId === undefined ? "" : ` Nothing of thread ${JSON.stringify(threadId)} was written.`;
        out.note(harmlessLine(`Line ${line} ${problem.replace(/\.?$/, ".")}${whose}`));
        continue;
      }
      const { thread } = item;
      const outcome = await writeThread(store, thread);
      take(report, outcome, thread);
      if (outcome.kind === "conflict") {
        const { line, threadId } = thread;
        out.note(
          harmlessLine(
            `Conflict: thread ${JSON.stringify(threadId)} of line ${line} is there already: ${outcome.reason}.`,
          ),
        );
      }
    }
  });
  if (out.json) await out.record(report);
  else await out.line(summary(report));
  return report.conflicts.length + report.problems.length > 0 ? EXIT.failure : EXIT.ok;
}

function take(report: Report, outcome: Outcome, thread: { line: number; threadId: string }): void {
  if (outcome.kind === "conflict") {
    report.conflicts.push({ line: thread.line, thread_id: thread.threadId, reason: outcome.reason });
    return;
  }
  report[outcome.kind]++;
  report.messages += outcome.messages;
}

function summary({ imported, continued, unchanged, messages, conflicts, problems }: Report): string {
  const written = imported + continued;
  const refused = conflicts.length + problems.length;
  if (written === 0 && refused === 0) {
    return unchanged === 0
      ? "There was nothing to import."
      : `Nothing changed: ${count(unchanged, "thread")} there already.`;
  }
  const parts = [
    `${count(imported, "thread")} imported (${count(messages, "message")})`,
    ...(continued > 0 ? [`${continued} continued`] : []),
    ...(unchanged > 0 ? [`${unchanged} there already`] : []),
    ...(conflicts.length > 0 ? [count(conflicts.length, "conflict")] : []),
    ...(problems.length > 0 ? [count(problems.length, "problem")] : []),
  ];
  return `${parts.join(", ")}.`;
}

async function openInput(file: string): Promise<AsyncIterable<Uint8Array>> {
  try {
    if ((await stat(file)).isDirectory()) throw new Error("it is a directory");
  } catch (error) {
    throw new CommandError("input_failed", `${file} can't be read: ${messageOf(error)}.`, { cause: error });
  }
  return createReadStream(file);
}
