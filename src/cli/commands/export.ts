/** `everthread export`: threads as JSON Lines, a page at a time. */
import type { Checkpointer, ThreadInfo } from "../../checkpoint/checkpointer.ts";
import { StoreError } from "../../checkpoint/errors.ts";
import { archivesOf } from "../../copy/source.ts";
import { harmlessLine, jsonLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { CommandError, EXIT, oneLine, UsageError } from "../errors.ts";
import { entriesOf, restOf, runsOf } from "../log.ts";
import { OutFile } from "../out-file.ts";
import {
  answerRecord,
  archiveRecord,
  damageRecord,
  endRecord,
  entryRecord,
  pendingRecord,
  runRecord,
  threadRecord,
} from "../records.ts";
import { allThreads, findThread, withStore } from "../store.ts";
import { count } from "../text.ts";

export interface ExportOptions {
  all?: boolean;
  output?: string;
  force?: boolean;
}

type Write = (record: object) => Promise<void>;

export async function exportThreads(context: Context, given: string[], options: ExportOptions): Promise<number> {
  const { out } = context;
  if (given.length === 0 && !options.all) throw new UsageError("Name the threads to export, or give --all.");
  if (given.length > 0 && options.all) throw new UsageError("Name the threads to export, or give --all, not both.");
  return await withStore(context, "read", async (store) => {
    // All are found before the first is written.
    const named = await Promise.all(given.map((id) => findThread(store, id)));
    const file = options.output === undefined || options.output === "-" ? undefined : openFile(options.output, options);
    const write: Write = file ? async (record) => file.write(`${jsonLine(record)}\n`) : (record) => out.record(record);
    const total = { threads: 0, messages: 0, damaged: 0 };
    for await (const info of options.all ? allThreads(store) : named) {
      total.threads++;
      try {
        const written = await exportThread(store, info, write, (text) => out.note(text));
        total.messages += written.messages;
        if (written.damaged) total.damaged++;
      } catch (error) {
        // One thread that can't be read hides no other. Without its last line it can't be imported by mistake.
        if (!(error instanceof StoreError || error instanceof CommandError)) throw error;
        total.damaged++;
        await write({ type: "damaged", problem: error.message });
        out.note(`Thread ${harmlessLine(info.threadId)}: ${oneLine(error)}`);
      }
    }
    file?.finish();
    const where = file ? ` to ${harmlessLine(file.path)}` : "";
    if (file && out.json) await out.record({ file: file.path, ...total });
    else out.note(`Exported ${count(total.threads, "thread")} (${count(total.messages, "message")})${where}.`);
    if (total.damaged === 0) return EXIT.ok;
    const what = `${count(total.damaged, "thread")} with damaged rows`;
    throw new CommandError(
      "damaged_rows",
      `The export holds ${what}, which import refuses; everthread doctor lists them.`,
    );
  });
}

function openFile(path: string, options: ExportOptions): OutFile {
  return new OutFile(path, { replace: options.force ?? false });
}

/**
 * Writes one thread. It may be in use: the runs are read first, so that every message of a run that is said to have
 * completed follows.
 */
async function exportThread(store: Checkpointer, info: ThreadInfo, write: Write, note: (text: string) => void) {
  const { threadId } = info;
  const rest = await restOf(store, info);
  const written = { messages: 0, damaged: rest.damage.length > 0 };
  const archives = await archivesOf(store, threadId);
  await write(threadRecord(info, rest, archives));
  for (const damage of rest.damage) await write(damageRecord(damage));
  for (const damage of rest.damage) note(oneLine(damage));
  const runs = await runsOf(store, threadId);
  for (const run of runs) await write(runRecord(run));
  for await (const entry of entriesOf(store, threadId)) {
    await write(entryRecord(entry));
    if (entry.message) written.messages++;
    else {
      written.damaged = true;
      note(oneLine(entry.error));
    }
  }
  // Compacted or pruned meanwhile, the archives may not be of these messages.
  if (JSON.stringify(await archivesOf(store, threadId)) !== JSON.stringify(archives)) {
    throw new CommandError(
      "thread_changed",
      `Thread ${harmlessLine(threadId)} was compacted meanwhile. Export it again.`,
    );
  }
  for (const archive of archives) await write(archiveRecord(archive));
  // What waited before the messages were read and still waits is about one of them.
  const { pending, answers } = await restOf(store, info);
  if (JSON.stringify([pending, answers]) !== JSON.stringify([rest.pending, rest.answers])) {
    const what = "the question that it waits on and the answers given are left out";
    note(`Thread ${harmlessLine(threadId)} changed meanwhile: ${what}.`);
  } else {
    if (pending) await write(pendingRecord(pending));
    for (const answer of answers) await write(answerRecord(answer));
  }
  await write(endRecord(threadId, written.messages, runs.length));
  return written;
}
