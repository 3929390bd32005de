/** `everthread migrate`: the SQL that brings a server's tables up to date, printed or run. */
import { migrateHistoryStore, migrateStore } from "../../open.ts";
import type { Context } from "../context.ts";
import { EXIT } from "../errors.ts";
import { storeUrl } from "../store.ts";

export interface MigrateOptions {
  apply?: boolean;
  check?: boolean;
  /** The tables of a memory history instead of those of threads. */
  history?: boolean;
}

/** @param url the store (Default: that of --db or EVERTHREAD_DB) */
export async function migrate({ out, db }: Context, url: string | undefined, options: MigrateOptions): Promise<number> {
  const { apply = false, check = false } = options;
  const of = options.history ? migrateHistoryStore : migrateStore;
  const found = await of(storeUrl({ out, db: url ?? db }), { apply });
  const { backend = null, from = null, to = null, sql = "" } = found ?? {};
  const behind = sql !== "";
  const exitCode = check && behind ? EXIT.failure : EXIT.ok;
  if (out.json) {
    await out.record({ backend, from, to, current: apply || !behind, applied: apply && behind, sql });
    return exitCode;
  }
  // Printed SQL is for a file or a pipe, so that stdout holds nothing else.
  const say = async (text: string) => (apply || check ? await out.line(text) : out.note(text));
  if (!found) await say("Nothing to do: SQLite files are brought up to date when they are opened.");
  else if (!behind) await say(`Nothing to do: the tables are of version ${to}.`);
  else if (apply) await say(`${done(from, to)}.`);
  else if (check) await say(`${toDo(from, to)}.`);
  else
    await out.write(`-- Everthread's tables, ${from === to || from === 0 ? `version ${to}` : way(from, to)}.\n${sql}`);
  return exitCode;
}

// Of the same version there is something to do where only the tables of archives are behind, which are versioned by themselves.

function done(from: number | null, to: number | null): string {
  if (from === 0) return `The tables are made, version ${to}`;
  return from === to ? "The tables of archives are made" : `The tables went ${way(from, to)}`;
}

function toDo(from: number | null, to: number | null): string {
  if (from === 0) return "There are no tables";
  return from === to
    ? "The tables of archives are missing, or their index is"
    : `The tables are to go ${way(from, to)}`;
}

function way(from: number | null, to: number | null): string {
  return `from version ${from} to ${to}`;
}
