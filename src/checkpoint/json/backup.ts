/** A copy of a JSON store while it is in use, and the check of one. */
import * as fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { StoreOpenError } from "../../db/errors.ts";
import { messageOf } from "../../errors.ts";
import { syncDirectory, writeFileAtomic } from "../../util/atomic-file.ts";
import { archiveFileOf, writeArchive } from "./archive-file.ts";
import { stateText } from "./format.ts";
import { toPath } from "./options.ts";
import { corrupt, type State } from "./state.ts";
import type { JsonStore } from "./store.ts";

/**
 * Copies the store into a new directory, laid out as a session's: `state/state.json` and `memory/<archive>/state.json`. The
 * state.json comes last: a copy without it is not whole.
 *
 * @throws StoreOpenError when the path is taken @throws CheckpointCorruptionError when an archive is missing
 */
export async function backupTo(store: JsonStore, path: unknown): Promise<void> {
  store.assertOpen("backup");
  const directory = toPath(path, "The backup's path");
  await store.read("backup", async (state) => {
    await makeDirectory(directory);
    try {
      for (const [threadId, { archives }] of state.threads) {
        for (const archive of archives.filter(({ prunedAt }) => prunedAt === null)) {
          const file = archiveFileOf(store.place.memory, archive.directory);
          const bytes = await fs.readFile(file).catch((cause: unknown) => {
            throw corrupt(threadId, file, cause);
          });
          await writeArchive(join(directory, "memory"), archive.directory, bytes);
        }
      }
      await fs.mkdir(join(directory, "state"), { mode: 0o700 });
      await writeFileAtomic(join(directory, "state", "state.json"), stateText({ ...state, removed: new Set() }));
      await syncDirectory(directory);
      await syncDirectory(dirname(directory));
    } catch (error) {
      await fs.rm(directory, { recursive: true, force: true });
      throw error;
    }
  });
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await fs.mkdir(path, { mode: 0o700 });
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === "EEXIST";
    throw new StoreOpenError(
      exists ? `${path} is there already; nothing was overwritten.` : `${path} can't be created: ${messageOf(error)}.`,
      { cause: error },
    );
  }
}

/** What is wrong with the files: damaged threads, and archives that are missing or damaged. */
export async function checkFiles(store: JsonStore, state: State): Promise<string[]> {
  const problems: string[] = [];
  for (const [threadId, { damage, archives }] of state.threads) {
    if (damage) problems.push(corrupt(threadId, store.place.path, damage.cause).message);
    for (const archive of archives.filter(({ prunedAt }) => prunedAt === null)) {
      await store.place.readArchive(threadId, archive).catch((error: unknown) => problems.push(messageOf(error)));
    }
  }
  return problems;
}
