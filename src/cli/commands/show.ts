/** `everthread show`: one conversation, readable; under --json the lines that export writes, and its state. */
import type { ArchiveInfo } from "../../checkpoint/archives.ts";
import type { ArchivePart, LogEntry, RunInfo, ThreadInfo } from "../../checkpoint/checkpointer.ts";
import { archivesOf } from "../../copy/source.ts";
import type { ThreadState } from "../../messages/state.ts";
import { harmless, harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { describeEntry, describeQuestion, indent } from "../describe.ts";
import { EXIT, oneLine } from "../errors.ts";
import { entriesOf, type Rest, restOf, runsOf, StateWatch } from "../log.ts";
import {
  answerRecord,
  archiveRecord,
  damageRecord,
  entryRecord,
  pendingRecord,
  runRecord,
  threadRecord,
} from "../records.ts";
import { allArchives, findThread, withStore } from "../store.ts";
import type { Terminal } from "../terminal.ts";
import { ago, count } from "../text.ts";

export interface ShowOptions {
  runs?: boolean;
  last?: number;
}

const STATES: Record<ThreadState, string> = {
  empty: "Nothing was said yet.",
  complete: "The last answer is complete.",
  partial: "The last answer was cut short.",
  awaiting_model: "The model has not answered yet.",
  awaiting_results: "A tool call has no result: its run is under way, or was interrupted.",
  awaiting_answer: "The thread waits on an answer (everthread respond).",
};

export async function show(context: Context, given: string | undefined, options: ShowOptions): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    const info = await findThread(store, given);
    const rest = await restOf(store, info);
    const runs = options.runs ? await runsOf(store, info.threadId) : [];
    const view = out.json
      ? jsonView(out, await archivesOf(store, info.threadId))
      : peopleView(out, await allArchives(store, info.threadId));
    await view.begin(info, rest);
    const watch = new StateWatch();
    for await (const entry of watched(entriesOf(store, info.threadId), watch, options.last)) await view.entry(entry);
    await view.end(watch.state(info.pending), rest, runs, options.runs ?? false);
    return EXIT.ok;
  });
}

/** What is shown of a log while the watch sees all of it. Holds no more than the last messages that are asked for. */
async function* watched(
  entries: ReturnType<typeof entriesOf>,
  watch: StateWatch,
  last = Number.POSITIVE_INFINITY,
): AsyncGenerator<LogEntry> {
  const held: LogEntry[] = [];
  for await (const entry of entries) {
    if (entry.message) watch.see(entry.message);
    if (last === Number.POSITIVE_INFINITY) yield entry;
    else if (held.push(entry) > last) held.shift();
  }
  yield* held;
}

interface View {
  begin(info: ThreadInfo, rest: Rest): Promise<void>;
  entry(entry: LogEntry): Promise<void>;
  end(state: ThreadState, rest: Rest, runs: readonly RunInfo[], withRuns: boolean): Promise<void>;
}

function jsonView(out: Terminal, archives: readonly ArchivePart[]): View {
  return {
    begin: (info, rest) => out.record(threadRecord(info, rest, archives)),
    entry: (entry) => out.record(entryRecord(entry)),
    async end(state, rest, runs) {
      for (const run of runs) await out.record(runRecord(run));
      for (const archive of archives) await out.record(archiveRecord(archive));
      for (const damage of rest.damage) await out.record(damageRecord(damage));
      if (rest.pending) await out.record(pendingRecord(rest.pending));
      for (const answer of rest.answers) await out.record(answerRecord(answer));
      await out.record({ type: "state", state });
    },
  };
}

/** @param archives oldest first: each summary is shown where it took the place of what is above it */
function peopleView(out: Terminal, archives: readonly ArchiveInfo[]): View {
  const summaries = [...archives];
  const summariesBefore = async (position: number) => {
    for (let next = summaries[0]; next && next.upTo < position; next = summaries[0]) {
      const gone = next.prunedAt ? `, its messages removed ${ago(next.prunedAt)}` : "";
      const heading = `${out.style("bold", out.style("magenta", "compacted"))} ${out.style("dim", `archive ${next.archiveId}${gone}`)}`;
      await out.line(`\n${heading}\n${indent(harmless(next.summary))}`);
      summaries.shift();
    }
  };
  return {
    async begin({ threadId, messageCount, parentThreadId }) {
      const parent = parentThreadId === null ? "" : `, a fork of ${harmlessLine(parentThreadId)}`;
      await out.line(`${out.style("bold", harmlessLine(threadId))} (${count(messageCount, "message")}${parent})`);
    },
    async entry(entry) {
      await summariesBefore(entry.position);
      await out.line(`\n${describeEntry(entry, out)}`);
    },
    async end(state, rest, runs, withRuns) {
      await summariesBefore(Number.POSITIVE_INFINITY);
      if (withRuns) await out.line(`\n${out.style("bold", count(runs.length, "run"))}`);
      for (const run of runs) await out.line(indent(describeRun(run)));
      for (const damage of rest.damage) await out.line(`\n${out.style("red", "damaged")}\n${indent(oneLine(damage))}`);
      if (rest.pending) {
        const { question_id, payload } = rest.pending.request;
        const heading = `${out.style("bold", out.style("magenta", "waits"))} ${out.style("dim", harmlessLine(question_id))}`;
        await out.line(`\n${heading}\n${indent(describeQuestion(payload))}`);
      }
      await out.line(`\n${STATES[state]}`);
    },
  };
}

function describeRun({ runId, claimedAt, completedAt, completionSeq }: RunInfo): string {
  const ending =
    completedAt === null
      ? `claimed ${ago(claimedAt)}, not completed`
      : `completed ${ago(completedAt)}, as number ${completionSeq}`;
  return `${harmlessLine(runId)}: ${ending}`;
}
